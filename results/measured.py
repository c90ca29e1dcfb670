"""Records kept in the repository (results/measured/): an experiment's runs as one JSON file, with their provenance."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.records import RunRecord
from results.store import Store

FOLDER = Path(__file__).parent / "measured"


@dataclass(frozen=True)
class MeasuredExperiment:
    """What the store knows of an experiment. summary: title, methods, trials, reproductions, settings."""

    summary: dict[str, Any]
    records: tuple[RunRecord, ...]

    @classmethod
    def from_store(cls, store: Store, experiment: str) -> "MeasuredExperiment":
        """The experiment of that fingerprint; raises StoreError if there is none."""
        return cls(store.experiment(experiment), tuple(store.experiment_runs(experiment)))

    @classmethod
    def from_json(cls, text: str) -> "MeasuredExperiment":
        """The inverse of `to_json`."""
        content = json.loads(text)
        return cls(content["summary"], tuple(RunRecord.model_validate(record) for record in content["records"]))

    def to_json(self) -> str:
        """Everything, at full precision."""
        records = [record.model_dump(mode="json") for record in self.records]
        return json.dumps({"summary": self.summary, "records": records}, indent=1) + "\n"
