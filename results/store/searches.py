"""The searches in the store: what decides a study, its trials, and which experiment it belongs to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue, ValidationError

from results.records.trials import Trial
from results.store.database import Database, insert_or_replace, insert_unless_present
from results.store.patience import LockWait, StoreError, patient_methods
from results.store.schema import EXPERIMENT_STUDIES, STUDIES, TRIALS
from results.values import canonical_json


@dataclass(frozen=True)
class StoredStudy:
    """A study with its trials.

    Attributes:
        fingerprint: The study's fingerprint.
        identity: Everything that decides it.
        trials: Its trials in order.
    """

    fingerprint: str
    identity: Mapping[str, Any]
    trials: tuple[Trial, ...]

    def finished(self, budget: int) -> tuple[Trial, ...]:
        """Return the finished ones among the first `budget` trials; a later start may have added more."""
        return tuple(trial for trial in self.trials[:budget] if trial.state != "running")


@patient_methods
class Searches:
    """The studies and trials of a store (a `TrialLog`). Every method raises `StoreError` if the database fails.

    Only one run at a time may write to a study; `Leases` see to that.

    Args:
        database: The store's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def lock_wait(self) -> LockWait:
        """What to do about a SQLite file that stays locked."""
        return self._database.lock_wait

    def put_study(self, study: str, identity: Mapping[str, JsonValue]) -> None:
        """Keep what decides a study, under its fingerprint. What is kept already stays."""
        self._database.insert_once(STUDIES, {"fingerprint": study, "identity": canonical_json(identity)})

    def trials(self, study: str) -> tuple[Trial, ...]:
        """Return the trials of a study in order; none if it is not in the store.

        Raises:
            StoreError: A row is damaged or missing.
        """
        query = sa.select(TRIALS.c.trial).where(TRIALS.c.study == study).order_by(TRIALS.c.number)
        with self._database.reading() as connection:
            texts = connection.execute(query).scalars().all()
        try:
            trials = tuple(Trial.model_validate_json(text) for text in texts)
        except ValidationError as error:
            raise self._damaged(study, error.errors()[0]["msg"]) from None
        if [trial.number for trial in trials] != list(range(len(trials))):
            raise self._damaged(study, "a trial is missing")
        return trials

    def _damaged(self, study: str, reason: str) -> StoreError:
        return StoreError(
            f"store {self._database.url}: the search {study} is damaged ({reason}); use a copy of the store from "
            f"before, or remove the search with the SQL line: DELETE FROM search_trials WHERE study = '{study}'; the "
            "next run makes it again from the stored trainings"
        )

    def put_trial(self, study: str, trial: Trial) -> None:
        """Keep a trial of a kept study. It replaces the running trial of the same number."""
        with self._database.writing() as connection:
            insert_or_replace(connection, TRIALS, trial_row(study, trial))

    def enlist(self, experiment: str, studies: Mapping[str, Sequence[tuple[str, Mapping[str, JsonValue]]]]) -> None:
        """Say which studies are the searches of an experiment's methods, in place of those of an earlier start.

        Args:
            experiment: The experiment's fingerprint, which the store must have.
            studies: Fingerprint and identity of each search in order, by method; none for a method without a search.
        """
        listed = EXPERIMENT_STUDIES.c
        of_methods = (listed.experiment == experiment) & listed.method.in_(list(studies))
        with self._database.writing() as connection:
            connection.execute(sa.delete(EXPERIMENT_STUDIES).where(of_methods))
            for method, searches in studies.items():
                for search, (study, identity) in enumerate(searches):
                    kept = {"fingerprint": study, "identity": canonical_json(identity)}
                    insert_unless_present(connection, STUDIES, kept)
                    row = {"experiment": experiment, "method": method, "search": search, "study": study}
                    insert_or_replace(connection, EXPERIMENT_STUDIES, row)

    def of_experiment(self, experiment: str) -> dict[tuple[str, int], StoredStudy]:
        """Return the studies of an experiment with their trials, by method and number of the search."""
        listed = (
            sa.select(EXPERIMENT_STUDIES.c.method, EXPERIMENT_STUDIES.c.search, STUDIES)
            .join(STUDIES, STUDIES.c.fingerprint == EXPERIMENT_STUDIES.c.study)
            .where(EXPERIMENT_STUDIES.c.experiment == experiment)
            .order_by(EXPERIMENT_STUDIES.c.method, EXPERIMENT_STUDIES.c.search)
        )
        with self._database.reading() as connection:
            rows = connection.execute(listed).all()
        return {
            (row.method, row.search): StoredStudy(
                row.fingerprint, json.loads(row.identity), self.trials(row.fingerprint)
            )
            for row in rows
        }


def trial_row(study: str, trial: Trial) -> dict[str, str | int | float | None]:
    """Return the row of a trial in the table `search_trials`."""
    return {
        "study": study,
        "number": trial.number,
        "state": trial.state,
        "score": trial.score,
        "trial": trial.model_dump_json(),
    }
