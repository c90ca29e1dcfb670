"""The store: results of trainings by fingerprint, runs, and the experiments that they belong to.

One SQLite file holds everything; weights are files in the artifact folder. Each result is committed on its own, so a
crash loses no finished training. Threads and processes can use one store at the same time.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

import pandas as pd

from results.records.frame import ExportedRun, class_scores_table, curves_table, folds_table, test_points_table
from results.records.records import EVALUATION_VERSION, FoldResult, RunRecord, TestCurve
from results.spec.plan import Plan
from results.store import StoreError
from results.store.database import AnyRecord, Database
from results.store.listings import listed_runs
from results.store.searches import Searches
from results.values import fingerprint_of, identity_of

StoredTable = Literal["folds", "curves", "test_points", "class_scores", "failures"]

_LISTED = f"""
    SELECT runs.*, listed.study FROM {listed_runs()} AS listed
    JOIN runs ON runs.fingerprint = listed.run_fingerprint
    WHERE experiment = ? ORDER BY method, search, run
"""

_STATE = (
    "SELECT sha256 FROM experiments WHERE fingerprint = ?",
    "SELECT method, search, run, study, sha256 FROM experiment_runs JOIN runs ON fingerprint = run_fingerprint "
    "WHERE experiment = ? ORDER BY method, search, run",
    "SELECT method, search, study, number, sha256 FROM experiment_studies JOIN trials USING (study) "
    "WHERE experiment = ? ORDER BY method, search, number",
)


@dataclass(frozen=True)
class Start:
    """An experiment of a store that was started with certain methods.

    Attributes:
        last_started: Time of its last start in UTC, ISO 8601.
        runs: Number of its runs with test scores, without those of a method's earlier card.
    """

    name: str
    fingerprint: str
    last_started: str
    runs: int
    plan: Plan

    @property
    def identity(self) -> str:
        """Short form of the fingerprint, which commands take in place of the name."""
        return identity_of(self.fingerprint)

    @property
    def finished(self) -> bool:
        """Whether every planned run is there."""
        return self.runs >= self.plan.runs

    @property
    def budget(self) -> str:
        """Searches of each method, and trials of each search, such as `3 x 15`."""
        return f"{self.plan.experiment.search.searches} x {self.plan.most_trials}"

    @cached_property
    def without_methods(self) -> str:
        """What it has in common with starts that differ in their methods alone."""
        data = self.plan.data.fingerprint if self.plan.data else self.fingerprint
        return self.plan.experiment.fingerprint_without_rows(self.name, data)


def meant_by_name(starts: Iterable[Start]) -> dict[str, Start]:
    """Return the start that each name means: the latest finished one, or the latest if none is finished.

    So a run that was interrupted does not hide a finished one.

    Args:
        starts: The latest first.
    """
    found: dict[str, Start] = {}
    for start in starts:
        if start.name not in found or (start.finished and not found[start.name].finished):
            found[start.name] = start
    return found


class Store:
    """Results in a database, with a folder for files. Every method raises `StoreError` if the database fails.

    Args:
        place: The SQLite file, which is made if there is none.
        artifacts: Folder of weights and figure data.

    Attributes:
        url: The path of the file, for messages.
        artifacts: The folder.
        searches: The studies and their trials.
    """

    def __init__(self, place: str | Path, artifacts: Path) -> None:
        self.artifacts = artifacts
        self.database = Database(place)
        self.url = str(self.database.file)
        self.searches = Searches(self.database)

    def fold_result(self, fingerprint: str) -> FoldResult | None:
        """Return the result of a training, or None if it was never finished."""
        return self._one(FoldResult, "trainings", fingerprint)

    def fold_results(self, fingerprints: Collection[str]) -> dict[str, FoldResult]:
        """Return the results of trainings by fingerprint. Unfinished trainings are left out."""
        return dict(self.database.records(FoldResult, "trainings", fingerprints))

    def finished_folds(self, fingerprints: Collection[str]) -> set[str]:
        """Return the fingerprints of those trainings that have a stored result."""
        query = "SELECT fingerprint FROM trainings WHERE fingerprint IN (SELECT value FROM json_each(?))"
        return {row["fingerprint"] for row in self.database.rows(query, json.dumps([*fingerprints]))}

    def trainings(self) -> Iterator[FoldResult]:
        """Yield the results of all finished trainings, one at a time: a store can have more than fit in memory."""
        return (result for _, result in self.database.records(FoldResult, "trainings"))

    def put_fold(self, result: FoldResult) -> None:
        """Store the result of a finished training. If the training has a stored result, that one stays."""
        self.database.put("trainings", fingerprint=result.fingerprint, content=result.model_dump_json())

    def run(self, fingerprint: str) -> RunRecord | None:
        """Return the test evaluation of a reproduction, or None if it is not stored."""
        return self._one(RunRecord, "runs", fingerprint)

    def put_run(self, record: RunRecord) -> None:
        """Store the test evaluation of a reproduction. If it is stored already, the stored one stays."""
        self.database.put("runs", fingerprint=record.fingerprint, content=record.model_dump_json())

    def put_experiment(self, fingerprint: str, name: str, plan: Plan) -> None:
        """Store that an experiment was started now. The plan replaces that of an earlier start."""
        (latest,) = self.database.rows("SELECT max(last_started) AS started FROM experiments")
        now = datetime.now(UTC)
        if latest["started"] is not None:  # The clock may have been set back.
            now = max(now, datetime.fromisoformat(latest["started"]) + timedelta(microseconds=1))
        row = {"fingerprint": fingerprint, "name": name, "last_started": now.isoformat(timespec="microseconds")}
        self.database.put("experiments", replace=True, **row, content=plan.model_dump_json())

    def enlist(self, experiment: str, method: str, run: RunRecord, study: str | None = None) -> None:
        """Record that a run, stored by `put_run`, is one of an experiment's reproductions.

        Args:
            experiment: The experiment's fingerprint.
            method: The method's key.
            run: The run, with its number and the number of its search.
            study: Fingerprint of the study that found the setting; None if nothing was searched.
        """
        row = {"experiment": experiment, "method": method, "search": run.search, "run": run.run}
        self.database.put("experiment_runs", replace=True, **row, run_fingerprint=run.fingerprint, study=study)

    def unlist(self, experiment: str, methods: Iterable[str]) -> None:
        """Record that an experiment has no runs of these methods any more. The runs themselves stay in the store."""
        with self.database.writing() as connection:
            for method in methods:
                connection.execute(
                    "DELETE FROM experiment_runs WHERE experiment = ? AND method = ?", (experiment, method)
                )

    def put_failure(self, training: str, reason: str) -> None:
        """Store that a training failed for a reason outside the method; it is trained again and gets no score."""
        self.database.put("failures", training=training, reason=reason, at=datetime.now(UTC).isoformat())

    def put_test_curve(self, curve: TestCurve) -> None:
        """Store the test scores along a training, unless such scores of this evaluation version are stored."""
        if self.test_curve(curve.fingerprint) is None:
            content = curve.model_dump_json()
            self.database.put("test_curves", replace=True, fingerprint=curve.fingerprint, content=content)

    def test_curve(self, fingerprint: str) -> TestCurve | None:
        """Return the test scores along a training, or None if none of the current evaluation version are stored."""
        return self.test_curves([fingerprint]).get(fingerprint)

    def test_curves(self, fingerprints: Collection[str] | None = None) -> dict[str, TestCurve]:
        """Return `test_curve` of many trainings, or of all, by fingerprint. Trainings without a curve are left out."""
        curves = self.database.records(TestCurve, "test_curves", fingerprints)
        return {name: curve for name, curve in curves if curve.evaluation_version == EVALUATION_VERSION}

    def latest_experiments(self) -> dict[str, str]:
        """Return the fingerprint of the experiment that each name means (`meant_by_name`), by name."""
        return {name: start.fingerprint for name, start in meant_by_name(self.starts()).items()}

    def experiment(self, fingerprint: str) -> Plan:
        """Return the plan that `put_experiment` stored; raise StoreError if there is none."""
        plan = self._one(Plan, "experiments", fingerprint)
        if plan is None:
            raise StoreError(f"store {self.url}: holds no experiment {fingerprint}")
        return plan

    def experiment_runs(self, experiment: str) -> list[RunRecord]:
        """Return the runs of an experiment, ordered by method, search and number; each names its study.

        Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
        """
        rows = self.database.rows(_LISTED, experiment)
        return [self._found_by(row["study"], record) for row, record in self.database.readable(RunRecord, rows, "runs")]

    def _found_by(self, study: str | None, record: RunRecord) -> RunRecord:
        """A run as one of this study: runs of equal settings are one record, which names what found it first."""
        setting = record.hyperparameters
        if study not in (None, record.study) and (trials := self.searches.trials(study)):
            unnamed = [target for target in trials[0].setting if target not in setting]
            setting = setting | record.specs[0].method.values_of(unnamed)
        return record.model_copy(update={"study": study, "hyperparameters": setting})

    def state_of(self, experiment: str) -> str:
        """Return a hash of everything stored of an experiment. It is the same until something is added or changed."""
        rows = [[*row] for query in _STATE for row in self.database.rows(query, experiment)]
        return fingerprint_of([rows, self.count("test_curves")])

    def starts(self) -> list[Start]:
        """Return all started experiments, the latest first."""
        rows = self.database.rows(
            f"SELECT *, (SELECT count(*) FROM {listed_runs()} WHERE experiment = fingerprint) AS runs "
            "FROM experiments ORDER BY last_started DESC"
        )
        return [
            Start(row["name"], row["fingerprint"], row["last_started"], row["runs"], plan)
            for row, plan in self.database.readable(Plan, rows, "experiments")
        ]

    def count(self, table: str) -> int:
        """Return the number of rows of a table of the database."""
        (row,) = self.database.rows(f"SELECT count(*) FROM {table}")
        return int(row[0])

    def table(self, name: StoredTable) -> pd.DataFrame:
        """Return everything of one kind as a frame, for export.

        Args:
            name: `folds` (all finished trainings), `curves` (their validations), `test_points` (tests along trainings),
                `class_scores` (of all runs), or `failures` (trainings that failed, with reason and time).
        """
        match name:
            case "folds" | "curves":
                return self.training_tables()[name]
            case "test_points":
                return test_points_table(self.test_curves().values())
            case "class_scores":
                return class_scores_table(self._runs())
            case "failures":
                rows = self.database.rows("SELECT training, reason, at FROM failures ORDER BY id")
                return pd.DataFrame([tuple(row) for row in rows], columns=["training", "reason", "at"])

    def training_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables `folds` and `curves`. All trainings are read once, and some at a time."""
        trainings, parts = self.trainings(), [(folds_table([]), curves_table([]))]
        while some := list(islice(trainings, 500)):
            parts.append((folds_table(some), curves_table(some)))
        # A frame without rows has no types of columns to keep.
        folds, curves = (pd.concat(frames[1:] or frames, ignore_index=True) for frames in zip(*parts, strict=True))
        order = ["dataset", "method", "fold"]
        return {"folds": folds.sort_values(order, kind="stable", ignore_index=True), "curves": curves}

    def exported_runs(self) -> list[ExportedRun]:
        """Return the runs of all experiments, those of the latest first.

        Left out are runs that no experiment lists any more, such as those of a search that went on in wider ranges.
        """
        runs: list[ExportedRun] = []
        for start in self.starts():
            title, searches = start.plan.title, start.plan.experiment.search.searches
            about = (start.name, start.fingerprint, title, start.plan.most_trials, searches)
            runs += [ExportedRun(record, *about) for record in self.experiment_runs(start.fingerprint)]
        return runs

    def _runs(self) -> list[RunRecord]:
        records = (record for _, record in self.database.records(RunRecord, "runs"))
        return sorted(records, key=lambda record: (record.dataset, record.method))

    def _one(self, kind: type[AnyRecord], table: str, fingerprint: str) -> AnyRecord | None:
        return dict(self.database.records(kind, table, [fingerprint])).get(fingerprint)
