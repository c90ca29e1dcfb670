"""The store: results of trainings by fingerprint, runs, and the experiments that they belong to.

One SQLite file holds everything; weights are files in the artifact folder. Each result is committed on its own, so a
crash loses no finished training. Threads and processes can use one store at the same time.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from results.records.experiment_summary import ExperimentSummary
from results.records.frames import (
    ExportedRun,
    Timing,
    class_scores_frame,
    curves_frame,
    runs_frame,
    test_curves_frame,
)
from results.records.records import EVALUATION_VERSION, FoldResult, RunRecord, TestCurve
from results.spec.training_spec import FoldSpec
from results.store.contents import StoreContents
from results.store.database import AnyRecord, Database, TrainingRecord
from results.store.errors import StoreError
from results.store.searches import Searches

__all__ = ["Store", "StoreError"]

# Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
_LISTED = """
    SELECT runs.*, listed.study FROM experiment_runs AS listed
    JOIN runs ON runs.fingerprint = listed.run_fingerprint
    LEFT JOIN experiment_studies AS searched USING (experiment, method, search)
    WHERE listed.study IS searched.study AND experiment = ?
    ORDER BY method, search, run
"""


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
        _, result = self.fold_results([fingerprint]).get(fingerprint, (None, None))
        return result

    def fold_results(self, fingerprints: Collection[str]) -> dict[str, tuple[FoldSpec, FoldResult]]:
        """Return the specs and results of trainings by fingerprint. Unfinished trainings are left out."""
        stored = self.database.records(TrainingRecord, "trainings", fingerprints)
        return {fingerprint: (training.spec, training.result) for fingerprint, training in stored}

    def finished_folds(self, fingerprints: Collection[str]) -> set[str]:
        """Return the fingerprints of those trainings that have a stored result."""
        return {row["fingerprint"] for row in self.database.rows("SELECT fingerprint FROM trainings")} & {*fingerprints}

    def iterations(self, fingerprints: Collection[str]) -> list[int]:
        """Return the numbers of iterations of those trainings that have a stored result."""
        return [result.iterations for _, result in self.fold_results(fingerprints).values()]

    def timings(self) -> list[Timing]:
        """Return the specs, iterations and durations of all finished trainings."""
        stored = self.database.records(TrainingRecord, "trainings")
        return [Timing(one.spec, one.result.iterations, one.result.wall_time) for _, one in stored]

    def put_fold(self, spec: FoldSpec, result: FoldResult) -> None:
        """Store the result of a finished training. If the training has a stored result, that one stays."""
        content = TrainingRecord(spec=spec, result=result).model_dump_json()
        self.database.put("trainings", fingerprint=spec.fingerprint, content=content)

    def run(self, fingerprint: str) -> RunRecord | None:
        """Return the test evaluation of a reproduction, or None if it is not stored."""
        return self._one(RunRecord, "runs", fingerprint)

    def put_run(self, record: RunRecord) -> None:
        """Store the test evaluation of a reproduction. If it is stored already, the stored one stays."""
        self.database.put("runs", fingerprint=record.fingerprint, content=record.model_dump_json())

    def put_experiment(self, fingerprint: str, name: str, summary: ExperimentSummary) -> None:
        """Store that an experiment was started now. The summary replaces that of an earlier start."""
        (latest,) = self.database.rows("SELECT max(last_started) AS started FROM experiments")
        now = datetime.now(UTC)
        if latest["started"] is not None:  # The clock may have been set back.
            now = max(now, datetime.fromisoformat(latest["started"]) + timedelta(microseconds=1))
        row = {"fingerprint": fingerprint, "name": name, "last_started": now.isoformat(timespec="microseconds")}
        self.database.put("experiments", replace=True, **row, content=summary.model_dump_json())

    def enlist(self, experiment: str, method: str, run: RunRecord, study: str | None = None) -> None:
        """Store that a run, which `put_run` has stored, is one of an experiment's reproductions.

        Args:
            experiment: The experiment's fingerprint.
            method: The method's key.
            run: The run, with its number and the number of its search.
            study: Fingerprint of the study that found the setting; None if nothing was searched.
        """
        row = {"experiment": experiment, "method": method, "search": run.search, "run": run.run}
        self.database.put("experiment_runs", replace=True, **row, run_fingerprint=run.fingerprint, study=study)

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

    def contents(self) -> StoreContents:
        """Return the counts of what the store holds."""
        return StoreContents(self.database)

    def folds(self) -> pd.DataFrame:
        """Return all finished trainings, one row each.

        Columns: fingerprint, dataset, method, fold, status, best_map_at_r, iterations, wall_time.
        """
        rows = [
            {
                "fingerprint": fingerprint,
                "dataset": training.spec.dataset,
                "method": training.spec.method.name,
                "fold": training.spec.fold,
                "status": training.result.status,
                "best_map_at_r": training.result.best_map_at_r,
                "iterations": training.result.iterations,
                "wall_time": training.result.wall_time,
            }
            for fingerprint, training in self.database.records(TrainingRecord, "trainings")
        ]
        columns = ["fingerprint", "dataset", "method", "fold", "status", "best_map_at_r", "iterations", "wall_time"]
        return pd.DataFrame(rows, columns=columns).sort_values(["dataset", "method", "fold"], ignore_index=True)

    def curves(self) -> pd.DataFrame:
        """Return all validations of all trainings, one row each.

        Columns: fingerprint, iteration, map_at_r, r_precision, precision_at_1, loss.
        """
        return curves_frame(one.result for _, one in self.database.records(TrainingRecord, "trainings"))

    def test_points(self) -> pd.DataFrame:
        """Return all tests along trainings, one row each.

        Columns: fingerprint, iteration, precision_at_1, r_precision, map_at_r.
        """
        return test_curves_frame(self.test_curves().values())

    def experiments(self) -> pd.DataFrame:
        """Return all started experiments, one row each, the latest first: fingerprint, name, last_started."""
        return self._frame("fingerprint, name, last_started", "experiments", "last_started DESC")

    def latest_experiments(self) -> dict[str, str]:
        """Return the fingerprint of the latest experiment of each name, by name, the latest first."""
        latest: dict[str, str] = {}
        for row in self.database.rows("SELECT name, fingerprint FROM experiments ORDER BY last_started DESC"):
            latest.setdefault(row["name"], row["fingerprint"])
        return latest

    def experiment(self, fingerprint: str) -> ExperimentSummary:
        """Return the summary that `put_experiment` stored; raise StoreError if there is none."""
        summary = self._one(ExperimentSummary, "experiments", fingerprint)
        if summary is None:
            raise StoreError(f"store {self.url}: holds no experiment {fingerprint}")
        return summary

    def failures(self) -> pd.DataFrame:
        """Return all failed trainings, one row each: training, reason, at (UTC)."""
        return self._frame("training, reason, at", "failures", "id")

    def experiment_runs(self, experiment: str) -> list[RunRecord]:
        """Return the runs of an experiment, ordered by method, search and number; each names its study.

        Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
        """
        rows = self.database.rows(_LISTED, experiment)
        records = [self.database.parsed(RunRecord, row, f"row {row['fingerprint']} of runs") for row in rows]
        # Two studies can find one setting and share its runs; the record names the first of them.
        return [record.model_copy(update={"study": row["study"]}) for row, record in zip(rows, records, strict=True)]

    def runs(self) -> pd.DataFrame:
        """Return the runs of all experiments, one row each; `frames.runs_frame` lists the columns.

        Those of the latest experiment come first, those that are in none last.
        """
        runs: list[tuple[RunRecord, tuple[Any, ...]]] = []
        for started in self.experiments().itertuples():
            name, fingerprint = str(started.name), str(started.fingerprint)
            summary = self.experiment(fingerprint)
            facts = (summary.title, summary.trials, summary.experiment.search.searches)
            runs += [(record, (name, fingerprint, *facts)) for record in self.experiment_runs(fingerprint)]
        known = {record.fingerprint for record, _ in runs}
        runs += [(record, ()) for record in self._records() if record.fingerprint not in known]
        return runs_frame([ExportedRun(record, *facts) for record, facts in runs])

    def class_scores(self) -> pd.DataFrame:
        """Return the scores of all test classes, one row per run and class; see `frames.class_scores_frame`."""
        return class_scores_frame(self._records())

    def _one(self, kind: type[AnyRecord], table: str, fingerprint: str) -> AnyRecord | None:
        return dict(self.database.records(kind, table, [fingerprint])).get(fingerprint)

    def _records(self) -> list[RunRecord]:
        records = (record for _, record in self.database.records(RunRecord, "runs"))
        return sorted(records, key=lambda record: (record.dataset, record.method))

    def _frame(self, columns: str, table: str, order: str) -> pd.DataFrame:
        rows = self.database.rows(f"SELECT {columns} FROM {table} ORDER BY {order}")
        return pd.DataFrame([tuple(row) for row in rows], columns=columns.split(", "))
