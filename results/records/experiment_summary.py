"""The summary of a started experiment that the store keeps: title, methods, budget and settings."""

from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, JsonValue, RootModel, field_serializer

from results.spec.experiment_spec import Experiment, SearchedRange
from results.values import Record

OTHER_VERSION = "settings of another version of the suite"
"""Text in tables and pages for settings that this version cannot read."""


class OtherSettings(RootModel[dict[str, JsonValue]]):
    """Settings that this version cannot read as an `Experiment`; they are kept as they were written.

    Tables and pages of such an experiment can still be drawn from its runs, but it fills no published table.
    """

    model_config = ConfigDict(frozen=True)

    @property
    def dataset(self) -> str:
        """The dataset's name, empty if it cannot be read."""
        dataset = self.root.get("dataset")
        return str(dataset.get("name", "")) if isinstance(dataset, dict) else ""

    @property
    def protocol(self) -> str:
        """The protocol's name, empty if it cannot be read."""
        return str(self.root.get("protocol") or "")


class StoppedMethod(Record):
    """A method that got no more runs, because it was clearly behind the leader.

    Attributes:
        method: Key of the method.
        runs: Number of its runs.
        leader: Key of the method with the highest mean at that time.
        difference: Mean of the leader minus mean of the method, a fraction of 1.
        p: p value of the difference.
        level: Level of the boundary. A method with a smaller p value is stopped.
    """

    method: str
    runs: int
    leader: str
    difference: float
    p: float
    level: float


class ExperimentData(Record):
    """The data that an experiment was started on.

    Attributes:
        fingerprint: Fingerprint of the dataset.
        samples: Number of images, or of rows of features.
        classes: Number of classes.
    """

    fingerprint: str
    samples: int
    classes: int


class LeftOut(NamedTuple):
    """Why a row is not tested against the others: the sign of its note, and the note."""

    sign: str
    note: str


class ExperimentSummary(Record):
    """The facts about a started experiment that its tables need.

    Unknown keys are ignored when a summary is read. The JSON form has the fields under their names.

    Attributes:
        title: Title of the experiment's tables.
        methods: Titles by method key, in the order of the tables' rows.
        trials: Search trials per method; 0 if nothing is searched.
        reproductions: Re-trainings per method.
        runs: Number of runs that each method has when the experiment is complete, by key; empty in old files.
        settings: The experiment, without the folder of its images; None in old files.
        stopped: Methods that got no more runs because they were clearly behind, in the order of their stops.
        known_after: Numbers of runs after which the results were already known when more runs were asked for.
        data: The data that it was started on; None in old files.
        ranges: The ranges in which numeric hyperparameters are searched, by method and target; empty in old files.
    """

    model_config = ConfigDict(extra="ignore")
    later = frozenset({"runs", "settings", "stopped", "known_after", "data", "ranges"})

    title: str
    methods: dict[str, str]
    trials: int
    reproductions: int
    runs: dict[str, int] = Field(default={})
    settings: Annotated[Experiment | OtherSettings | None, Field(union_mode="left_to_right")] = None
    stopped: tuple[StoppedMethod, ...] = ()
    known_after: tuple[int, ...] = ()
    data: ExperimentData | None = None
    ranges: dict[str, dict[str, SearchedRange]] = Field(default={})

    @property
    def experiment(self) -> Experiment | None:
        """The experiment; None if it was not stored or was written by another version of the suite."""
        return self.settings if isinstance(self.settings, Experiment) else None

    @property
    def dataset(self) -> str:
        """Name of the dataset, empty if it is not known."""
        if isinstance(self.settings, Experiment):
            return self.settings.dataset.name
        return "" if self.settings is None else self.settings.dataset

    @property
    def protocol(self) -> str:
        """Name of the protocol, empty if it is not known."""
        return "" if self.settings is None else self.settings.protocol

    @property
    def left_out(self) -> dict[str, LeftOut]:
        """The rows that are not tested against the others, by key: under other conditions, or stopped early."""
        rows: dict[str, LeftOut] = {}
        if self.experiment is not None:
            comparable = self.experiment.comparable_rows()
            for row, changes in self.experiment.conditions.items():
                if row not in comparable:
                    conditions = ", ".join(f"{key} {value}" for key, value in changes.items())
                    rows[row] = LeftOut("†", f"{conditions}. Not compared with rows under other conditions.")
        for stop in self.stopped:
            leader = self.methods.get(stop.leader, stop.leader)
            rows[stop.method] = LeftOut(
                "‡",
                f"stopped after {stop.runs} runs, {100 * stop.difference:.2f} points behind {leader} "
                f"(p = {stop.p:.2g}, boundary {stop.level:.2g}). Not in the final comparison.",
            )
        return rows

    @property
    def compared(self) -> dict[str, str]:
        """Titles of the methods that are tested against each other, by key."""
        left_out = self.left_out
        return {key: title for key, title in self.methods.items() if key not in left_out}

    @property
    def is_on_a_part(self) -> bool:
        """Whether only a part of the published dataset was used."""
        return self.experiment is not None and self.experiment.dataset.subset

    @property
    def is_on_features(self) -> bool:
        """Whether its trainings see features and no images; False if the experiment is not known."""
        return self.experiment is not None and self.experiment.trunk.is_input_features

    @property
    def constant(self) -> frozenset[str]:
        """Methods that have one run because every other would be equal: nothing in them depends on a seed."""
        stopped = {stop.method for stop in self.stopped}
        alone = {key for key, planned in self.runs.items() if planned == 1 < self.reproductions}
        return frozenset(alone - stopped)

    @property
    def peeking_metric(self) -> str:
        """The score that shows the gain from peeking; MAP@R if it is not known."""
        return "map_at_r" if self.experiment is None else self.experiment.peeking_metric

    @property
    def written_settings(self) -> dict[str, JsonValue]:
        """The settings as JSON values, as the store keeps them; empty if none were stored."""
        if isinstance(self.settings, Experiment):
            return self.settings.without_folder()
        return {} if self.settings is None else dict(self.settings.root)

    @field_serializer("settings")
    def _without_folder(self, _settings: object) -> dict[str, JsonValue] | None:
        return None if self.settings is None else self.written_settings
