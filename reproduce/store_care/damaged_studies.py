"""Finds damaged searches in Optuna's tables: rows that cannot be read, are missing or contradict each other."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from protocols.search.optuna_search import FOLD_VALUES, IDENTITY, RACED, TRAININGS
from reproduce.patient_studies import PatientStudies
from reproduce.storage import StoragePaths, readable_studies, studies_in_one_line
from results.store.patience import StoreError
from results.values import fingerprint_of

_NAME = re.compile(r".+/.+ [0-9a-f]{32}")
"""Names of the suite's studies: dataset, method and fingerprint."""

STUDIES, TRIALS = sa.table("studies", sa.column("study_id"), sa.column("study_name")), sa.table("trials")

OF_TRIALS = (
    *("trial_params", "trial_values", "trial_intermediate_values", "trial_user_attributes"),
    *("trial_system_attributes", "trial_heartbeats"),
)
"""Optuna's tables whose rows belong to a trial."""

OF_STUDIES = ("study_directions", "study_user_attributes", "study_system_attributes", "trials")
"""Optuna's tables whose rows belong to a study."""


@dataclass(frozen=True)
class DamagedStudy:
    """A study that no search can continue from.

    Attributes:
        number: Optuna's number of the study.
        name: Its name.
        reason: What is damaged.
    """

    number: int
    name: str
    reason: str

    @property
    def is_of_the_suite(self) -> bool:
        """Whether the suite has made the study, so that it can make it again."""
        return _NAME.fullmatch(self.name) is not None


def damaged_studies(storage: RDBStorage) -> list[DamagedStudy]:
    """Read all studies and trials, and return the damaged studies. Nothing is written.

    Args:
        storage: Optuna's storage of the studies.
    """
    reasons = [(number, name, _why_damaged(storage, number, name)) for number, name in all_studies(storage)]
    return [DamagedStudy(number, name, reason) for number, name, reason in reasons if reason is not None]


def all_studies(storage: RDBStorage) -> list[tuple[int, str]]:
    """Return number and name of every study, also where its attributes cannot be read."""
    with storage.engine.connect() as connection:
        rows = connection.execute(sa.select(STUDIES).order_by(sa.column("study_id"))).all()
    return [(number, str(name)) for number, name in rows]


def rows_without_owner(storage: RDBStorage) -> dict[str, int]:
    """Count the rows in Optuna's tables whose study or trial is missing.

    Optuna uses the numbers of missing studies and trials again, so a new trial would get such rows.

    Args:
        storage: Optuna's storage of the studies.

    Returns:
        The number of rows by table; tables without such rows are left out.
    """
    with storage.engine.connect() as connection:
        counts = {
            table: connection.execute(
                sa.select(sa.func.count()).select_from(sa.table(table)).where(without_owner(table))
            ).scalar_one()
            for table in (*OF_TRIALS, *OF_STUDIES)
        }
    return {table: count for table, count in counts.items() if count}


def without_owner(table: str) -> sa.ColumnElement[bool]:
    """Return the condition that the study or the trial of a row is missing."""
    in_a_study = sa.column("study_id").in_(sa.select(sa.column("study_id")).select_from(STUDIES))
    if table in OF_STUDIES:
        return sa.not_(in_a_study)
    trials: sa.Select[tuple[int]] = sa.select(sa.column("trial_id")).select_from(TRIALS).where(in_a_study)
    return sa.column("trial_id").not_in(trials)


def whole_studies(where: StoragePaths) -> PatientStudies | None:
    """Open the studies of a store for reading. Nothing is written.

    Args:
        where: Paths of the store, which must exist.

    Returns:
        Optuna's storage; None if the store has no studies yet.

    Raises:
        StoreError: A study is damaged, or the store cannot be read. The message gives the remedy.
    """
    with studies_in_one_line(where):
        storage = readable_studies(where)
        if storage is not None:
            _refuse_damaged(storage, where)
    return storage


def _refuse_damaged(storage: RDBStorage, where: StoragePaths) -> None:
    damaged = damaged_studies(storage)
    if damaged:
        first = damaged[0]
        more = f" (and {len(damaged) - 1} more; `reproduce store check` lists all)" if len(damaged) > 1 else ""
        raise StoreError(
            f"store {where.shown_store}: study {first.name} is damaged: {first.reason}{more}; {_remedy(damaged)}"
        )
    if rows := rows_without_owner(storage):
        raise StoreError(
            f"store {where.shown_store}: {sum(rows.values())} row(s) of searches belong to no study "
            f"({', '.join(rows)}); `reproduce run` sets them aside"
        )


