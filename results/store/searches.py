"""The searches in the store: what decides a study, its trials, and which experiment it belongs to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from results.records.trials import Trial
from results.store.database import Database, content_of, insert
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


class Searches:
    """The studies and trials of a store. Every method raises `StoreError` if the database fails.

    Args:
        database: The store's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put_study(self, study: str, identity: Mapping[str, JsonValue]) -> None:
        """Keep what decides a study, under its fingerprint. What is kept already stays."""
        self._database.put("studies", fingerprint=study, content=canonical_json(identity))

    def trials(self, study: str) -> tuple[Trial, ...]:
        """Return the trials of a study in order; none if it is not in the store.

        Raises:
            StoreError: A row is damaged or missing.
        """
        rows = self._database.rows("SELECT * FROM trials WHERE study = ? ORDER BY number", study)
        trials = tuple(self._database.parsed(Trial, row, f"trial {row['number']} of study {study}") for row in rows)
        if [trial.number for trial in trials] != list(range(len(trials))):
            raise self._database.damaged(f"study {study}", "a trial is missing")
        return trials

    def put_trial(self, study: str, trial: Trial) -> None:
        """Keep a trial of a kept study. It replaces the running trial of the same number."""
        content = trial.model_dump_json()
        self._database.put("trials", replace=True, study=study, number=trial.number, content=content)

    def enlist(self, experiment: str, studies: Mapping[str, Sequence[tuple[str, Mapping[str, JsonValue]]]]) -> None:
        """Say which studies are the searches of an experiment's methods, in place of those of an earlier start.

        Args:
            experiment: The experiment's fingerprint, which the store must have.
            studies: Fingerprint and identity of each search in order, by method; none for a method without a search.
        """
        with self._database.writing() as connection:
            for method, searches in studies.items():
                place = {"experiment": experiment, "method": method}
                connection.execute(
                    "DELETE FROM experiment_studies WHERE experiment = :experiment AND method = :method", place
                )
                for search, (study, identity) in enumerate(searches):
                    insert(connection, "studies", {"fingerprint": study, "content": canonical_json(identity)})
                    insert(connection, "experiment_studies", {**place, "search": search, "study": study})

    def of_experiment(self, experiment: str) -> dict[tuple[str, int], StoredStudy]:
        """Return the studies of an experiment with their trials, by method and number of the search."""
        rows = self._database.rows(
            "SELECT method, search, studies.* FROM experiment_studies JOIN studies ON studies.fingerprint = study "
            "WHERE experiment = ? ORDER BY method, search",
            experiment,
        )
        return {(row["method"], row["search"]): self._study(row) for row in rows}

    def _study(self, row: Any) -> StoredStudy:
        fingerprint = row["fingerprint"]
        try:
            identity = json.loads(content_of(row))
        except ValueError as error:
            raise self._database.damaged(f"row {fingerprint} of studies", str(error)) from error
        return StoredStudy(fingerprint, identity, self.trials(fingerprint))
