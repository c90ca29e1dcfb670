"""What a store holds, counted: experiments, trainings by dataset and method, failures."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult
from results.store.database import Database, TrainingRecord
from results.values import identity_of

_LATEST_FAILURES = 5


@dataclass(frozen=True)
class StartedExperiment:
    """An experiment in a store.

    Attributes:
        last_started: Time of its last start in UTC, ISO 8601.
        runs: Number of its runs with test scores.
        methods: Keys of its methods.
        searches: Searches of each method, and trials of each search, such as `3 x 15`.
    """

    name: str
    fingerprint: str
    last_started: str
    runs: int
    methods: tuple[str, ...]
    searches: str

    @property
    def identity(self) -> str:
        """Short form of the fingerprint, which commands take in place of the name."""
        return identity_of(self.fingerprint)

    @property
    def described(self) -> str:
        """Identity, name, methods and trials in words."""
        return f"{self.identity} ({self.name}: {', '.join(self.methods)}; {self.searches} trials)"


@dataclass(frozen=True)
class TrainingGroup:
    """The finished trainings of a method on a dataset.

    Attributes:
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
    """A training that failed for a reason outside its method: when (UTC, ISO 8601), and why."""

    at: str
    reason: str


class StoreContents:
    """What a store holds. Each attribute is read when it is first asked for.

    Args:
        database: The store's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @cached_property
    def experiments(self) -> tuple[StartedExperiment, ...]:
        """The experiments, the latest first."""
        rows = self._database.rows(
            "SELECT *, (SELECT count(*) FROM experiment_runs WHERE experiment = fingerprint) AS runs "
            "FROM experiments ORDER BY last_started DESC"
        )
        experiments = []
        for row in rows:
            summary = self._database.parsed(ExperimentSummary, row, f"row {row['fingerprint']} of experiments")
            searches = f"{summary.experiment.search.searches} x {summary.trials}"
            place = row["name"], row["fingerprint"], row["last_started"], row["runs"]
            experiments.append(StartedExperiment(*place, tuple(summary.methods), searches))
        return tuple(experiments)

    @cached_property
    def trainings(self) -> tuple[TrainingGroup, ...]:
        """The trainings by dataset and method, sorted by both."""
        groups: dict[tuple[str, str], list[FoldResult]] = defaultdict(list)
        for _, training in self._database.records(TrainingRecord, "trainings"):
            groups[training.spec.dataset, training.spec.method.name].append(training.result)
        return tuple(_group(dataset, method, results) for (dataset, method), results in sorted(groups.items()))

    @cached_property
    def test_evaluations(self) -> int:
        """Number of test evaluations."""
        return self._count("runs")

    @cached_property
    def failures(self) -> int:
        """Number of failed trainings."""
        return self._count("failures")

    @cached_property
    def latest_failures(self) -> tuple[Failure, ...]:
        """The last failures, at most five, in the order of time."""
        rows = self._database.rows("SELECT at, reason FROM failures ORDER BY id DESC LIMIT ?", _LATEST_FAILURES)
        return tuple(Failure(*row) for row in reversed(rows))

    def _count(self, table: str) -> int:
        (row,) = self._database.rows(f"SELECT count(*) FROM {table}")
        return int(row[0])


def _group(dataset: str, method: str, results: list[FoldResult]) -> TrainingGroup:
    scores = [result.best_map_at_r for result in results if result.best_map_at_r is not None]
    return TrainingGroup(
        dataset,
        method,
        len(results),
        sum(result.status == "nan" for result in results),
        max(scores, default=None),
        sum(result.wall_time for result in results),
    )
