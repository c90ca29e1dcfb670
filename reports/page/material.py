"""The input of a page: an experiment's records, the figure data of its runs, and the trials of its searches."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reports.figures.trials import SearchHistory
from reports.page.content import Command, MethodSource
from reports.tables.hyperparameters import PublishedNames
from results.records.artifacts import FigureData, Recording
from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ComparisonResult
from results.statistics.planning import RunBudget, budget
from results.statistics.primary_comparison import primary_comparison, primary_score
from results.statistics.run_values import EmbeddingKind, ValueKey, run_values
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

    def values(self, score: Score) -> dict[str, dict[ValueKey, float]]:
        """Return the independent values by method as fractions of 1, in the experiment's order (`run_values`)."""
        by_method = run_values([run for runs in self.records.values() for run in runs], score.metric, score.kind)
        return {key: by_method[key] for key in self.records}

    def comparable_values(self, score: Score) -> dict[str, dict[ValueKey, float]]:
        """Return `values` without the rows that are not tested against the others."""
        compared = self.measured.summary.compared
        return {key: values for key, values in self.values(score).items() if key in compared}

    @cached_property
    def budget(self) -> RunBudget | None:
        """What the compared runs can show in the primary score; None with fewer than two methods."""
        values = self.comparable_values(self.scores[0])
        if len(values) < 2:
            return None
        # Independent values: the runs, or the means of the searches.
        repeated = [len(by_run) for by_run in values.values() if len(by_run) > 1]
        records = [record for key in values for record in self.records[key]]
        score, on_features = primary_score(self.measured), self.measured.summary.experiment.trunk.is_input_features
        return budget(len(values), min(repeated, default=1), score, records, on_features=on_features)

    @cached_property
    def best_first(self) -> list[str]:
        """Methods with runs, sorted by the mean of the first score from the highest."""
        values = self.values(self.scores[0])
        means = {key: student_t_interval(list(by_run.values())).mean for key, by_run in values.items()}
        return sorted(means, key=lambda key: -means[key])
