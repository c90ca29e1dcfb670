"""Checks before the first training: images enough, and one batch of each method that its code takes.

All faults of all methods are named at once. A setting that is refused later, in the search, is a failed trial.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protocols.problem import Problem
from protocols.processes import run_in_subprocess
from protocols.search.study import Study
from protocols.training.build_method import has_foreign_code
from protocols.training.first_step import try_first_step
from protocols.users_code.sources import UsersSource, known_sources, remember_sources
from reproduce.errors import InputError
from results.spec.data_choice import samples_word
from results.spec.training_spec import MethodSpec

if TYPE_CHECKING:
    from reproduce.execution.session import Session

_NOT_TOLD_HERE = (MemoryError, OSError, RuntimeError)
"""What says something about this machine only; another one may train."""


def check_components(problem: Problem, method: MethodSpec) -> None:
    """Check that there are enough images for the principal components of a method or of the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    if method.embedder == "test_components":
        tested = len(problem.dataset.images.of_classes(problem.split.test))
        if problem.conditions.embedding_size * problem.folds > tested - 1:
            samples = samples_word(problem.dataset.name)
            raise InputError(
                f"{method.name}: {tested} test {samples} have at most {tested - 1} principal components, fewer than "
                f"the {problem.conditions.embedding_size * problem.folds} dimensions of all folds together; give a "
                f"smaller embedding_size, or leave out {method.name}"
            )
        return
    starts_from_them = method.loss is not None and problem.conditions.embedder.init == "pca"
    if method.embedder != "principal_components" and not starts_from_them:
        return
    images = problem.dataset.images
    fewest = min(len(images.of_classes(fold.train)) for fold in problem.split.folds[: problem.folds])
    # The centred features of n images span at most n - 1 directions.
    if problem.conditions.embedding_size > fewest - 1:
        samples = samples_word(problem.dataset.name)
        raise InputError(
            f"{method.name}: a fold has only {fewest} training {samples}, which have at most {fewest - 1} principal "
            f"components, fewer than the {problem.conditions.embedding_size} dimensions of the embedding; give --set "
            f"embedding_size={max(1, fewest - 1)} or less, or more {samples}"
        )


def check_settings(sessions: "Sequence[Session]") -> tuple[str, ...]:
    """Try one batch of each method of some experiments, in the middle of its ranges, on random embeddings.

    Returns:
        What the user should know about methods that can be trained.

    Raises:
        InputError: Methods cannot be trained; the message has the reasons of all of them.
    """
    faults: dict[str, list[str]] = {}
    remarks: dict[str, None] = {}
    for session in sessions:
        for key, study in session.studies().items():
            place = f"{session.name}, {key}" if len(sessions) > 1 else key
            try:
                remarks |= dict.fromkeys(f"{place}: {remark}" for remark in _tried(session, study))
            except _NOT_TOLD_HERE:
                continue
            except ValueError as error:  # MethodError, HyperparameterError, and batches that cannot be drawn.
                faults.setdefault(str(error), []).append(place)
    if faults:
        text = "; ".join(f"{', '.join(places)}: {reason.rstrip('.')}" for reason, places in faults.items())
        raise InputError(
            f"nothing was trained, since these methods cannot be: {text}. Change their settings, the ranges "
            "(search.ranges) or training.batch_size, or leave these methods out"
        )
    return tuple(remarks)


def _tried(session: "Session", study: Study) -> tuple[str, ...]:
    if study.method.method.loss is None:
        return ()
    spec = session.protocol.kinds(study)[0]
    assert spec.embedding_size is not None
    method = study.method.at({parameter.target: parameter.at(0.5) for parameter in study.space})
    tried = (method, spec.conditions.training, spec.embedding_size, study.problem.training_data(spec).train_targets)
    if has_foreign_code(method):
        told: tuple[str, ...] = run_in_subprocess(_try_in_subprocess, known_sources(), *tried)
        return told
    return try_first_step(*tried)


def _try_in_subprocess(sources: Mapping[str, UsersSource], *tried: Any) -> tuple[str, ...]:
    """Try users' code in a process of its own, since the code may change anything in it."""
    remember_sources(sources)
    return try_first_step(*tried)
