"""What a page is made of: an experiment's records, what its runs left to look at, and what its searches tried."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reports.figures.trials import SearchHistory
from reports.page.content import Command
from reports.tables.hyperparameters import PublishedNames
from results.artifacts import Exhibit
from results.experiment_results import MeasuredExperiment
from results.experiment_spec import Experiment
from results.headline_metrics import HEADLINE_METRICS
from results.records import RunRecord
from results.statistics.intervals import student_t_interval
from results.statistics.run_values import EmbeddingKind, RunKey, run_values


@dataclass(frozen=True)
class Score:
    """A metric of one kind of embedding."""

    metric: str
    kind: EmbeddingKind
    single: bool = False

    @property
    def name(self) -> str:
        """As sentences say it; one model alone is neither separated nor concatenated."""
        name = HEADLINE_METRICS[self.metric]
        return name if self.single else f"{self.kind} {name}"


@dataclass(frozen=True)
class Material:
    """An experiment as the store has it.

    name: in the store. exhibits, searches: by method, where there are any. panels: the experiments of the same file,
    this one included, by panel; empty for a file with one. unreadable: files of exhibits that are broken.
    published_names: MLRC's names of hyperparameters, by method.
    deviations: the settings that differ from the suite's file of its name, as phrases. mlrc: the suite's own
    experiment for MLRC's table on the dataset. commands: how to run it again. made: when the page was drawn.
    """

    name: str
    measured: MeasuredExperiment
    exhibits: Mapping[str, Exhibit] = field(default_factory=dict)
    searches: Mapping[str, SearchHistory] = field(default_factory=dict)
    panels: Mapping[str, MeasuredExperiment] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    published_names: PublishedNames = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    mlrc: Experiment | None = None
    commands: tuple[Command, ...] = ()
    made: str = ""

    @cached_property
    def titles(self) -> dict[str, str]:
        """The methods' titles by key, in the experiment's order, each its own."""
        titles = self.measured.summary.methods
        counts = Counter(titles.values())
        return {key: title if counts[title] == 1 else f"{title} ({key})" for key, title in titles.items()}

    @cached_property
    def records(self) -> dict[str, list[RunRecord]]:
        """Runs by method, in the experiment's order; methods without any are left out."""
        own = {
            key: sorted((record for record in self.measured.records if record.method == key), key=lambda one: one.run)
            for key in self.titles
        }
        return {key: runs for key, runs in own.items() if runs}

    @property
    def folds(self) -> int:
        """Models of one run; 0 without runs."""
        return max((len(run.fold_fingerprints) for runs in self.records.values() for run in runs), default=0)

    @property
    def scores(self) -> tuple[Score, ...]:
        """The metrics that verdicts are about, the first of them pair by pair."""
        if self.folds == 1:
            return Score("map_at_r", "separated", True), Score("precision_at_1", "separated", True)
        return (
            Score("map_at_r", "concatenated"),
            Score("map_at_r", "separated"),
            Score("precision_at_1", "concatenated"),
            Score("precision_at_1", "separated"),
        )

    def values(self, score: Score) -> dict[str, dict[RunKey, float]]:
        """Values by method and run, fractions of 1, in the experiment's order."""
        found = run_values([run for runs in self.records.values() for run in runs], score.metric, score.kind)
        return {key: found[key] for key in self.records}

    @cached_property
    def best_first(self) -> list[str]:
        """Methods with runs by the mean of the first score, the best first."""
        means = {key: student_t_interval(list(own.values())).mean for key, own in self.values(self.scores[0]).items()}
        return sorted(means, key=lambda key: -means[key])
