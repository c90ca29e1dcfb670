"""An experiment with its measured runs, read from a store or from one JSON file (as in `results/measured/`)."""

import lzma
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import mode

import pandas as pd
from pydantic import Field, JsonValue

from results.records.frame import scores
from results.records.records import FoldResult, RunRecord, TestCurve
from results.records.trials import Trial, repeated_settings
from results.spec.method import sources_of
from results.spec.plan import Plan
from results.store.store import Start, Store
from results.values import Record

FOLDER = Path(__file__).parents[1] / "measured"


class _SearchRecord(Record):
    method: str
    search: int
    trial_scores: tuple[float, ...]


class _MeasuredRecord(Record):
    """A measured experiment as it is written."""

    summary: Plan
    records: tuple[RunRecord, ...]
    trainings: tuple[FoldResult, ...] = ()
    test_curves: tuple[TestCurve, ...] = ()
    searches: tuple[_SearchRecord, ...] = ()
    cut_off: dict[str, int] = Field(default={})
    repeated: dict[str, tuple[int, int]] = Field(default={}, exclude_if=lambda value: not value)


@dataclass(frozen=True)
class MeasuredExperiment:
    """An experiment and its measurements.

    Attributes:
        plan: Title, methods, budget and settings.
        records: The runs.
        trainings: The runs' trainings by fingerprint. Figures need them; empty if they were not read or not recorded.
        test_curves: Test scores along the trainings, by fingerprint; empty likewise.
        searches: Scores of each search's finished trials in order, fractions of 1, by method and number of the search;
            empty likewise. A raced trial has its expected score.
        cut_off: Number of trainings of a run that were cut off, by the run's fingerprint, where the trainings were left
            out.
        repeated: Number of trials that repeat a setting of an earlier search, and of all trials of later searches, by
            method; empty likewise.
    """

    plan: Plan
    records: tuple[RunRecord, ...]
    trainings: Mapping[str, FoldResult] = field(default_factory=dict)
    test_curves: Mapping[str, TestCurve] = field(default_factory=dict)
    searches: Mapping[tuple[str, int], tuple[float, ...]] = field(default_factory=dict)
    cut_off: Mapping[str, int] = field(default_factory=dict)
    repeated: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The scores of the runs (`results.records.frame`)."""
        return scores(self.records)

    @cached_property
    def runs(self) -> dict[str, list[RunRecord]]:
        """The runs by method; methods without runs are left out."""
        by_method: dict[str, list[RunRecord]] = {}
        for record in self.records:
            by_method.setdefault(record.method, []).append(record)
        return by_method

    @cached_property
    def settings_found(self) -> dict[str, list[dict[str, JsonValue]]]:
        """The setting that each search of a method found, by method; methods without runs are left out."""
        return {key: [*{run.search: run.hyperparameters for run in runs}.values()] for key, runs in self.runs.items()}

    @cached_property
    def cut_offs(self) -> dict[str, tuple[int, int]]:
        """Number of the runs' trainings that were cut off, and of all of them, by method with a loss.

        Runs of which neither the trainings nor their count were read are not counted.
        """
        counts: dict[str, tuple[int, int]] = {}
        for method in self.plan.rows:
            runs = [run for run in self.runs.get(method, ()) if run.specs[0].method.loss is not None]
            known = [(cut, len(run.specs)) for run in runs if (cut := self.cut_off_trainings(run)) is not None]
            if known:
                counts[method] = sum(cut for cut, _ in known), sum(trained for _, trained in known)
        return counts

    def code_of(self, method: str) -> frozenset[str]:
        """The user's classes that a method's runs were trained with, named with the hashes of their files."""
        return frozenset(name for run in self.runs.get(method, ()) for name in sources_of(run.specs[0].method))

    @cached_property
    def dimensions(self) -> int:
        """Dimensions of the embeddings of one model, those of most runs. A method without a loss can have others."""
        trained = [run for run in self.records if run.specs[0].method.loss is not None]
        return mode(run.dimensions for run in trained or self.records)

    @property
    def repeats_searches(self) -> bool:
        """Whether the search of any method was repeated from other seeds."""
        return any(record.search for record in self.records)

    @cached_property
    def searched_methods(self) -> frozenset[str]:
        """The methods whose hyperparameters were searched. Others can have as many runs, from the same seeds."""
        if self.plan.trials == 0:
            return frozenset()
        by_study = any(record.study for record in self.records)
        return frozenset(
            method
            for method, runs in self.runs.items()
            if any(run.study if by_study else run.hyperparameters for run in runs)
        )

    @classmethod
    def from_store(cls, store: Store, experiment: str, trainings: bool = False) -> "MeasuredExperiment":
        """Read an experiment from a store, with the runs of the methods that its plan names.

        The store has runs of further methods if the same experiment was started with other methods too.

        Args:
            store: The store.
            experiment: The experiment's fingerprint.
            trainings: Whether to read the trainings of the runs, the test scores along them and the trials too.

        Raises:
            StoreError: The experiment is not in the store.
        """
        plan = store.experiment(experiment)
        runs = store.experiment_runs(experiment)
        records = tuple(record for record in runs if record.method in plan.rows)
        if not trainings:
            return cls(plan, records, cut_off=_cut_off_counts(store, records))
        folds = list(dict.fromkeys(fingerprint for record in records for fingerprint in record.fold_fingerprints))
        with_runs = {(record.method, record.search) for record in records}
        searches = dict[tuple[str, int], tuple[float, ...]]()
        trials = dict[str, list[tuple[Trial, ...]]]()
        for (method, search), study in store.searches.of_experiment(experiment).items():
            finished = study.finished(plan.trials_of(method))
            validated = tuple(trial.score for trial in finished if trial.score is not None)
            if validated and (method, search) in with_runs:
                searches[method, search] = validated
                trials.setdefault(method, []).append(finished)
        counts = {method: repeated_settings(of_method) for method, of_method in trials.items()}
        repeated = {method: count for method, count in counts.items() if count[0]}
        folds_of, curves_of = store.fold_results(folds), store.test_curves(folds)
        return cls(plan, records, folds_of, curves_of, searches, repeated=repeated)

    @classmethod
    def of_all_starts(cls, store: Store, experiment: str, *, with_rows: bool = False) -> "MeasuredExperiment":
        """Read an experiment's runs, and those of other methods from starts that differ in their methods alone.

        Searches that were made another number of times, or got another number of trials since their ranges were
        widened, are left out. What is not searched has no trials that could differ.

        Args:
            store: The store.
            experiment: The experiment's fingerprint.
            with_rows: Whether complete methods of other starts get their rows in the plan too, so that they are
                compared, unless their own start compares them with none. Runs without a row are left out then.

        Raises:
            StoreError: The experiment is not in the store.
        """
        plan, runs = store.experiment(experiment), store.experiment_runs(experiment)
        starts = sorted(store.starts(), key=lambda start: not start.finished)  # Else in order, the latest first.
        own = next(start for start in starts if start.fingerprint == experiment)
        known, rows, probed = set(plan.rows), plan.rows, plan.probed
        for start in starts:
            if start is own or start.without_methods != own.without_methods or _searches(start) != _searches(own):
                continue
            as_long = start.plan.most_trials == plan.most_trials
            listed = [run for run in store.experiment_runs(start.fingerprint) if as_long or run.study is None]
            further = [run for run in listed if run.method not in known]
            counts = Counter(run.method for run in further)
            # What held up a method stands in the plan of its own start.
            whole = {key for key in start.plan.compared if counts[key] >= start.plan.rows[key].runs > 0}
            rows = rows | {key: row for key, row in start.plan.rows.items() if key in whole}
            probed += tuple(one for one in start.plan.probed if one.method in whole)
            runs += further
            known |= counts.keys()
        if with_rows:
            plan = plan.model_copy(update={"rows": rows, "probed": probed})
            runs = [run for run in runs if run.method in rows]
        return cls(plan, tuple(runs), cut_off=_cut_off_counts(store, runs))

    @classmethod
    def kept(cls, name: str) -> "MeasuredExperiment":
        """Read `results/measured/NAME.json.xz`, a record that comes with the suite."""
        return cls.from_file(FOLDER / f"{name}.json.xz")

    @classmethod
    def from_file(cls, path: Path) -> "MeasuredExperiment":
        """Read a file with the text of `to_json`, which may be compressed by xz."""
        content = path.read_bytes()
        return cls.from_json((lzma.decompress(content) if path.suffix == ".xz" else content).decode())

    @classmethod
    def from_json(cls, text: str) -> "MeasuredExperiment":
        """Read the text that `to_json` wrote; raise ValueError for another text."""
        written = _MeasuredRecord.model_validate_json(text)
        return cls(
            written.summary,
            written.records,
            {result.fingerprint: result for result in written.trainings},
            {curve.fingerprint: curve for curve in written.test_curves},
            {(one.method, one.search): one.trial_scores for one in written.searches},
            written.cut_off,
            written.repeated,
        )

    def to_json(self) -> str:
        """Write everything as JSON, with all digits."""
        searches = [
            _SearchRecord(method=method, search=search, trial_scores=scores)
            for (method, search), scores in self.searches.items()
        ]
        written = _MeasuredRecord(
            summary=self.plan,
            records=self.records,
            trainings=tuple(self.trainings.values()),
            test_curves=tuple(self.test_curves.values()),
            searches=tuple(searches),
            cut_off=dict(self.cut_off),
            repeated=dict(self.repeated),
        )
        return written.model_dump_json(indent=1) + "\n"

    def without_trainings(self) -> "MeasuredExperiment":
        """Leave out the trainings and the test scores along them, which are long.

        Kept are the trials, and how many trainings of each run were cut off.
        """
        counts = {record.fingerprint: self.cut_off_trainings(record) for record in self.records}
        cut_off = {fingerprint: count for fingerprint, count in counts.items() if count is not None}
        return replace(self, trainings={}, test_curves={}, cut_off=cut_off)

    def cut_off_trainings(self, run: RunRecord) -> int | None:
        """Count the trainings of a run that were cut off; None if neither they nor their count were read."""
        return _cut_off(run, self.trainings, self.cut_off.get(run.fingerprint))


def _cut_off_counts(store: Store, runs: Sequence[RunRecord]) -> dict[str, int]:
    """How many trainings of each run were cut off, which decides whether a comparison is about methods."""
    folds = store.fold_results({fingerprint for run in runs for fingerprint in run.fold_fingerprints})
    counts = {run.fingerprint: _cut_off(run, folds) for run in runs}
    return {fingerprint: count for fingerprint, count in counts.items() if count is not None}


def _cut_off(run: RunRecord, trainings: Mapping[str, FoldResult], otherwise: int | None = None) -> int | None:
    if any(name not in trainings for name in run.fold_fingerprints):
        return otherwise
    return sum(trainings[name].cut_off for name in run.fold_fingerprints)


def latest_starts(store: Store) -> list[Start]:
    """Return the experiments of a store, the latest first; of those that differ in their methods alone, the latest.

    A finished one comes before those that are not, so a run that was interrupted does not hide it.
    """
    alike: dict[str, list[Start]] = {}
    for start in store.starts():
        alike.setdefault(start.without_methods, []).append(start)
    latest = [start for starts in alike.values() for start in _latest_of(starts)]
    return sorted(latest, key=lambda start: start.last_started, reverse=True)


def _latest_of(starts: Sequence[Start]) -> list[Start]:
    """Of starts that differ in their methods, and in how much their searches got, the latest of each budget.

    Starts without a search stand beside searches of any budget, and their runs are read with those
    (`MeasuredExperiment.of_all_starts`).
    """
    finished = [start for start in starts if start.finished]
    by_budget: dict[tuple[int, int], Start] = {}
    for start in finished:
        if any(row.ranges for row in start.plan.rows.values()):
            by_budget.setdefault((_searches(start), start.plan.most_trials), start)
    return [*by_budget.values()] or finished[:1] or [starts[0]]


def _searches(start: Start) -> int:
    return start.plan.experiment.search.searches
