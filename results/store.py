"""The store: fold results by fingerprint, runs, and which experiment asked for them (schema in SCHEMA.md beside this).

One SQLAlchemy URL holds everything, Optuna's tables included. Weights lie as files in the artifact folder.
Each result is committed on its own, so a crash loses no finished training.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from results.experiment_names import current_name
from results.experiment_summary import ExperimentSummary
from results.frames import class_scores_frame, curves_frame, runs_frame, test_curves_frame
from results.records import EVALUATION_VERSION, FoldResult, RunRecord, TestCurve
from results.schema import (
    EXPERIMENT_RUNS,
    EXPERIMENTS,
    FAILURES,
    FOLD_RESULTS,
    RUNS,
    SCHEMA_VERSION,
    TEST_CURVES,
    belongs_to_another_program,
    prepare,
)
from results.training_spec import FoldSpec


class StoreError(Exception):
    """The store cannot be used; the message says what to do."""


class IncompleteExperimentError(StoreError):
    """An experiment was kept without something that every table needs; the message says what to do."""


class Store:
    """Results on a SQLAlchemy `url` with an `artifacts` folder beside it."""

    def __init__(self, url: str, artifacts: Path) -> None:
        self.url = url
        self.artifacts = artifacts
        try:
            self._engine = sa.create_engine(url)
            if self._engine.dialect.name == "sqlite":
                # A reader (`status`, a dashboard) must never make the writer fail.
                sa.event.listen(self._engine, "connect", _set_sqlite_timeout)
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
            raise StoreError(f"store {url!r}: not a usable SQLAlchemy URL ({error})") from error
        self._check_schema()

    def _check_schema(self) -> None:
        with self._guard():
            if belongs_to_another_program(self._engine):
                raise StoreError(f"store {self.url}: holds tables of another program; choose another with --store")
            version = prepare(self._engine)
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"store {self.url}: made by schema version {version}, this suite reads version {SCHEMA_VERSION}; "
                "use the release that made it, or another store with --store"
            )

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turns a failing database into one line; what was committed before stays."""
        try:
            yield
        except DBAPIError as error:
            raise StoreError(f"store {self.url}: {error.orig}; what was stored before is kept") from error

    def fold_result(self, fingerprint: str) -> FoldResult | None:
        """The result of a training, or None if it was never finished."""
        with self._guard(), self._engine.connect() as connection:
            text = connection.execute(
                sa.select(FOLD_RESULTS.c.result).where(FOLD_RESULTS.c.fingerprint == fingerprint)
            ).scalar_one_or_none()
        return None if text is None else FoldResult.model_validate_json(text)

    def wall_times(self, dataset: str, method: str) -> list[tuple[FoldSpec, float]]:
        """Seconds of every finished training of a method on a dataset."""
        query = sa.select(FOLD_RESULTS.c.spec, FOLD_RESULTS.c.wall_time).where(
            (FOLD_RESULTS.c.dataset == dataset) & (FOLD_RESULTS.c.method == method)
        )
        with self._guard(), self._engine.connect() as connection:
            return [(FoldSpec.model_validate_json(spec), seconds) for spec, seconds in connection.execute(query)]

    def put_fold(self, spec: FoldSpec, result: FoldResult) -> None:
        """Keeps the result of a finished training; the first one stays if there are two."""
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
        self._insert_once(FOLD_RESULTS, row)

    def run(self, fingerprint: str) -> RunRecord | None:
        """The test evaluation of a reproduction, or None."""
        with self._guard(), self._engine.connect() as connection:
            text = connection.execute(
                sa.select(RUNS.c.record).where(RUNS.c.fingerprint == fingerprint)
            ).scalar_one_or_none()
        return None if text is None else RunRecord.model_validate_json(text)

    def put_run(self, record: RunRecord) -> None:
        """Keeps the test evaluation of a reproduction."""
        row = {
            "fingerprint": record.fingerprint,
            "dataset": record.dataset,
            "method": record.method,
            "record": record.model_dump_json(),
        }
        self._insert_once(RUNS, row)

    def put_experiment(self, fingerprint: str, name: str, summary: ExperimentSummary) -> None:
        """Notes that an experiment was started now, so that `table` finds the latest one of a name.

        The summary of the latest start replaces earlier ones: its methods and titles may differ.
        """
        text = json.dumps(summary.model_dump(mode="json"))
        row = {"name": name, "settings": text, "last_started": datetime.now(UTC).isoformat()}
        with self._guard(), self._engine.begin() as connection:
            known = connection.execute(
                sa.update(EXPERIMENTS).where(EXPERIMENTS.c.fingerprint == fingerprint).values(row)
            ).rowcount
            if not known:
                connection.execute(sa.insert(EXPERIMENTS).values(fingerprint=fingerprint, **row))

    def enlist(self, experiment: str, method: str, run: int, run_fingerprint: str) -> None:
        """Says that an experiment's reproduction `run` of a method is the run of that fingerprint."""
        key = (
            (EXPERIMENT_RUNS.c.experiment == experiment)
            & (EXPERIMENT_RUNS.c.method == method)
            & (EXPERIMENT_RUNS.c.run == run)
        )
        row = {"experiment": experiment, "method": method, "run": run, "run_fingerprint": run_fingerprint}
        with self._guard(), self._engine.begin() as connection:
            connection.execute(sa.delete(EXPERIMENT_RUNS).where(key))
            connection.execute(sa.insert(EXPERIMENT_RUNS).values(row))

    def put_failure(self, fold_fingerprint: str, reason: str) -> None:
        """Notes a training that broke for reasons outside the method; such a training is retried, not scored."""
        row = {"fold_fingerprint": fold_fingerprint, "reason": reason, "at": datetime.now(UTC).isoformat()}
        with self._guard(), self._engine.begin() as connection:
            connection.execute(sa.insert(FAILURES).values(row))

    def finished_folds(self, fingerprints: list[str]) -> set[str]:
        """Which of these trainings are in the store."""
        return {row.fingerprint for row in self._of(fingerprints, FOLD_RESULTS, FOLD_RESULTS.c.fingerprint)}

    def fold_results(self, fingerprints: Iterable[str]) -> dict[str, tuple[FoldSpec, FoldResult]]:
        """What these trainings were and what came of them, by fingerprint; unfinished ones are left out."""
        columns = FOLD_RESULTS.c
        found = self._of(fingerprints, FOLD_RESULTS, columns.fingerprint, columns.spec, columns.result)
        return {
            row.fingerprint: (FoldSpec.model_validate_json(row.spec), FoldResult.model_validate_json(row.result))
            for row in found
        }

    def put_test_curve(self, curve: TestCurve) -> None:
        """Keeps the test scores along a training.

        The first one stays, as for results, unless it has another evaluation version: that one is replaced.
        """
        key = TEST_CURVES.c.fingerprint == curve.fingerprint
        with self._guard(), self._engine.begin() as connection:
            known = connection.execute(sa.select(TEST_CURVES.c.curve).where(key)).scalar_one_or_none()
            if known is not None:
                if TestCurve.model_validate_json(known).evaluation_version == curve.evaluation_version:
                    return
                connection.execute(sa.delete(TEST_CURVES).where(key))
            row = {"fingerprint": curve.fingerprint, "curve": curve.model_dump_json()}
            connection.execute(sa.insert(TEST_CURVES).values(row))

    def test_curve(self, fingerprint: str) -> TestCurve | None:
        """The test scores along a training, or None if they were not recorded at today's meaning of an evaluation."""
        return self.test_curves([fingerprint]).get(fingerprint)

    def test_curves(self, fingerprints: Iterable[str]) -> dict[str, TestCurve]:
        """`test_curve` of many trainings at once, by fingerprint; those without one are left out."""
        rows = self._of(fingerprints, TEST_CURVES, TEST_CURVES.c.curve)
        curves = [TestCurve.model_validate_json(row.curve) for row in rows]
        return {curve.fingerprint: curve for curve in curves if curve.evaluation_version == EVALUATION_VERSION}

    def folds(self) -> pd.DataFrame:
        """Every training: fingerprint, dataset, method, fold, status, best_map_at_r, iterations, wall_time."""
        columns = [c for c in FOLD_RESULTS.c if c.name not in ("spec", "result")]
        return self._frame(
            sa.select(*columns).order_by(FOLD_RESULTS.c.dataset, FOLD_RESULTS.c.method, FOLD_RESULTS.c.fold)
        )

    def curves(self) -> pd.DataFrame:
        """Every validation of every training: fingerprint, iteration, map_at_r, r_precision, precision_at_1, loss."""
        with self._guard(), self._engine.connect() as connection:
            texts = connection.execute(sa.select(FOLD_RESULTS.c.result)).scalars().all()
        return curves_frame(FoldResult.model_validate_json(text) for text in texts)

    def test_points(self) -> pd.DataFrame:
        """Every test along a training: fingerprint, iteration, precision_at_1, r_precision, map_at_r."""
        with self._guard(), self._engine.connect() as connection:
            known = connection.execute(sa.select(TEST_CURVES.c.fingerprint)).scalars().all()
        return test_curves_frame(self.test_curves(known).values())

    def experiments(self) -> pd.DataFrame:
        """Every experiment started: fingerprint, name, settings (JSON), last_started; the latest first.

        An experiment that was run under an old name has today's.
        """
        frame = self._frame(sa.select(EXPERIMENTS).order_by(EXPERIMENTS.c.last_started.desc()))
        return frame.assign(name=frame["name"].map(lambda name: current_name(str(name))))

    def latest_experiments(self) -> dict[str, str]:
        """Fingerprints of the latest experiment of each name, by name, the latest started first."""
        latest = self.experiments().drop_duplicates("name")
        return dict(zip(latest["name"].astype(str), latest["fingerprint"].astype(str), strict=True))

    def experiment(self, fingerprint: str) -> ExperimentSummary:
        """What `put_experiment` was given.

        Raises:
            IncompleteExperimentError: something that every table needs was not kept.
            StoreError: there is no such experiment.
        """
        query = sa.select(EXPERIMENTS.c.name, EXPERIMENTS.c.settings).where(EXPERIMENTS.c.fingerprint == fingerprint)
        with self._guard(), self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise StoreError(f"store {self.url}: holds no experiment {fingerprint}")
        try:
            return ExperimentSummary.model_validate_json(row.settings)
        except ValidationError as error:
            lacking = ", ".join(sorted({str(complaint["loc"][0]) for complaint in error.errors()}))
            raise IncompleteExperimentError(
                f"experiment {current_name(row.name)!r} in {self.url} was kept without its {lacking}; start it again "
                "with `reproduce run`, which trains nothing twice"
            ) from error

    def failures(self) -> pd.DataFrame:
        """Trainings that broke and were retried: fold_fingerprint, reason, at."""
        return self._frame(sa.select(FAILURES).order_by(FAILURES.c.id))

    def experiment_runs(self, experiment: str) -> list[RunRecord]:
        """The runs of an experiment by its fingerprint, by method and run."""
        query = (
            sa.select(RUNS.c.record)
            .join(EXPERIMENT_RUNS, EXPERIMENT_RUNS.c.run_fingerprint == RUNS.c.fingerprint)
            .where(EXPERIMENT_RUNS.c.experiment == experiment)
            .order_by(EXPERIMENT_RUNS.c.method, EXPERIMENT_RUNS.c.run)
        )
        with self._guard(), self._engine.connect() as connection:
            return [RunRecord.model_validate_json(text) for text in connection.execute(query).scalars()]

    def runs(self) -> pd.DataFrame:
        """Every test evaluation, one row each, further metrics where there are any (`frames.runs_frame`)."""
        return runs_frame(self._records())

    def class_scores(self) -> pd.DataFrame:
        """Scores of every test class of every run that kept them, one row each (`frames.class_scores_frame`)."""
        return class_scores_frame(self._records())

    def _records(self) -> list[RunRecord]:
        with self._guard(), self._engine.connect() as connection:
            texts = connection.execute(sa.select(RUNS.c.record).order_by(RUNS.c.dataset, RUNS.c.method)).scalars()
            return [RunRecord.model_validate_json(text) for text in texts]

    def _of(self, fingerprints: Iterable[str], table: sa.Table, *columns: sa.Column[Any]) -> list[sa.Row[Any]]:
        """Rows of a table by fingerprint, some hundreds at a time: databases limit the number of parameters."""
        wanted = list(fingerprints)
        rows: list[sa.Row[Any]] = []
        with self._guard(), self._engine.connect() as connection:
            for start in range(0, len(wanted), 500):
                query = sa.select(*columns).where(table.c.fingerprint.in_(wanted[start : start + 500]))
                rows += connection.execute(query).all()
        return rows

    def _frame(self, query: sa.Select[Any]) -> pd.DataFrame:
        with self._guard(), self._engine.connect() as connection:
            result = connection.execute(query)
            return pd.DataFrame(result.mappings().all(), columns=list(result.keys()))

    def _insert_once(self, table: sa.Table, row: dict[str, Any]) -> None:
        with self._guard(), self._engine.begin() as connection:
            known = connection.execute(
                sa.select(sa.literal(1)).where(table.c.fingerprint == row["fingerprint"])
            ).scalar_one_or_none()
            if known is None:
                connection.execute(sa.insert(table).values(row))


def _set_sqlite_timeout(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA busy_timeout = 60000")