def _remedy(damaged: Sequence[DamagedStudy]) -> str:
    if all(study.is_of_the_suite for study in damaged):
        return "`reproduce run` sets it aside and makes the search again from the stored trainings"
    return "another program has made it; repair or delete it there, or use another store with --store"


def _why_damaged(storage: BaseStorage, study: int, name: str) -> str | None:
    """Return what is damaged in a study; None if it is whole."""
    # Optuna reads in several steps. If another process writes between them, only the first look sees a contradiction.
    return None if _first_damage(storage, study, name) is None else _first_damage(storage, study, name)


def _first_damage(storage: BaseStorage, study: int, name: str) -> str | None:
    try:
        identity = storage.get_study_user_attrs(study).get(IDENTITY)
        storage.get_study_system_attrs(study)
        directions = list(storage.get_study_directions(study))
    except StoreError:
        raise
    except Exception as error:  # Optuna raises whatever its parsers do.
        return f"its attributes cannot be read ({_said(error)})"
    try:
        trials = storage.get_all_trials(study, deepcopy=False)
    except StoreError:
        raise
    except Exception as error:
        return _unreadable_trial(storage, study) or f"its trials cannot be read ({_said(error)})"
    if not _NAME.fullmatch(name):
        return None  # Another program has made it, and knows what must be true of it.
    if directions != [StudyDirection.MAXIMIZE]:
        return "the row with its direction is missing or wrong"
    if identity is None:  # The suite may have been interrupted before it wrote the identity.
        return f"its attribute `{IDENTITY}` is missing" if trials else None
    if fingerprint_of(identity) != name.rpartition(" ")[2]:
        return f"its attribute `{IDENTITY}` does not give the fingerprint in its name"
    return next(_contradictions(trials, {parameter["target"] for parameter in identity["space"]}), None)


def _unreadable_trial(storage: BaseStorage, study: int) -> str | None:
    """Name the first trial that cannot be read; None if each of them can be."""
    assert isinstance(storage, RDBStorage)
    columns: tuple[sa.ColumnClause[Any], ...] = (sa.column("trial_id"), sa.column("number"))
    query = sa.select(*columns).select_from(TRIALS)
    with storage.engine.connect() as connection:
        rows = connection.execute(query.where(sa.column("study_id") == study).order_by(sa.column("number"))).all()
    for trial, number in rows:
        try:
            storage.get_trial(trial)
        except StoreError:
            raise
        except Exception as error:
            return f"trial {number} cannot be read ({_said(error)})"
    return None


def _contradictions(trials: Sequence[FrozenTrial], targets: set[str]) -> Iterator[str]:
    """Yield what cannot be true of trials that the suite has written."""
    for position, trial in enumerate(sorted(trials, key=lambda trial: trial.number)):
        if trial.number != position:
            yield f"trial {position} is missing"
            return
        if trial.state == TrialState.PRUNED:
            yield f"trial {trial.number} has the state {trial.state.name}, which no search writes"
        elif trial.state != TrialState.COMPLETE and trial.values is not None:
            yield f"trial {trial.number} has a score, but the state {trial.state.name}"
        elif trial.state == TrialState.COMPLETE and (reason := _why_not_finished(trial, targets)):
            yield f"trial {trial.number} {reason}"


def _why_not_finished(trial: FrozenTrial, targets: set[str]) -> str | None:
    """Return why a trial cannot be a finished one; None if it can."""
    values, fingerprints = trial.user_attrs.get(FOLD_VALUES), trial.user_attrs.get(TRAININGS)
    if set(trial.params) != targets:
        return "lacks a hyperparameter"
    if not (isinstance(values, list) and values and all(isinstance(value, int | float) for value in values)):
        return "lacks the scores of its folds"
    if not (isinstance(fingerprints, list) and len(fingerprints) == len(values)):
        return "lacks the fingerprints of its trainings"
    if trial.values is None or len(trial.values) != 1:
        return "lacks its score"
    if RACED not in trial.user_attrs and not math.isclose(trial.values[0], sum(values) / len(values), rel_tol=1e-9):
        return "has a score that is not the mean over its folds"
    return None


def _said(error: Exception) -> str:
    reason = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
