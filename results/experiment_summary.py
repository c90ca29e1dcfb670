"""What a store keeps of a started experiment: its title, its methods, its budget and its settings."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, RootModel, field_serializer

from results.experiment_spec import Experiment
from results.values import Record

OTHER_VERSION = "settings of another version of the suite"
"""What tables and pages say of settings that this version cannot read."""


class OtherSettings(RootModel[dict[str, JsonValue]]):
    """Settings that are no `Experiment` of this version; they are kept as they were written.

    Tables and pages are still drawn from the runs of such an experiment, but it fills no published table.
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


class ExperimentSummary(Record):
    """A started experiment, enough to draw its tables.

    Keys that this version does not know are left out. JSON form: the fields under their names.

    Attributes:
        title: title of the experiment's tables.
        methods: titles by method key, in the order of the tables' rows.
        trials: search trials per method that the experiment asks for; 0 if nothing is searched.
        reproductions: re-trainings per method that the experiment asks for.
        runs: how many runs each method has in the end, by key; empty in files from before this was kept.
        settings: the experiment itself, without the folder of its images; None in files from before it was kept.
    """

    model_config = ConfigDict(extra="ignore")
    later = frozenset({"runs", "settings"})

    title: str
    methods: dict[str, str]
    trials: int
    reproductions: int
    runs: dict[str, int] = Field(default={})
    settings: Annotated[Experiment | OtherSettings | None, Field(union_mode="left_to_right")] = None

    @property
    def experiment(self) -> Experiment | None:
        """The experiment, or None if it was not kept or was written by another version of the suite."""
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
    def written_settings(self) -> dict[str, JsonValue]:
        """The settings as JSON values, as the store keeps them; empty if none were kept."""
        if isinstance(self.settings, Experiment):
            return self.settings.without_folder()
        return {} if self.settings is None else dict(self.settings.root)

    @field_serializer("settings")
    def _without_folder(self, _settings: object) -> dict[str, JsonValue] | None:
        return None if self.settings is None else self.written_settings
