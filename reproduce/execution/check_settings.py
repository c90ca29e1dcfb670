"""Checks before the first training: images enough, and ranges, batches and classes that every method's code takes.

All faults of all methods are named at once. A setting between the ends that is refused later is a failed trial.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from protocols.problem import Problem
from protocols.processes import apart
from protocols.search.space import SearchParameter
from protocols.search.study import Study
from protocols.training.build_method import has_foreign_code
from protocols.training.rehearsal import batches_to_try, rehearse
from protocols.users_files.loaded_files import LoadedSource, watch
from protocols.users_files.sources import findable, known_sources, remember_sources
from reproduce.errors import InputError
from results.spec.data_choice import samples_word
from results.spec.training_spec import FoldSpec, MethodSpec

if TYPE_CHECKING:
    from reproduce.execution.session import Session

_RATES = ("optimizer.lr", "loss_optimizer.lr", "loss_optimizer.weight_decay")
_NOT_TOLD_HERE = (MemoryError, OSError, RuntimeError)
"""What says something about this machine only; another one may train."""


def check_components(problem: Problem, method: MethodSpec) -> None:
    """Check that there are enough images for the principal components of a method or of the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    if method.embedder == "test_components":
        tested = len(problem.dataset.images.of_classes(problem.split.test))
        if problem.embedding_size * problem.folds > tested - 1:
            samples = samples_word(problem.dataset.name)
            raise InputError(
                f"{method.name}: {tested} test {samples} have at most {tested - 1} principal components, fewer than "
                f"the {problem.embedding_size * problem.folds} dimensions of all folds together; give a smaller "
                f"--embedding-size, or leave out {method.name}"
            )
        return
    starts_from_them = method.loss is not None and problem.embedder.init == "pca"
    if method.embedder != "principal_components" and not starts_from_them:
        return
    images = problem.dataset.images
    fewest = min(len(images.of_classes(fold.train)) for fold in problem.split.folds[: problem.folds])
    # The centred features of n images span at most n - 1 directions.
    if problem.embedding_size > fewest - 1:
        samples = samples_word(problem.dataset.name)
        raise InputError(
            f"{method.name}: a fold has only {fewest} training {samples}, which have at most {fewest - 1} principal "
            f"components, fewer than the {problem.embedding_size} dimensions of the embedding; give --embedding-size "
            f"{max(1, fewest - 1)} or less, or more {samples}"
        )


def check_settings(sessions: "Sequence[Session]") -> None:
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


def _rehearse_apart(sources: Mapping[str, LoadedSource], *tried: Any) -> None:
    """Rehearse with users' code in a process of its own, since the code may change anything in it."""
    watch()
    remember_sources(sources)
    with findable(source.file for source in sources.values()):
        rehearse(*tried)


class _Batches:
    """The labels and batches of an experiment's trainings, which its methods share."""

    def __init__(self, session: "Session") -> None:
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
                tried = (spec.model_copy(update={"method": method}), targets, rows[:count], count is None)
                if has_foreign_code(method):
                    apart(_rehearse_apart, known_sources(), *tried)
                else:
                    rehearse(*tried)
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
