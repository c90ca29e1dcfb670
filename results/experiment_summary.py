"""The summary of a started experiment that the store keeps: title, methods, budget and settings."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, RootModel, field_serializer

from results.experiment_spec import Experiment
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
    def own_conditions(self) -> dict[str, str]:
        """The conditions of rows that are not under the experiment's common conditions, as phrases, by row."""
        if self.experiment is None:
            return {}
        comparable = self.experiment.comparable_rows()
        return {
            row: ", ".join(f"{key} {value}" for key, value in changes.items())
            for row, changes in self.experiment.conditions.items()
            if row not in comparable
        }

    @property
    def written_settings(self) -> dict[str, JsonValue]:
        """The settings as JSON values, as the store keeps them; empty if none were stored."""
        if isinstance(self.settings, Experiment):
            return self.settings.without_folder()
        return {} if self.settings is None else dict(self.settings.root)

    @field_serializer("settings")
    def _without_folder(self, _settings: object) -> dict[str, JsonValue] | None:
        return None if self.settings is None else self.written_settings
