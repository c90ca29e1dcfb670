"""Merges the searches of one store into another: the study with more finished trials continues the other one."""

from collections.abc import Iterable, Set
from dataclasses import dataclass

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from protocols.search.optuna_search import TRAININGS
from results.store.merge_records import Conflict

_KEPT = (TrialState.COMPLETE, TrialState.RUNNING)
"""Trials that a search continues from. A queued or failed trial has no setting that was trained."""


@dataclass(frozen=True)
class StudyMerge:
    """A study of the other store, and what the first store gets of it.

    Attributes:
        name: Name of the study.
        attributes: Its attributes.
        trials: The trials that are added, in order.
        is_new: Whether the first store does not have the study.
    """

    name: str
    attributes: dict[str, object]
    trials: tuple[FrozenTrial, ...]
    is_new: bool


def plan_studies(
    into: BaseStorage | None, other: BaseStorage | None, conflicting: Set[str]
) -> tuple[list[StudyMerge], list[Conflict]]:
    """Compare the studies of two stores. Nothing is written.

    A study in both stores must have the same finished trials as far as both have them. The study with more of them is
    the later state of the same search; a search continues from its finished trials alone.

    Args:
        into: Studies of the store that gets trials; None if it has none.
        other: Studies of the store that they come from; None if it has none.
        conflicting: Fingerprints of trainings with different results in the two stores.

    Returns:
        What the first store gets, and the studies that disagree, which stay as they are.
    """
    stored = {} if into is None else {study.study_name: study._study_id for study in into.get_all_studies()}
    merges, conflicts = list[StudyMerge](), list[Conflict]()
    for study in [] if other is None else other.get_all_studies():
        assert other is not None
        theirs = other.get_all_trials(study._study_id, deepcopy=False, states=_KEPT)
        is_new = study.study_name not in stored
        mine = [] if is_new or into is None else _finished(into.get_all_trials(stored[study.study_name]))
        finished, name = _finished(theirs), f"study {study.study_name}"
        differing = [
            n for n, pair in enumerate(zip(mine, finished, strict=False)) if _score(pair[0]) != _score(pair[1])
        ]
        added = [trial for trial in theirs if trial not in finished[: len(mine)]]
        if differing:
            conflicts.append(Conflict(name, f"trial {differing[0]} has another setting or score"))
        elif any(conflicting & set(trial.user_attrs.get(TRAININGS, ())) for trial in added):
            conflicts.append(Conflict(name, "its trials were scored by trainings with different results"))
        elif is_new or len(finished) > len(mine):
            merges.append(StudyMerge(study.study_name, dict(study.user_attrs), tuple(added), is_new))
    return merges, conflicts


def apply_studies(merges: Iterable[StudyMerge], into: BaseStorage) -> None:
    """Add the trials that `plan_studies` decided on.

    Args:
        merges: The decision.
        into: Studies of the store that gets the trials.
    """
    # Optuna would print a line for every study.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for merge in merges:
        if merge.is_new:
            study_id = into.create_new_study([StudyDirection.MAXIMIZE], merge.name)
            for key, value in merge.attributes.items():
                into.set_study_user_attr(study_id, key, value)
        else:
            study_id = into.get_study_id_from_name(merge.name)
            _end_unfinished(into, study_id)
        for trial in merge.trials:
            into.create_new_trial(study_id, template_trial=trial)


def _end_unfinished(storage: BaseStorage, study_id: int) -> None:
    """End the trials that were proposed but not scored: the other store has scored them, or proposes them again."""
    for trial in storage.get_all_trials(study_id, states=(TrialState.RUNNING, TrialState.WAITING)):
        storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)


def _finished(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    return [trial for trial in trials if trial.state == TrialState.COMPLETE]


def _score(trial: FrozenTrial) -> tuple[object, ...]:
    return trial.params, trial.values, trial.user_attrs
