"""Checks the records of a store: every record can be read, has its fingerprint, has the records that it needs, and says
nothing else than they do."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from pydantic import ValidationError

from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult, RunRecord, TestCurve, run_fingerprint
from results.records.trials import Trial
from results.spec.training_spec import FoldSpec
from results.store.check_experiments import (
    Listing,
    listed_run_faults,
    listed_study_faults,
    summary_faults,
    twice_said,
)
from results.store.check_runs import run_and_training_faults, run_faults, trainval
from results.store.check_searches import CheckedStudy, found_faults, readable_study, trial_faults
from results.store.check_trainings import CheckedTraining, test_curve_faults, training_faults
from results.store.database import Database
from results.store.findings import Finding, damaged, hash_of, read
from results.store.patience import patient
from results.store.schema import (
    EXPERIMENT_RUNS,
    EXPERIMENT_STUDIES,
    EXPERIMENTS,
    FOLD_RESULTS,
    RUNS,
    STUDIES,
    TEST_CURVES,
    TRIALS,
)
from results.values import fingerprint_of


@dataclass(frozen=True)
class CheckedRecords:
    """The outcome of a check of records.

    Attributes:
        findings: What is not as it should be.
        specs: The specifications of the whole trainings, by fingerprint.
        runs: The whole test evaluations, by fingerprint.
        records: Number of records that were read.
    """

    findings: tuple[Finding, ...]
    specs: Mapping[str, FoldSpec]
    runs: Mapping[str, RunRecord]
    records: int


@patient
def check_records(database: Database, progress: Callable[[int, int], None] | None = None) -> CheckedRecords:
    """Read every record of a store, and compute again what other records or its own fields say. Nothing is written.

    It begins again after a lost connection, and if the store was locked and `database.lock_wait` goes on.

    Args:
        database: The store's database.
        progress: Called with the number of records that were read, and of all records.

    Returns:
        The findings, and the whole trainings and test evaluations.
    """
    check = _RecordCheck()
    with database.reading() as connection:
        # What a check needs of other records is read before it, so that no long record is kept.
        tables = (
            *((RUNS, check.run), (TEST_CURVES, check.curve), (FOLD_RESULTS, check.training)),
            *((EXPERIMENTS, check.experiment), (STUDIES, check.study), (TRIALS, check.trial)),
            *((EXPERIMENT_STUDIES, check.listed_study), (EXPERIMENT_RUNS, check.listed_run)),
        )
        counts = [connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one() for t, _ in tables]
        done = 0
        for table, check_row in tables:
            for row in connection.execute(sa.select(table).order_by(*table.primary_key)).mappings():
                check.findings += check_row(row)
                done += 1
                if progress is not None:
                    progress(done, sum(counts))
    check.findings += check.runs_and_trainings()
    check.findings += check.missing_trials()
    specs = {fingerprint: training.spec for fingerprint, training in check.trainings.items()}
    return CheckedRecords(tuple(check.findings), specs, check.runs, done)


class _RecordCheck:
    """The findings so far, and what is needed to check the records that refer to others."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.runs: dict[str, RunRecord] = {}
        self.run_names: set[str] = set()
        self.choosing: set[str] = set()
        self.curves: dict[str, TestCurve] = {}
        self.trainings: dict[str, CheckedTraining] = {}
        self.training_names: set[str] = set()
        self.experiments: dict[str, ExperimentSummary | None] = {}
        self.sizes: dict[tuple[object, ...], tuple[int, int]] = {}
        self.studies: dict[str, CheckedStudy | None] = {}
        self.trials: dict[str, list[Trial]] = defaultdict(list)
        self.numbers: dict[str, set[int]] = defaultdict(set)

    def run(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `runs`."""
        name, fingerprint = f"test evaluation {row['fingerprint']}", row["fingerprint"]
        self.run_names.add(fingerprint)
        record, unreadable = read(RunRecord, row["record"], name, lambda content: content["fingerprint"] == fingerprint)
        if unreadable is not None:
            yield unreadable
        elif record is not None:
            named, metrics = _run_name(record), tuple(record.metrics_concatenated)
            self.choosing.update(record.chosen_by)
            if record.fingerprint != fingerprint:
                yield Finding("damaged", named, f"it belongs to the test evaluation {record.fingerprint}")
            elif run_fingerprint(record.fold_fingerprints, metrics, record.chosen_by) != fingerprint:
                yield Finding("damaged", named, "its trainings or metrics do not give its fingerprint")
            elif (record.dataset, record.method) != (row["dataset"], row["method"]):
                yield Finding("damaged", named, "dataset or method differ between the table's columns and the record")
            else:
                self.runs[fingerprint] = record
                yield from damaged(named, run_faults(record))

    def curve(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `test_curves`."""
        name = f"test curve of training {row['fingerprint']}"
        curve, unreadable = read(
            TestCurve, row["curve"], name, lambda content: content["fingerprint"] == row["fingerprint"]
        )
        if unreadable is not None:
            yield unreadable
        elif curve is not None and curve.fingerprint != row["fingerprint"]:
            yield Finding("damaged", name, f"it belongs to the training {curve.fingerprint}")
        elif curve is not None:
            self.curves[curve.fingerprint] = curve

    def training(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `fold_results`."""
        name, fingerprint = f"training {row['fingerprint']}", row["fingerprint"]
        self.training_names.add(fingerprint)
        spec, unreadable = read(
            FoldSpec, row["spec"], name, lambda content: fingerprint_of(content) == fingerprint, hashed=True
        )
        result, broken = read(FoldResult, row["result"], name, lambda content: content["fingerprint"] == fingerprint)
        if spec is None or result is None:
            yield unreadable or broken or Finding("damaged", name, "cannot be read")
            return
        if (own := hash_of(lambda: spec.fingerprint)) != fingerprint:
            yield Finding("damaged", name, f"its specification has the fingerprint {own}")
        elif result.fingerprint != fingerprint:
            yield Finding("damaged", name, f"its result belongs to the training {result.fingerprint}")
        elif differing := _differing_columns(row, spec, result):
            yield Finding("damaged", name, f"{', '.join(differing)} differ between the table's columns and the record")
        else:
            self.trainings[fingerprint] = CheckedTraining.of(spec, result, whole=fingerprint in self.choosing)
            yield from damaged(name, training_faults(spec, result))
            if (curve := self.curves.pop(fingerprint, None)) is not None:
                yield from damaged(f"test curve of {name}", test_curve_faults(curve, result))

    def experiment(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiments`."""
        name = f"experiment {row['name']} ({row['fingerprint'][:12]})"
        # Experiments of the first releases have a summary without title and methods.
        summary, unreadable = read(ExperimentSummary, row["settings"], name, lambda content: not twice_said(content))
        self.experiments[row["fingerprint"]] = summary
        if unreadable is not None:
            yield unreadable
        elif summary is not None:
            yield from damaged(name, summary_faults(row["name"], row["fingerprint"], summary))
            if (data := summary.data) is not None:
                yield from self._other_sizes(name, (data.fingerprint,), (data.samples, data.classes))
        try:
            datetime.fromisoformat(row["last_started"])
        except ValueError:
            yield Finding("damaged", name, "last_started is no time")

    def study(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `searches`."""
        name = f"study {row['fingerprint']}"
        self.studies[row["fingerprint"]] = None
        try:
            identity = json.loads(row["identity"])
        except ValueError:
            identity = None
        if (study := readable_study(identity)) is None:
            yield Finding("damaged", name, "what decides it cannot be read")
        elif hash_of(lambda: fingerprint_of(identity)) != row["fingerprint"]:
            yield Finding("damaged", name, "what decides it does not give its fingerprint")
        else:
            self.studies[row["fingerprint"]] = study

    def trial(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `search_trials`; the trials before it have been checked."""
        study, name = row["study"], f"trial {row['number']} of study {row['study']}"
        self.numbers[study].add(row["number"])
        if study not in self.studies:
            yield Finding("missing", f"study {study}", f"trial {row['number']} belongs to it")
        try:
            trial = Trial.model_validate_json(row["trial"])
        except ValidationError as error:
            yield Finding("damaged", name, f"not a readable record ({error.errors()[0]['msg']})")
            return
        if (trial.number, trial.state, trial.score) != (row["number"], row["state"], row["score"]):
            yield Finding("damaged", name, "number, state or score differ between the table's columns and the record")
        elif (known := self.studies.get(study)) is not None:
            yield from damaged(name, trial_faults(known, trial, self.trials[study], self.trainings))
        self.trials[study].append(trial)
        for fingerprint in trial.trainings:
            if fingerprint not in self.training_names:
                yield Finding("missing", f"training {fingerprint}", f"{name} was scored by it")

    def listed_study(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiment_searches`."""
        name, listed = f"study {row['study']}", f"the experiment {row['experiment'][:12]} lists it for {row['method']}"
        summary, study = self.experiments.get(row["experiment"]), self.studies.get(row["study"])
        if row["study"] not in self.studies:
            yield Finding("missing", name, listed)
        elif summary is not None and study is not None:
            place = Listing(row["method"], row["search"])
            yield from damaged(name, listed_study_faults(summary, place, study), listed)

    def listed_run(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiment_runs`."""
        name = f"test evaluation {row['run_fingerprint']} ({row['method']})"
        listed = f"the experiment {row['experiment'][:12]} lists it"
        if row["run_fingerprint"] not in self.run_names:
            yield Finding("missing", name, listed)
        if row["experiment"] not in self.experiments:
            yield Finding("missing", f"experiment {row['experiment'][:12]}", f"{name} is listed under it")
        if row["study"] is not None and row["study"] not in self.studies:
            yield Finding("missing", f"study {row['study']}", f"{name} has the setting that it found")
        run, summary = self.runs.get(row["run_fingerprint"]), self.experiments.get(row["experiment"])
        if run is None or summary is None:
            return
        place = Listing(row["method"], row["search"], row["run"])
        if (first := self.trainings.get(next(iter(run.fold_fingerprints), ""))) is not None:
            yield from damaged(name, listed_run_faults(summary, place, run, first.spec), listed)
        if (study := self.studies.get(row["study"])) is not None:
            trials = [trial for trial in self.trials[row["study"]][: summary.trials] if trial.state != "running"]
            if len(trials) < study.n_trials(summary.trials):
                yield Finding("missing", f"trial {len(trials)} of study {row['study']}", f"{name} has what it found")
            else:
                yield from damaged(name, found_faults(study, trials, run), listed)

    def runs_and_trainings(self) -> Iterator[Finding]:
        """Compare the test evaluations with their trainings and with one another."""
        for record in self.runs.values():
            for fingerprint in (*record.fold_fingerprints, *record.chosen_by):
                if fingerprint not in self.training_names:
                    reason = f"{record.method}, {record.name} was made from it"
                    yield Finding("missing", f"training {fingerprint}", reason)
            name = _run_name(record)
            if record.study is not None and record.study not in self.studies:
                yield Finding("missing", f"study {record.study}", f"{name} has the setting that it found")
            yield from damaged(name, run_and_training_faults(record, self.trainings))
            if (first := self.trainings.get(next(iter(record.fold_fingerprints), ""))) is not None:
                tested = record.data_fingerprint, first.spec.split, trainval(first.spec)
                yield from self._other_sizes(name, tested, (record.test_images, record.test_classes))

    def _other_sizes(self, name: str, data: tuple[object, ...], sizes: tuple[int, int]) -> Iterator[Finding]:
        """Say if the same data have other numbers of images and classes in an earlier record."""
        known = self.sizes.setdefault(data, sizes)
        if known != sizes:
            reason = f"it has {sizes[0]} images of {sizes[1]} classes, and other records {known[0]} of {known[1]}"
            yield Finding("damaged", name, f"{reason} of the same data")

    def missing_trials(self) -> Iterator[Finding]:
        """Yield the studies that lack a trial before another one."""
        for study, numbers in self.numbers.items():
            if lacking := set(range(max(numbers))) - numbers:
                yield Finding("damaged", f"study {study}", f"its trial {min(lacking)} is missing")


def _run_name(record: RunRecord) -> str:
    return f"test evaluation {record.fingerprint} ({record.method}, {record.name})"


def _differing_columns(row: sa.RowMapping, spec: FoldSpec, result: FoldResult) -> list[str]:
    """Return the columns of a training that say something else than its record."""
    recorded = {"dataset": spec.dataset, "method": spec.method.name, "fold": spec.fold}
    recorded |= {key: getattr(result, key) for key in ("status", "best_map_at_r", "iterations", "wall_time")}
    return [column for column, value in recorded.items() if row[column] != value]
