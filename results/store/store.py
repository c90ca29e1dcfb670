"""The store: results of trainings by fingerprint, runs, and the experiments that they belong to (see SCHEMA.md).

One database holds everything. Weights are files in the artifact folder. Each result is
committed on its own, so a crash loses no finished training.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import ValidationError

from results.records.experiment_summary import ExperimentSummary
from results.records.frames import Timing
from results.records.records import EVALUATION_VERSION, FoldResult, RunRecord, TestCurve
from results.spec.training_spec import FoldSpec
from results.store.contents import StoreContents, read_contents, start_after_all
from results.store.database import Database, insert_or_replace, insert_unless_present, parsed, unreadable
from results.store.leases import Leases
from results.store.listed_runs import listed_runs, runs_of
from results.store.patience import IncompleteExperimentError, LockWait, StoreError, patient_methods
from results.store.schema import (
    EXPERIMENT_RUNS,
    EXPERIMENTS,
    FAILURES,
    FOLD_RESULTS,
    RUNS,
    TEST_CURVES,
)
from results.store.searches import Searches
from results.store.urls import StorePlace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["IncompleteExperimentError", "Store", "StoreError"]


@patient_methods
class Store:
    """Results in a database, with a folder for files.

    Every method raises `StoreError` if the database fails. If a PostgreSQL server restarts, the call is repeated.

    Args:
        url: The database: the path of a SQLite file, or a SQLAlchemy URL. Missing tables are created.
        artifacts: Folder of weights and figure data.
        only_read: Create no tables.

    Attributes:
        url: The path, or the URL with its password hidden, for messages.
        artifacts: The folder.
        searches: The studies and their trials.

    Raises:
        StoreError: The URL is not usable, or the database has tables of another program or of another schema version.
    """

    def __init__(self, url: StorePlace, artifacts: Path, *, only_read: bool = False) -> None:
        self.artifacts = artifacts
        self._database = Database(url, only_read=only_read)
        self.url, self.lock_wait = self._database.url, self._database.lock_wait
        self.searches = Searches(self._database)

    def wait_while_locked(self, lock_wait: LockWait) -> None:
        """Set what to do about a SQLite file that stays locked. By default a call fails after a minute."""
        self.lock_wait = self._database.lock_wait = lock_wait

    def leases(self) -> Leases:
        """Return the leases of one run, with which runs on the same store divide the work."""
        return Leases(self._database)

    def fold_result(self, fingerprint: str) -> FoldResult | None:
        """Return the result of a training, or None if it was never finished."""
        query = sa.select(FOLD_RESULTS.c.result).where(FOLD_RESULTS.c.fingerprint == fingerprint)
        with self._database.reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else parsed(FoldResult, text, self.url)

    def timings(self) -> list[Timing]:
        """Return the specs, iterations and durations of all finished trainings."""
        columns = FOLD_RESULTS.c
        with self._database.reading() as connection:
            rows = list(connection.execute(sa.select(columns.spec, columns.iterations, columns.wall_time)))
        return [Timing(parsed(FoldSpec, spec, self.url), iterations, seconds) for spec, iterations, seconds in rows]

    def put_fold(self, spec: FoldSpec, result: FoldResult) -> None:
        """Store the result of a finished training. If the training has a stored result, that one stays."""
        row = {
            "fingerprint": result.fingerprint,
            "dataset": spec.dataset,
            "method": spec.method.name,
            "fold": spec.fold,
            "status": result.status,
            "best_map_at_r": result.best_map_at_r,
            "iterations": result.iterations,
            "wall_time": result.wall_time,
            "spec": spec.model_dump_json(),
            "result": result.model_dump_json(),
        }
        self._database.insert_once(FOLD_RESULTS, row)

    def run(self, fingerprint: str) -> RunRecord | None:
        """Return the test evaluation of a reproduction, or None if it is not stored."""
        query = sa.select(RUNS.c.record).where(RUNS.c.fingerprint == fingerprint)
        with self._database.reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else parsed(RunRecord, text, self.url)

    def put_run(self, record: RunRecord) -> None:
        """Store the test evaluation of a reproduction. If it is stored already, the stored one stays."""
        row = {
            "fingerprint": record.fingerprint,
            "dataset": record.dataset,
            "method": record.method,
            "record": record.model_dump_json(),
        }
        self._database.insert_once(RUNS, row)

    def put_experiment(self, fingerprint: str, name: str, summary: ExperimentSummary) -> None:
        """Store that an experiment was started now. The summary replaces that of an earlier start."""
        text = json.dumps(summary.model_dump(mode="json"))
        with self._database.writing() as connection:
            started = start_after_all(connection).isoformat()
            row = {"fingerprint": fingerprint, "name": name, "settings": text, "last_started": started}
            insert_or_replace(connection, EXPERIMENTS, row)

    def enlist(self, experiment: str, method: str, run: RunRecord, study: str | None = None) -> None:
        """Store that a run, which `put_run` has stored, is one of an experiment's reproductions.

        Args:
            experiment: The experiment's fingerprint.
            method: The method's key.
            run: The run, with its number and the number of its search.
            study: Fingerprint of the study that found the setting; None if nothing was searched.
        """
        row = {"experiment": experiment, "method": method, "search": run.search, "run": run.run}
        row |= {"run_fingerprint": run.fingerprint, "study": study}
        with self._database.writing() as connection:
            insert_or_replace(connection, EXPERIMENT_RUNS, row)

    def put_failure(self, fold_fingerprint: str, reason: str) -> None:
        """Store that a training failed for a reason outside the method; it is trained again and gets no score."""
        row = {"fold_fingerprint": fold_fingerprint, "reason": reason, "at": datetime.now(UTC).isoformat()}
        with self._database.writing() as connection:
            connection.execute(sa.insert(FAILURES).values(row))

    def iterations(self, fingerprints: Collection[str]) -> list[int]:
        """Return the numbers of iterations of those trainings that have a stored result."""
        rows = self._database.rows(fingerprints, FOLD_RESULTS, FOLD_RESULTS.c.iterations)
        return [row.iterations for row in rows]

    def finished_folds(self, fingerprints: list[str]) -> set[str]:
        """Return the fingerprints of those trainings that have a stored result."""
        return {row.fingerprint for row in self._database.rows(fingerprints, FOLD_RESULTS, FOLD_RESULTS.c.fingerprint)}

    def fold_results(self, fingerprints: Collection[str]) -> dict[str, tuple[FoldSpec, FoldResult]]:
        """Return the specs and results of trainings by fingerprint. Unfinished trainings are left out."""
        columns = FOLD_RESULTS.c
        rows = self._database.rows(fingerprints, FOLD_RESULTS, columns.fingerprint, columns.spec, columns.result)
        return {
            row.fingerprint: (parsed(FoldSpec, row.spec, self.url), parsed(FoldResult, row.result, self.url))
            for row in rows
        }

    def put_test_curve(self, curve: TestCurve) -> None:
        """Store the test scores along a training.

        A stored curve of the same evaluation version stays; one of another version is replaced.
        """
        key = TEST_CURVES.c.fingerprint == curve.fingerprint
        row = {"fingerprint": curve.fingerprint, "curve": curve.model_dump_json()}
        with self._database.writing() as connection:
            if insert_unless_present(connection, TEST_CURVES, row):
                return
            stored = connection.execute(sa.select(TEST_CURVES.c.curve).where(key)).scalar_one()
            if parsed(TestCurve, stored, self.url).evaluation_version != curve.evaluation_version:
                insert_or_replace(connection, TEST_CURVES, row)

    def test_curve(self, fingerprint: str) -> TestCurve | None:
        """Return the test scores along a training, or None if none of the current evaluation version are stored."""
        return self.test_curves([fingerprint]).get(fingerprint)

    def test_curves(self, fingerprints: Collection[str]) -> dict[str, TestCurve]:
        """Return `test_curve` of many trainings by fingerprint. Trainings without a curve are left out."""
        rows = self._database.rows(fingerprints, TEST_CURVES, TEST_CURVES.c.curve)
        curves = [parsed(TestCurve, row.curve, self.url) for row in rows]
        return {curve.fingerprint: curve for curve in curves if curve.evaluation_version == EVALUATION_VERSION}

    def contents(self) -> StoreContents:
        """Return the counts of what the store holds, without parsing a record."""
        with self._database.reading() as connection:
            return read_contents(connection)

    def folds(self) -> pd.DataFrame:
        """Return all finished trainings, one row each.

        Columns: fingerprint, dataset, method, fold, status, best_map_at_r, iterations, wall_time.
        """
        columns = [c for c in FOLD_RESULTS.c if c.name not in ("spec", "result")]
        order = (FOLD_RESULTS.c.dataset, FOLD_RESULTS.c.method, FOLD_RESULTS.c.fold)
        return self._database.frame(sa.select(*columns).order_by(*order))

    def curves(self) -> pd.DataFrame:
        """Return all validations of all trainings, one row each.

        Columns: fingerprint, iteration, map_at_r, r_precision, precision_at_1, loss.
        """
        from results.records.frames import curves_frame

        with self._database.reading() as connection:
            texts = connection.execute(sa.select(FOLD_RESULTS.c.result)).scalars().all()
        return curves_frame(parsed(FoldResult, text, self.url) for text in texts)

    def test_points(self) -> pd.DataFrame:
        """Return all tests along trainings, one row each.

        Columns: fingerprint, iteration, precision_at_1, r_precision, map_at_r.
        """
        from results.records.frames import test_curves_frame

        with self._database.reading() as connection:
            fingerprints = connection.execute(sa.select(TEST_CURVES.c.fingerprint)).scalars().all()
        return test_curves_frame(self.test_curves(fingerprints).values())

    def experiments(self) -> pd.DataFrame:
        """Return all started experiments, one row each, the latest first.

        Columns: fingerprint, name, settings (JSON), last_started.
        """
        return self._database.frame(sa.select(EXPERIMENTS).order_by(EXPERIMENTS.c.last_started.desc()))

    def latest_experiments(self) -> dict[str, str]:
        """Return the fingerprint of the latest experiment of each name, by name, the latest first."""
        latest = self.experiments().drop_duplicates("name")
        return dict(zip(latest["name"].astype(str), latest["fingerprint"].astype(str), strict=True))

    def experiment(self, fingerprint: str) -> ExperimentSummary:
        """Return the summary that `put_experiment` stored.

        Args:
            fingerprint: The experiment's fingerprint.

        Raises:
            IncompleteExperimentError: Something that every table needs was not stored.
            StoreError: There is no such experiment.
        """
        query = sa.select(EXPERIMENTS.c.name, EXPERIMENTS.c.settings).where(EXPERIMENTS.c.fingerprint == fingerprint)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise StoreError(f"store {self.url}: holds no experiment {fingerprint}")
        try:
            return ExperimentSummary.model_validate_json(row.settings)
        except ValidationError as error:
            complaints = error.errors()
            if any(complaint["type"] != "missing" for complaint in complaints):
                raise unreadable(ExperimentSummary, error, self.url) from error
            lacking = ", ".join(sorted({str(complaint["loc"][0]) for complaint in complaints}))
            raise IncompleteExperimentError(
                f"experiment {row.name!r} in {self.url} was kept without its {lacking}; start it again "
                "with `reproduce run`, which trains nothing twice"
            ) from error

    def failures(self) -> pd.DataFrame:
        """Return all failed trainings, one row each: fold_fingerprint, reason, at (UTC)."""
        return self._database.frame(sa.select(FAILURES).order_by(FAILURES.c.id))

    def experiment_runs(self, experiment: str) -> list[RunRecord]:
        """Return the runs of an experiment, ordered by method, search and number; each names its study.

        Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
        """
        with self._database.reading() as connection:
            rows = connection.execute(runs_of(experiment)).all()
        records = [parsed(RunRecord, row.record, self.url) for row in rows]
        for row, record in zip(rows, records, strict=True):
            if (row.method, row.search, row.run) != (record.method, record.search, record.run):
                raise StoreError(
                    f"store {self.url}: lists {record.method}, {record.name} in the place of another run; "
                    "`reproduce store check` names what is damaged, and a copy of the store from before helps"
                )
        # Two studies can find one setting and share its runs; the record names the first of them.
        return [record.model_copy(update={"study": row.study}) for row, record in zip(rows, records, strict=True)]

    def runs(self) -> pd.DataFrame:
        """Return the runs of all experiments, one row each; `frames.runs_frame` lists the columns."""
        from results.records.frames import runs_frame

        return runs_frame(listed_runs(self._database))

    def class_scores(self) -> pd.DataFrame:
        """Return the scores of all test classes, one row per run and class; see `frames.class_scores_frame`."""
        from results.records.frames import class_scores_frame

        return class_scores_frame(self._records())

    def _records(self) -> list[RunRecord]:
        query = sa.select(RUNS.c.record).order_by(RUNS.c.dataset, RUNS.c.method)
        with self._database.reading() as connection:
            return [parsed(RunRecord, text, self.url) for text in connection.execute(query).scalars()]
