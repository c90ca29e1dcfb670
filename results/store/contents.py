"""Counts of what a store holds, made by the database: no result is parsed, so a large store answers quickly."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from pydantic import ValidationError

from results.records.experiment_summary import ExperimentSummary
from results.store.schema import EXPERIMENT_RUNS, EXPERIMENTS, FAILURES, FOLD_RESULTS, RUNS
from results.values import identity_of

_LATEST_FAILURES = 5


@dataclass(frozen=True)
class StartedExperiment:
    """An experiment in a store.

    Attributes:
        name: Its name.
        fingerprint: Its fingerprint.
        last_started: Time of its last start in UTC, ISO 8601.
        runs: Number of its runs with test scores.
        methods: Keys of its methods; empty if it was kept without them.
        searches: Searches of each method, and trials of each search, such as `3 x 15`; empty likewise.
    """

    name: str
    fingerprint: str
    last_started: str
    runs: int
    methods: tuple[str, ...] = ()
    searches: str = ""

    @property
    def identity(self) -> str:
        """Short form of the fingerprint, which commands take in place of the name."""
        return identity_of(self.fingerprint)

    @property
    def described(self) -> str:
        """Identity, name, methods and trials in words."""
        trials = f"; {self.searches} trials" if self.searches else ""
        return f"{self.identity} ({self.name}: {', '.join(self.methods) or 'no methods'}{trials})"


@dataclass(frozen=True)
class TrainingGroup:
    """The finished trainings of a method on a dataset.

    Attributes:
        dataset: Name of the dataset.
        method: Key of the method.
        trainings: Number of trainings.
        diverged: Number of trainings that diverged.
        best_map_at_r: The highest MAP@R on validation classes, a fraction of 1; None without validation classes.
        seconds: Duration of all trainings together.
    """

    dataset: str
    method: str
    trainings: int
    diverged: int
    best_map_at_r: float | None
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A training or test that failed, or that its method refused.

    Attributes:
        at: Time of the failure in UTC, ISO 8601.
        reason: Why it failed.
    """

    at: str
    reason: str


@dataclass(frozen=True)
class StoreContents:
    """What a store holds.

    Attributes:
        experiments: The experiments, the latest first.
        trainings: The trainings by dataset and method, sorted by both.
        test_evaluations: Number of test evaluations.
        failures: Number of failed trainings.
        latest_failures: The last failures, at most five, in the order of time.
    """

    experiments: tuple[StartedExperiment, ...]
    trainings: tuple[TrainingGroup, ...]
    test_evaluations: int
    failures: int
    latest_failures: tuple[Failure, ...]


def read_contents(connection: sa.Connection) -> StoreContents:
    """Count what a store holds.

    Args:
        connection: Connection to the store's database.
    """
    return StoreContents(
        experiments=_experiments(connection),
        trainings=_trainings(connection),
        test_evaluations=connection.execute(sa.select(sa.func.count(RUNS.c.fingerprint))).scalar_one(),
        failures=connection.execute(sa.select(sa.func.count(FAILURES.c.id))).scalar_one(),
        latest_failures=_latest_failures(connection),
    )


def _experiments(connection: sa.Connection) -> tuple[StartedExperiment, ...]:
    runs = sa.select(EXPERIMENT_RUNS.c.experiment, sa.func.count().label("runs")).group_by(EXPERIMENT_RUNS.c.experiment)
    counts = {row.experiment: row.runs for row in connection.execute(runs)}
    columns = (EXPERIMENTS.c.name, EXPERIMENTS.c.fingerprint, EXPERIMENTS.c.last_started, EXPERIMENTS.c.settings)
    rows = connection.execute(sa.select(*columns).order_by(EXPERIMENTS.c.last_started.desc()))
    return tuple(
        StartedExperiment(
            row.name, row.fingerprint, row.last_started, counts.get(row.fingerprint, 0), *_plan(row.settings)
        )
        for row in rows
    )


def _plan(settings: str) -> tuple[tuple[str, ...], str]:
    """Return methods and searches of a stored summary, which can be incomplete or of another release."""
    try:
        summary = ExperimentSummary.model_validate_json(settings)
    except ValidationError:
        return (), ""
    return tuple(summary.methods), f"{summary.experiment.search.searches} x {summary.trials}"


def _trainings(connection: sa.Connection) -> tuple[TrainingGroup, ...]:
    columns = FOLD_RESULTS.c
    query = sa.select(
        columns.dataset,
        columns.method,
        sa.func.count(),
        sa.func.sum(sa.case((columns.status == "nan", 1), else_=0)),
        sa.func.max(columns.best_map_at_r),
        sa.func.sum(columns.wall_time),
    ).group_by(columns.dataset, columns.method)
    groups = [TrainingGroup(*row) for row in connection.execute(query)]
    # Databases sort texts in different ways.
    return tuple(sorted(groups, key=lambda group: (group.dataset, group.method)))


def _latest_failures(connection: sa.Connection) -> tuple[Failure, ...]:
    query = sa.select(FAILURES.c.at, FAILURES.c.reason).order_by(FAILURES.c.id.desc()).limit(_LATEST_FAILURES)
    return tuple(Failure(*row) for row in reversed(connection.execute(query).all()))


def start_after_all(connection: sa.Connection) -> datetime:
    """Return the time now; or, if the clock was set back, a time just after the latest stored start."""
    latest = connection.execute(sa.select(sa.func.max(EXPERIMENTS.c.last_started))).scalar_one()
    now = datetime.now(UTC)
    return now if latest is None else max(now, datetime.fromisoformat(latest) + timedelta(microseconds=1))
