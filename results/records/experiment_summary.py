"""The summary of a started experiment that the store keeps."""

from typing import NamedTuple

from pydantic import Field, JsonValue, field_serializer

from results.spec.data_choice import samples_word
from results.spec.experiment_spec import Experiment
from results.spec.recipe import Recipe
from results.spec.search_settings import SearchedRange
from results.values import Record


class ExperimentData(Record):
    """The data that an experiment was started on.

    Attributes:
        samples: Number of images, or of rows of features.
        left_out: Phrases with number and names of images and classes that are no part of the data.
        equal_files: A phrase on images whose files are equal in several classes; None without any.
        queries: Number of test images that are searched for among the others, the gallery; None if all of them are.
        content: Hash of the files of the images, or of the rows, without names and labels; empty if it is not known.
    """

    fingerprint: str
    samples: int
    classes: int
    left_out: tuple[str, ...] = ()
    equal_files: str | None = None
    queries: int | None = None
    content: str = ""


class LeftOut(NamedTuple):
    """Why a row is not tested against the others: the sign of its note, and the note."""

    sign: str
    note: str


class ExperimentSummary(Record):
    """The facts about a started experiment that its tables need.

    Attributes:
        methods: Titles by method key, in the order of the tables' rows.
        runs: Number of runs that each method has when the experiment is complete, by key.
        experiment: The experiment. It is written without the folder of its images, which differs between machines.
        interim_looks: After how many searches or runs the results could be seen before more were asked for, as phrases
            such as `2 searches`.
        data: The data that it was started on; None if it was never started.
        ranges: The ranges in which numeric hyperparameters are searched, by method and target.
        transductive: Methods that compute something from the test images before these are scored.
        printed: The scores that the methods' sources print for the dataset, in percent, by method and metric.
        defaults: The method that each row of default settings belongs to, by the row's key.
        recipes: What the methods' cards decide about training and search, by method with a loss.
    """

    methods: dict[str, str]
    runs: dict[str, int]
    experiment: Experiment
    interim_looks: tuple[str, ...] = ()
    data: ExperimentData | None = None
    ranges: dict[str, dict[str, SearchedRange]] = Field(default={})
    transductive: tuple[str, ...] = ()
    printed: dict[str, dict[str, float]] = Field(default={}, exclude_if=lambda value: not value)
    defaults: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    recipes: dict[str, Recipe] = Field(default={}, exclude_if=lambda value: not value)

    @property
    def title(self) -> str:
        """Title of the experiment's tables."""
        return self.experiment.title

    @property
    def trials(self) -> int:
        """Search trials per method; 0 if nothing is searched."""
        return self.experiment.search.trials

    @property
    def reproductions(self) -> int:
        """Re-trainings per method."""
        return self.experiment.reproductions

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.experiment.dataset.name

    def tested(self, samples: int) -> str:
        """Say what a test of so many images or rows consists of."""
        what, queries = samples_word(self.dataset), None if self.data is None else self.data.queries
        if queries is None:
            return f"{samples:,} {what}"
        return f"{queries:,} queries among {samples - queries:,} other {what}"

    @property
    def left_out(self) -> dict[str, LeftOut]:
        """The rows that are not tested against the others: other conditions, knowing the test images, defaults."""
        rows: dict[str, LeftOut] = {}
        comparable = self.experiment.comparable_rows()
        for row, changes in self.experiment.changes.items():
            if row not in comparable:
                conditions = ", ".join(f"{key} {'null' if value is None else value}" for key, value in changes.items())
                rows[row] = LeftOut("†", f"{conditions}. Not compared with rows under other conditions.")
        note = "Knows the test images. Not compared with rows that do not."
        rows |= dict.fromkeys(self.transductive, LeftOut("‡", note))
        note = "The card's own settings, without a search. Compared with the method's searches only."
        return rows | dict.fromkeys(self.defaults, LeftOut("§", note))

    @property
    def compared(self) -> dict[str, str]:
        """Titles of the methods that are tested against each other, by key."""
        left_out = self.left_out
        return {key: title for key, title in self.methods.items() if key not in left_out}

    @property
    def constant(self) -> frozenset[str]:
        """Methods that have one run because every other would be equal: nothing in them depends on a seed."""
        others = self.reproductions * (self.experiment.search.searches if self.trials else 1)
        return frozenset(
            key for key, planned in self.runs.items() if planned == 1 < others and key not in self.defaults
        )

    @field_serializer("experiment")
    def _without_folder(self, experiment: Experiment) -> dict[str, JsonValue]:
        return experiment.without_folder()
