"""The store: fold results by fingerprint, runs, and which experiment asked for them (schema in SCHEMA.md beside this).

One SQLAlchemy URL holds everything, Optuna's tables included. Weights lie as files in the artifact folder.
Each result is committed on its own, so a crash loses no finished training.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from results.records import FoldResult, RunRecord, Scores
from results.specs import FoldSpec

SCHEMA_VERSION = 1

_metadata = sa.MetaData()
_schema = sa.Table("suite_schema", _metadata, sa.Column("version", sa.Integer, nullable=False))
_folds = sa.Table(
    "fold_results",
    _metadata,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("dataset", sa.String(64), nullable=False),
    sa.Column("method", sa.String(64), nullable=False),
    sa.Column("fold", sa.Integer, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("best_map_at_r", sa.Float, nullable=False),
    sa.Column("iterations", sa.Integer, nullable=False),
    sa.Column("wall_time", sa.Float, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
)
_runs = sa.Table(
    "runs",
    _metadata,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("dataset", sa.String(64), nullable=False),
    sa.Column("method", sa.String(64), nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
_experiments = sa.Table(
    "experiments",
    _metadata,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("last_started", sa.String(32), nullable=False),
)
_entries = sa.Table(
    "experiment_runs",
    _metadata,
    sa.Column("experiment", sa.ForeignKey("experiments.fingerprint"), primary_key=True),
    sa.Column("method", sa.String(64), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("run_fingerprint", sa.ForeignKey("runs.fingerprint"), nullable=False),
)
_failures = sa.Table(
    "failures",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fold_fingerprint", sa.String(32), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
)


class StoreError(Exception):
    """The store cannot be used; the message says what to do."""


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
            tables = set(sa.inspect(self._engine).get_table_names())
            if "suite_schema" not in tables:
                if tables & set(_metadata.tables):
                    raise StoreError(f"store {self.url}: holds tables of another program; choose another with --store")
                self._create_schema()
            with self._engine.connect() as connection:
                version = connection.execute(sa.select(_schema.c.version)).scalar_one_or_none()
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"store {self.url}: made by schema version {version}, this suite reads version {SCHEMA_VERSION}; "
                "use the release that made it, or another store with --store"
            )

    def _create_schema(self) -> None:
        """All tables and the version in one transaction: a crash or a second process never leaves half of them."""
        with self._engine.begin() as connection:
            if self._engine.dialect.name == "sqlite":
                # The driver would begin the transaction after the tables only.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if not sa.inspect(connection).has_table(_schema.name):
                _metadata.create_all(connection)
                connection.execute(sa.insert(_schema).values(version=SCHEMA_VERSION))

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
                sa.select(_folds.c.result).where(_folds.c.fingerprint == fingerprint)
            ).scalar_one_or_none()
        return None if text is None else FoldResult.model_validate_json(text)

    def wall_times(self, dataset: str, method: str) -> list[tuple[FoldSpec, float]]:
        """Seconds of every finished training of a method on a dataset."""
        query = sa.select(_folds.c.spec, _folds.c.wall_time).where(
            (_folds.c.dataset == dataset) & (_folds.c.method == method)
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
        self._insert_once(_folds, row)

    def run(self, fingerprint: str) -> RunRecord | None:
        """The test evaluation of a reproduction, or None."""
        with self._guard(), self._engine.connect() as connection:
            text = connection.execute(
                sa.select(_runs.c.record).where(_runs.c.fingerprint == fingerprint)
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
        self._insert_once(_runs, row)

    def put_experiment(self, fingerprint: str, name: str, settings: dict[str, Any]) -> None:
        """Notes that an experiment was started now, so that `table` finds the latest one of a name.

        The settings of the latest start replace earlier ones: its methods and titles may differ.
        """
        row = {"name": name, "settings": json.dumps(settings), "last_started": datetime.now(UTC).isoformat()}
        with self._guard(), self._engine.begin() as connection:
            known = connection.execute(
                sa.update(_experiments).where(_experiments.c.fingerprint == fingerprint).values(row)
            ).rowcount
            if not known:
                connection.execute(sa.insert(_experiments).values(fingerprint=fingerprint, **row))

    def enlist(self, experiment: str, method: str, run: int, run_fingerprint: str) -> None:
        """Says that an experiment's reproduction `run` of a method is the run of that fingerprint."""
        key = (_entries.c.experiment == experiment) & (_entries.c.method == method) & (_entries.c.run == run)
        row = {"experiment": experiment, "method": method, "run": run, "run_fingerprint": run_fingerprint}
        with self._guard(), self._engine.begin() as connection:
            connection.execute(sa.delete(_entries).where(key))
            connection.execute(sa.insert(_entries).values(row))

    def put_failure(self, fold_fingerprint: str, reason: str) -> None:
        """Notes a training that broke for reasons outside the method; such a training is retried, not scored."""
        row = {"fold_fingerprint": fold_fingerprint, "reason": reason, "at": datetime.now(UTC).isoformat()}
        with self._guard(), self._engine.begin() as connection:
            connection.execute(sa.insert(_failures).values(row))

    def finished_folds(self, fingerprints: list[str]) -> set[str]:
        """Which of these trainings are in the store."""
        found: set[str] = set()
        with self._guard(), self._engine.connect() as connection:
            for start in range(0, len(fingerprints), 500):
                some = fingerprints[start : start + 500]
                query = sa.select(_folds.c.fingerprint).where(_folds.c.fingerprint.in_(some))
                found.update(connection.execute(query).scalars())
        return found

    def folds(self) -> pd.DataFrame:
        """Every training: fingerprint, dataset, method, fold, status, best_map_at_r, iterations, wall_time."""
        columns = [c for c in _folds.c if c.name not in ("spec", "result")]
        return self._frame(sa.select(*columns).order_by(_folds.c.dataset, _folds.c.method, _folds.c.fold))

    def curves(self) -> pd.DataFrame:
        """Every validation of every training: fingerprint, iteration, map_at_r, r_precision, precision_at_1, loss."""
        with self._guard(), self._engine.connect() as connection:
            texts = connection.execute(sa.select(_folds.c.result)).scalars().all()
        results = [FoldResult.model_validate_json(text) for text in texts]
        rows = [{"fingerprint": r.fingerprint, **point.model_dump()} for r in results for point in r.curve]
        columns = ["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"]
        return pd.DataFrame(rows, columns=columns)

    def experiments(self) -> pd.DataFrame:
        """Every experiment started: fingerprint, name, settings (JSON), last_started; the latest first."""
        return self._frame(sa.select(_experiments).order_by(_experiments.c.last_started.desc()))

    def experiment(self, fingerprint: str) -> dict[str, Any]:
        """What `put_experiment` was given; raises StoreError if there is no such experiment."""
        with self._guard(), self._engine.connect() as connection:
            text = connection.execute(
                sa.select(_experiments.c.settings).where(_experiments.c.fingerprint == fingerprint)
            ).scalar_one_or_none()
        if text is None:
            raise StoreError(f"store {self.url}: holds no experiment {fingerprint}")
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    def failures(self) -> pd.DataFrame:
        """Trainings that broke and were retried: fold_fingerprint, reason, at."""
        return self._frame(sa.select(_failures).order_by(_failures.c.id))

    def experiment_runs(self, experiment: str) -> list[RunRecord]:
        """The runs of an experiment by its fingerprint, by method and run."""
        query = (
            sa.select(_runs.c.record)
            .join(_entries, _entries.c.run_fingerprint == _runs.c.fingerprint)
            .where(_entries.c.experiment == experiment)
            .order_by(_entries.c.method, _entries.c.run)
        )
        with self._guard(), self._engine.connect() as connection:
            return [RunRecord.model_validate_json(text) for text in connection.execute(query).scalars()]

    def runs(self) -> pd.DataFrame:
        """Every test evaluation, one row each, scores as `separated_map_at_r`, `concatenated_map_at_r` and so on."""
        with self._guard(), self._engine.connect() as connection:
            texts = connection.execute(sa.select(_runs.c.record).order_by(_runs.c.dataset, _runs.c.method)).scalars()
            records = [RunRecord.model_validate_json(text) for text in texts]
        return pd.DataFrame([_flat(record) for record in records], columns=[*_PLAIN, *_SCORES, "commit", "device"])

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


_PLAIN = ("fingerprint", "dataset", "method", "run", "seed", "dimensions", "wall_time")
_SCORES = tuple(f"{kind}_{name}" for kind in ("separated", "concatenated") for name in Scores.model_fields)


def _flat(record: RunRecord) -> dict[str, Any]:
    scores = {
        f"{kind}_{name}": value
        for kind in ("separated", "concatenated")
        for name, value in getattr(record, kind).model_dump().items()
    }
    plain = record.model_dump(include=set(_PLAIN))
    return {**plain, **scores, "commit": record.provenance.commit, "device": record.provenance.device}


def _set_sqlite_timeout(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA busy_timeout = 60000")
