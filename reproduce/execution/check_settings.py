"""Checks, before the first training, that every method's code takes the ends of its search ranges, batches and classes.

All faults of all methods are named at once. A setting between the ends that is refused later is a failed trial.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from protocols.search.space import SearchParameter
from protocols.search.study import Study
from protocols.training.rehearsal import batches_to_try, rehearse
from reproduce.errors import InputError
from reproduce.execution.session import Session
from results.spec.training_spec import FoldSpec, MethodSpec

_RATES = ("optimizer.lr", "loss_optimizer.lr", "loss_optimizer.weight_decay")
_NOT_TOLD_HERE = (MemoryError, OSError, RuntimeError)
"""What says something about this machine only; another one may train."""


def check_settings(sessions: Sequence[Session]) -> None:
    """Try the methods of experiments on random embeddings; raise InputError with all settings that they refuse."""
    faults: dict[str, list[str]] = {}
    for session in sessions:
        batches = _Batches(session)
        for key, study in session.studies().items():
            for setting, reason in _faults(study, batches):
                place = f"{session.name}, {key}{setting}" if len(sessions) > 1 else f"{key}{setting}"
                faults.setdefault(reason, []).append(place)
    if faults:
        text = "; ".join(
            f"{', '.join(dict.fromkeys(places))}: {reason.rstrip('.')}" for reason, places in faults.items()
        )
        raise InputError(
            f"nothing was trained, since these settings cannot be: {text}. Change the ranges (search.ranges), the "
            "settings or training.batch_size, or leave these methods out"
        )


def _faults(study: Study, batches: "_Batches") -> Iterator[tuple[str, str]]:
    """Yield the settings that a method refuses, as text behind the method's key, each with the reason."""
    if study.method.method.loss is None:
        return
    ends = {parameter.target: _ends(parameter) for parameter in study.space}
    low = {target: values[0] for target, values in ends.items()}
    high = {target: values[-1] for target, values in ends.items()}
    middle = {parameter.target: parameter.at(0.5) for parameter in study.space}
    first = batches.refusal(study, low)
    accepted = low if first is None else next((s for s in (high, middle) if batches.refusal(study, s) is None), None)
    if accepted is None:
        yield "", first or ""
        return
    for target, values in ends.items():
        # A rate is taken or refused by the optimizer's constructor; the loss does not see it.
        count = 0 if target in _RATES else 1
        for value in values:
            reason = batches.refusal(study, {**accepted, target: value}, count)
            if reason is not None:
                yield f" with {target} {value}", reason


def _ends(parameter: SearchParameter) -> list[JsonValue]:
    if parameter.scale == "choice":
        return list(parameter.choices or ())
    whole = parameter.scale in ("int", "int_log")
    assert parameter.low is not None
    assert parameter.high is not None
    return [int(end) if whole else end for end in (parameter.low, parameter.high)]


class _Batches:
    """The labels and batches of an experiment's trainings, which its methods share."""

    def __init__(self, session: Session) -> None:
        self._kinds = session.protocol.kinds
        self._known: dict[tuple[object, ...], tuple[NDArray[np.int64], list[NDArray[np.int64]]]] = {}

    def refusal(self, study: Study, setting: dict[str, JsonValue], count: int | None = None) -> str | None:
        """Tell why a method refuses a setting; None if it does not.

        Args:
            count: Number of batches to try without gradients, in the first kind of training only; None tries all
                batches of all kinds with gradients.
        """
        try:
            method = study.method.at(setting)
            for spec in self._kinds(study)[: None if count is None else 1]:
                targets, rows = self._of(study, spec, method)
                rehearse(spec.model_copy(update={"method": method}), targets, rows[:count], gradients=count is None)
        except _NOT_TOLD_HERE:
            return None
        except ValueError as error:  # MethodError, HyperparameterError, and batches that cannot be drawn.
            return str(error)
        return None

    def _of(
        self, study: Study, spec: FoldSpec, method: MethodSpec
    ) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        drawn = (method.samples_per_class, method.whole_passes)
        name = (spec.data_fingerprint, spec.train_classes, spec.training.model_dump_json(), drawn)
        if name not in self._known:
            targets = study.problem.training_data(spec).train_targets
            self._known[name] = targets, batches_to_try(targets, spec.training, method)
        return self._known[name]
