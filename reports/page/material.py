"""The input of a page: an experiment's records, the figure data of its runs, and the trials of its searches."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reports.figures.intervals import IntervalUnit
from reports.figures.trials import SearchHistory
from reports.page.content import Command, MethodSource
from reports.tables.hyperparameters import PublishedNames
from results.records.artifacts import FigureData, Recording
from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.comparison_result import ComparisonResult, MethodValues
from results.statistics.intervals import Interval
from results.statistics.planning import Detectable, detectable
from results.statistics.primary_comparison import (
    method_intervals,
    primary_comparison,
    primary_score,
    unit_of,
    unit_values,
)
from results.statistics.run_values import EmbeddingKind, RunKey, values_by_run
from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class Score:
    """A metric of one kind of embedding.

    Attributes:
        single: Whether a run has only one model. Then separated and concatenated are the same.
    """

    metric: str
    kind: EmbeddingKind
    single: bool = False

    @property
    def name(self) -> str:
        """Name of the score in sentences. The kind is left out if a run has only one model."""
        name = HEADLINE_METRICS[self.metric]
        return name if self.single else f"{self.kind} {name}"


@dataclass(frozen=True)
class Material:
    """An experiment with everything that its page shows.

    Attributes:
        measured: The experiment with its runs and trainings.
        figure_data: Figure data by method, for the methods that have one.
        recordings: Embeddings during the first run's first training, by method, for the methods that have them.
        searches: Search histories by method, for the methods that have one.
        panels: The experiments of the same file by panel, including this one; empty for a file with one experiment.
        unreadable: Files of figure data and recordings that cannot be read.
        published_names: MLRC's names of hyperparameters, by method.
        deviations: Settings that differ from the suite's experiment file of the same name, as phrases.
        mlrc: The suite's own experiment for MLRC's table on the dataset; None if MLRC has no table on it.
        sources: Papers of the methods, by method, for the methods that the suite brings.
        repository: Address of the suite's public repository; empty if it is not known.
    """

    name: str
    measured: MeasuredExperiment
    figure_data: Mapping[str, FigureData] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    searches: Mapping[str, SearchHistory] = field(default_factory=dict)
    panels: Mapping[str, MeasuredExperiment] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    published_names: PublishedNames = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    mlrc: Experiment | None = None
    commands: tuple[Command, ...] = ()
    sources: Mapping[str, MethodSource] = field(default_factory=dict)
    repository: str = ""
    made: str = ""

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by key, in the experiment's order. Equal titles get the key in brackets."""
        titles = self.measured.summary.methods
        counts = Counter(titles.values())
        return {key: title if counts[title] == 1 else f"{title} ({key})" for key, title in titles.items()}

    @cached_property
    def records(self) -> dict[str, list[RunRecord]]:
        """Runs by method, in the experiment's order. Methods without runs are left out."""
        ordered = sorted(self.measured.records, key=lambda record: (record.search, record.run))
        by_method = {key: [record for record in ordered if record.method == key] for key in self.titles}
        return {key: runs for key, runs in by_method.items() if runs}

    @property
    def folds(self) -> int:
        """Number of models of a run; 0 without runs."""
        return max((len(run.fold_fingerprints) for runs in self.records.values() for run in runs), default=0)

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores of the verdicts, the primary score first. Only in that one the methods are tested."""
        single = self.folds == 1
        primary = primary_score(self.measured)
        kinds: tuple[EmbeddingKind, ...] = ("separated",) if single else ("concatenated", "separated")
        first = Score(primary.metric, "separated" if single else primary.embeddings, single)
        others = [Score(metric, kind, single) for metric in ("map_at_r", "precision_at_1") for kind in kinds]
        return (first, *(score for score in others if score != first))

    @cached_property
    def comparison(self) -> ComparisonResult | None:
        """The comparison of all methods on the primary score; None without runs."""
        return primary_comparison(self.measured)

    @property
    def unit(self) -> IntervalUnit:
        """What the intervals are over: searches where they are repeated, else the runs of the setting."""
        return "search" if unit_of(self.measured.summary.experiment) == "search" else "run"

    def values(self, score: Score) -> dict[str, MethodValues]:
        """Return the independent values of the methods with runs, in the experiment's order (`unit_values`)."""
        values = unit_values(self.measured, self._by_run(score))
        return {key: values[key] for key in self.records}

    def intervals(self, score: Score) -> dict[str, Interval]:
        """Return mean and 95 % interval of the methods with runs, in the experiment's order (`method_intervals`)."""
        intervals = method_intervals(self.measured, self._by_run(score))
        return {key: intervals[key] for key in self.records}

    def _by_run(self, score: Score) -> dict[str, dict[RunKey, float]]:
        return values_by_run([run for runs in self.records.values() for run in runs], score.metric, score.kind)

    @cached_property
    def budget(self) -> Detectable | None:
        """What the experiment can show in the primary score; None with fewer than two planned methods."""
        methods = len(self.measured.summary.compared)
        if methods < 2 or not self.records:
            return None
        return detectable(self.measured.summary.experiment, methods, primary_score(self.measured), self.measured)

    @cached_property
    def best_first(self) -> list[str]:
        """Methods with runs from the highest mean of the first score; those that are not compared come last."""
        compared = [] if self.comparison is None else self.comparison.best_first
        return [*compared, *(key for key in self.records if key not in compared)]
