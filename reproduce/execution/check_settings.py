"""Checks, before the first training, that every method's code takes the ends of its search ranges, batches and classes.

All faults of all methods are named at once. A setting between the ends that is refused later is a failed trial.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from protocols.search.space import SearchParameter
from protocols.search.study import Study
from protocols.training.rehearsal import batches_to_try, rehearse
from reproduce.errors import InputError
from reproduce.execution.session import Session
from results.spec.training_spec import FoldSpec
from results.values import canonical_json

Refusal = Callable[[dict[str, JsonValue]], str | None]

_NOT_TOLD_HERE = (MemoryError, OSError, RuntimeError)
"""What says something about this machine only; another one may train."""


def check_settings(sessions: Sequence[Session]) -> None:
    """Try the methods of experiments on random embeddings; raise InputError with all settings that they refuse."""
    faults: dict[str, list[str]] = {}
    for session in sessions:
        for key, study in session.studies().items():
            for setting, reason in _faults(session, study):
                place = f"{session.name}, {key}{setting}" if len(sessions) > 1 else f"{key}{setting}"
                faults.setdefault(reason, []).append(place)
    if faults:
        text = "; ".join(f"{', '.join(dict.fromkeys(places))}: {reason}" for reason, places in faults.items())
        raise InputError(
            f"nothing was trained, since these settings cannot be: {text}. Change the ranges (search.ranges), the "
            "settings or training.batch_size, or leave these methods out"
        )


def _faults(session: Session, study: Study) -> Iterator[tuple[str, str]]:
    """Yield the settings that a method refuses, as text behind the method's key, each with the reason."""
    if study.method.method.loss is None:
        return
    refusal = _refusals(study, session.protocol.kinds(study))
    ends = {parameter.target: _ends(parameter) for parameter in study.space}
    low = {target: values[0] for target, values in ends.items()}
    high = {target: values[-1] for target, values in ends.items()}
    middle = {parameter.target: parameter.at(0.5) for parameter in study.space}
    accepted = next((setting for setting in (low, high, middle) if refusal(setting) is None), None)
    if accepted is None:
        yield "", refusal(low) or ""
        return
    for target, values in ends.items():
        for value in values:
            if (reason := refusal({**accepted, target: value})) is not None:
                yield f" with {target} {value}", reason


def _ends(parameter: SearchParameter) -> list[JsonValue]:
    if parameter.scale == "choice":
        return list(parameter.choices or ())
    whole = parameter.scale in ("int", "int_log")
    assert parameter.low is not None
    assert parameter.high is not None
    return [int(end) if whole else end for end in (parameter.low, parameter.high)]


def _refusals(study: Study, kinds: Sequence[FoldSpec]) -> Refusal:
    """Return a function that tells why a setting is refused in one of some kinds of trainings; None if it is not."""
    targets = [study.problem.training_data(spec).train_targets for spec in kinds]

    @cache
    def rows_of(kind: int, samples_per_class: int) -> list[NDArray[np.int64]]:
        return batches_to_try(targets[kind], study.problem.training, samples_per_class)

    known: dict[str, str | None] = {}

    def refusal(setting: dict[str, JsonValue]) -> str | None:
        if (name := canonical_json(setting)) not in known:
            known[name] = tried(setting)
        return known[name]

    def tried(setting: dict[str, JsonValue]) -> str | None:
        try:
            method = study.method.at(setting)
            for kind, spec in enumerate(kinds):
                rows = rows_of(kind, method.samples_per_class)
                rehearse(spec.model_copy(update={"method": method}), targets[kind], rows)
        except _NOT_TOLD_HERE:
            return None
        except ValueError as error:  # MethodError, HyperparameterError, and batches that cannot be drawn.
            return str(error)
        return None

    return refusal
