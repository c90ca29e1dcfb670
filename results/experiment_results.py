"""Records kept in the repository (results/measured/): an experiment's runs as one JSON file, with their provenance."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from results.experiment_summary import ExperimentSummary
from results.frames import curves_frame, test_curves_frame
from results.records import FoldResult, RunRecord, TestCurve
from results.store import Store
from results.training_spec import FoldSpec

FOLDER = Path(__file__).parent / "measured"


@dataclass(frozen=True)
class MeasuredExperiment:
    """What the store knows of an experiment.

    summary: what it is. records: its runs. trainings, test_curves: what figures draw, by the trainings' fingerprints;
    empty where nobody asked for them or nothing was recorded.
    """

    summary: ExperimentSummary
    records: tuple[RunRecord, ...]
    trainings: Mapping[str, tuple[FoldSpec, FoldResult]] = field(default_factory=dict)
    test_curves: Mapping[str, TestCurve] = field(default_factory=dict)

    @classmethod
    def from_store(cls, store: Store, experiment: str, trainings: bool = False) -> "MeasuredExperiment":
        """The experiment of that fingerprint; raises StoreError if there is none or if it is incomplete.

        trainings: with the trainings of its runs and the test scores along them.
        """
        summary, records = store.experiment(experiment), tuple(store.experiment_runs(experiment))
        if not trainings:
            return cls(summary, records)
        names = list(dict.fromkeys(name for record in records for name in record.fold_fingerprints))
        return cls(summary, records, store.fold_results(names), store.test_curves(names))

    @classmethod
    def from_json(cls, text: str) -> "MeasuredExperiment":
        """The inverse of `to_json`; files from before trainings were kept have none."""
        content = json.loads(text)
        trainings = [
            (FoldSpec.model_validate(one["spec"]), FoldResult.model_validate(one["result"]))
            for one in content.get("trainings", [])
        ]
        curves = [TestCurve.model_validate(one) for one in content.get("test_curves", [])]
        return cls(
            ExperimentSummary.model_validate(content["summary"]),
            tuple(RunRecord.model_validate(record) for record in content["records"]),
            {result.fingerprint: (spec, result) for spec, result in trainings},
            {curve.fingerprint: curve for curve in curves},
        )

    def to_json(self) -> str:
        """Everything, at full precision."""
        content: dict[str, Any] = {
            "summary": self.summary.model_dump(mode="json"),
            "records": [record.model_dump(mode="json") for record in self.records],
        }
        if self.trainings:
            content["trainings"] = [
                {"spec": spec.model_dump(mode="json"), "result": result.model_dump(mode="json")}
                for spec, result in self.trainings.values()
            ]
        if self.test_curves:
            content["test_curves"] = [curve.model_dump(mode="json") for curve in self.test_curves.values()]
        return json.dumps(content, indent=1) + "\n"

    def curves(self) -> pd.DataFrame:
        """Every validation of the runs' trainings: method, run, fold, then the columns of `frames.curves_frame`."""
        return self._placed(curves_frame(result for _, result in self.trainings.values()))

    def test_points(self) -> pd.DataFrame:
        """Every test along the runs' trainings: method, run, fold, then the columns of `frames.test_curves_frame`."""
        return self._placed(test_curves_frame(self.test_curves.values()))

    def _placed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the place that each training has in a run; a training that two runs share is in both."""
        places = pd.DataFrame(
            [
                {"method": record.method, "run": record.run, "fold": fold, "fingerprint": name}
                for record in self.records
                for fold, name in enumerate(record.fold_fingerprints)
            ],
            columns=["method", "run", "fold", "fingerprint"],
        )
        return places.merge(frame, on="fingerprint")
