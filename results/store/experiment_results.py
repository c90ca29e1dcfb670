"""An experiment with its measured runs, read from a store or from one JSON file (as in `results/measured/`)."""

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from results.records.experiment_summary import ExperimentSummary
from results.records.frames import curves_frame, test_curves_frame
from results.records.records import FoldResult, RunRecord, TestCurve
from results.records.trials import SearchTrials
from results.spec.training_spec import FoldSpec
from results.store.store import Store

FOLDER = Path(__file__).parents[1] / "measured"


def kept_text(file: Path) -> str:
    """Return the text of a record that comes with the suite; every reading of one goes through here."""
    return file.read_text(encoding="utf-8")


@dataclass(frozen=True)
class MeasuredExperiment:
    """An experiment and its measurements.

    Attributes:
        summary: Title, methods, budget and settings.
        records: The runs.
        trainings: Specs and results of the runs' trainings, by fingerprint. Figures need them; empty if they were not
            read or not recorded.
        test_curves: Test scores along the trainings, by fingerprint; empty likewise.
        searches: Trials of each search, by method and number of the search; empty likewise.
        cut_off: Number of trainings of a run that were cut off, by the run's fingerprint, where the trainings were left
            out.
        others: Methods that the store has runs of under the same settings and the summary does not name; `from_store`
            leaves those runs out.
    """

    summary: ExperimentSummary
    records: tuple[RunRecord, ...]
    trainings: Mapping[str, tuple[FoldSpec, FoldResult]] = field(default_factory=dict)
    test_curves: Mapping[str, TestCurve] = field(default_factory=dict)
    searches: Mapping[tuple[str, int], SearchTrials] = field(default_factory=dict)
    cut_off: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def repeats_searches(self) -> bool:
        """Whether the search of any method was repeated from other seeds."""
        return any(record.search for record in self.records)

    @property
    def searched_methods(self) -> frozenset[str]:
        """The methods whose hyperparameters were searched. Others can have as many runs, from the same seeds."""
        if self.summary.trials == 0:
            return frozenset()
        by_study = any(record.study for record in self.records)
        return frozenset(
            record.method for record in self.records if (record.study if by_study else record.hyperparameters)
        )

    @classmethod
    def from_store(cls, store: Store, experiment: str, trainings: bool = False) -> "MeasuredExperiment":
        """Read an experiment from a store, with the runs of the methods that its summary names.

        The store has runs of further methods if the same experiment was started with other methods too.

        Args:
            store: The store.
            experiment: The experiment's fingerprint.
            trainings: Whether to read the trainings of the runs, the test scores along them and the trials too.

        Raises:
            StoreError: The experiment is not in the store.
        """
        summary, stored_runs = store.experiment(experiment), runs_of_all_starts(store, experiment)
        records = tuple(record for record in stored_runs if record.method in summary.methods)
        others = tuple(sorted({record.method for record in stored_runs} - set(summary.methods)))
        if not trainings:
            return cls(summary, records, others=others)
        folds = list(dict.fromkeys(fingerprint for record in records for fingerprint in record.fold_fingerprints))
        stored = store.fold_results(folds)
        searches = _searches(store, experiment, summary, records)
        return cls(summary, records, stored, store.test_curves(folds), searches, others=others)

    @classmethod
    def kept(cls, name: str) -> "MeasuredExperiment":
        """Read `results/measured/NAME.json.xz`, a record that comes with the suite."""
        return cls.from_file(FOLDER / f"{name}.json.xz")

    @classmethod
    def from_file(cls, path: Path) -> "MeasuredExperiment":
        """Read a file with the text of `to_json`, which may be compressed by xz."""
        if path.suffix == ".xz":
            with lzma.open(path, "rt", encoding="utf-8") as file:
                return cls.from_json(file.read())
        return cls.from_json(path.read_text(encoding="utf-8"))

    @classmethod
    def from_json(cls, text: str) -> "MeasuredExperiment":
        """Read the text that `to_json` wrote."""
        content = json.loads(text)
        trainings = [FoldResult.model_validate(training) for training in content.get("trainings", [])]
        curves = [TestCurve.model_validate(curve) for curve in content.get("test_curves", [])]
        searches = content.get("searches", [])
        return cls(
            ExperimentSummary.model_validate(content["summary"]),
            tuple(RunRecord.model_validate(record) for record in content["records"]),
            {result.fingerprint: (result.spec, result) for result in trainings},
            {curve.fingerprint: curve for curve in curves},
            {
                (search["method"], search["search"]): SearchTrials(
                    tuple(search["trial_scores"]), search.get("iterations")
                )
                for search in searches
            },
            content.get("cut_off", {}),
        )

    def to_json(self) -> str:
        """Write everything as JSON, with all digits."""
        content: dict[str, Any] = {
            "summary": self.summary.model_dump(mode="json"),
            "records": [record.model_dump(mode="json") for record in self.records],
        }
        if self.trainings:
            content["trainings"] = [result.model_dump(mode="json") for _, result in self.trainings.values()]
        if self.test_curves:
            content["test_curves"] = [curve.model_dump(mode="json") for curve in self.test_curves.values()]
        if self.searches:
            content["searches"] = [
                {
                    "method": method,
                    "search": search,
                    "trial_scores": list(trials.scores),
                    "iterations": trials.iterations,
                }
                for (method, search), trials in self.searches.items()
            ]
        if self.cut_off:
            content["cut_off"] = dict(self.cut_off)
        return json.dumps(content, indent=1) + "\n"

    def without_trainings(self) -> "MeasuredExperiment":
        """Leave out the trainings and the test scores along them, which are long.

        Kept are the trials, and how many trainings of each run were cut off.
        """
        counts = {record.fingerprint: self.cut_off_trainings(record) for record in self.records}
        cut_off = {fingerprint: count for fingerprint, count in counts.items() if count is not None}
        return replace(self, trainings={}, test_curves={}, cut_off=cut_off)

    def cut_off_trainings(self, run: RunRecord) -> int | None:
        """Count a run's trainings that ended at the largest number of epochs with the last checkpoint the best.

        Args:
            run: One of the records.

        Returns:
            The number, or None if neither the trainings nor their count were read.
        """
        if all(name in self.trainings for name in run.fold_fingerprints):
            return sum(self.trainings[name][1].cut_off for name in run.fold_fingerprints)
        return self.cut_off.get(run.fingerprint)

    def curves(self) -> pd.DataFrame:
        """Return all validations of the runs' trainings, one row each.

        Columns: method, search, run, fold, then those of `frames.curves_frame`.
        """
        return self._with_runs(curves_frame(result for _, result in self.trainings.values()))

    def test_points(self) -> pd.DataFrame:
        """Return all tests along the runs' trainings, one row each.

        Columns: method, search, run, fold, then those of `frames.test_curves_frame`.
        """
        return self._with_runs(test_curves_frame(self.test_curves.values()))

    def _with_runs(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add each training's method, run and fold to its rows; rows of a training that two runs share appear twice."""
        folds = [
            (record.method, record.search, record.run, fold, fingerprint)
            for record in self.records
            for fold, fingerprint in enumerate(record.fold_fingerprints)
        ]
        columns = ["method", "search", "run", "fold", "fingerprint"]
        return pd.DataFrame(folds, columns=columns).merge(frame, on="fingerprint")


@dataclass(frozen=True)
class Start:
    """An experiment of a store that was started with certain methods.

    Attributes:
        without_methods: What it has in common with starts that differ in their methods alone.
    """

    name: str
    fingerprint: str
    last_started: str
    summary: ExperimentSummary
    without_methods: str


def all_starts(store: Store) -> list[Start]:
    """Return the experiments of a store, the latest first."""
    starts = []
    for row in store.experiments().itertuples():
        name, fingerprint = str(row.name), str(row.fingerprint)
        summary = store.experiment(fingerprint)
        data = summary.data.fingerprint if summary.data else fingerprint
        shared = summary.experiment.fingerprint_without_rows(name, data)
        starts.append(Start(name, fingerprint, str(row.last_started), summary, shared))
    return starts


def latest_starts(store: Store) -> list[Start]:
    """Return the experiments of a store, the latest first; of those that differ in their methods alone, the latest."""
    latest: dict[str, Start] = {}
    for start in all_starts(store):
        latest.setdefault(start.without_methods, start)
    return list(latest.values())


def runs_of_all_starts(store: Store, experiment: str) -> list[RunRecord]:
    """Return the runs of an experiment, and those of other methods from starts that differ in their methods alone."""
    starts = {start.fingerprint: start for start in all_starts(store)}
    own, runs = starts.pop(experiment), store.experiment_runs(experiment)
    known = set(own.summary.methods)
    for start in starts.values():
        if (start.name, start.without_methods) == (own.name, own.without_methods):
            runs += [run for run in store.experiment_runs(start.fingerprint) if run.method not in known]
            known |= set(start.summary.methods)
    return runs


def _searches(
    store: Store, experiment: str, summary: ExperimentSummary, records: Iterable[RunRecord]
) -> dict[tuple[str, int], SearchTrials]:
    """Finished trials by method and search, for the searches that have runs."""
    with_runs = {(record.method, record.search) for record in records}
    searches = {}
    for key, study in store.searches.of_experiment(experiment).items():
        trials = study.finished(summary.trials)
        if key in with_runs and trials:
            scores = tuple(trial.score for trial in trials if trial.score is not None)
            lengths = store.iterations([training for trial in trials for training in trial.trainings])
            searches[key] = SearchTrials(scores, sum(lengths) / len(lengths) if lengths else None, study.fingerprint)
    return searches
