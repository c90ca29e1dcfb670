"""The input of a page: an experiment's records, and the trials of its searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import NamedTuple

from reports.tables.method_tables import PublishedSettings
from results.answer.answers import Answer
from results.findings.experiment import ExperimentAnswer
from results.records.records import RunRecord
from results.records.trials import Trial
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.store.experiment_results import MeasuredExperiment


class Command(NamedTuple):
    """A command line or a text to paste, and its purpose."""

    text: str
    purpose: str


class Origin(NamedTuple):
    """Where scores are from that no experiment of the suite measured.

    Attributes:
        command: The whole command that answers again.
        facts: Names and texts: the file, its hash, the columns by what they are.
        lists: What was left out and why, by a heading.
    """

    command: str
    facts: tuple[tuple[str, str], ...]
    lists: Mapping[str, tuple[str, ...]]


class MethodSource(NamedTuple):
    """The papers that a method comes from, in words and as addresses, which start with https://."""

    text: str
    papers: tuple[str, ...] = ()


def version() -> str:
    """Return the version of the suite; empty if it is not installed."""
    try:
        return metadata.version("metric-learning-reproductions")
    except metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Material:
    """An experiment with everything that its page shows.

    Attributes:
        answer: What the experiment shows, with its runs and trainings; or that of scores which are of no experiment.
        searches: The finished trials of a search by method, for the methods that have one.
        published: The hyperparameters that the methods' sources report as best, by method and target.
        departures: Settings that differ from the suite's experiment file of the same name, as phrases.
        sources: Papers of the methods, by method, for the methods that the suite brings.
        made: When and by what the page was made, for its footer.
        origin: Where the scores are from, if no experiment measured them.
        label: What the labels of its tables in LaTeX begin with; empty for the name.
    """

    name: str
    answer: Answer
    searches: Mapping[str, tuple[Trial, ...]] = field(default_factory=dict)
    published: PublishedSettings = field(default_factory=dict)
    departures: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    sources: Mapping[str, MethodSource] = field(default_factory=dict)
    made: str = ""
    origin: Origin | None = None
    label: str = ""

    @property
    def measured(self) -> MeasuredExperiment:
        """The experiment with its runs and trainings."""
        assert isinstance(self.answer, ExperimentAnswer), "the scores are of no experiment"
        return self.answer.measured

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by key, in the experiment's order."""
        return self.answer.titles

    @cached_property
    def records(self) -> dict[str, list[RunRecord]]:
        """Runs by method, in the page's order. Methods without runs are left out."""
        runs = self.answer.measured.runs if isinstance(self.answer, ExperimentAnswer) else {}
        return {key: sorted(runs[key], key=lambda run: (run.search, run.run)) for key in self.order if key in runs}

    @property
    def folds(self) -> int:
        """Number of models of a run; 0 without runs."""
        return max((len(run.fold_fingerprints) for runs in self.records.values() for run in runs), default=0)

    @property
    def score_name(self) -> str:
        """Name of the primary score; the kind of embeddings is left out if a run has only one model."""
        question = self.answer.question
        return HEADLINE_METRICS[question.score] if self.folds == 1 else question.score_name

    @property
    def scale(self) -> str:
        """What stands behind the name of the score: `%`, or `points`."""
        better = "lower is better" if self.answer.question.lower_is_better else ""
        return ", ".join(filter(None, [self.answer.scaling.unit.strip(), better]))

    @cached_property
    def order(self) -> list[str]:
        """Methods with runs in the order of the answer; those that are not compared come last."""
        compared = self.answer.order
        return [*compared, *(key for key in self.answer.intervals if key not in compared)]
