"""Checks the records of a store: every record can be read, has its fingerprint, and has the records that it needs."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import sqlalchemy as sa
from pydantic import ValidationError

from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult, RunRecord, TestCurve, run_fingerprint
from results.records.trials import Trial
from results.spec.training_spec import FoldSpec
from results.store.database import Database
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
from results.values import Record, fingerprint_of

FindingKind = Literal["damaged", "missing", "foreign"]
AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True)
class Finding:
    """Something in a store that is not as the suite writes it.

    Attributes:
        kind: `damaged` cannot be read or has another name than its content. `missing` is needed by something else.
            `foreign` belongs to nothing in the store, or to another release; it does no harm.
        name: The record or the file.
        reason: What is wrong with it.
    """

    kind: FindingKind
    name: str
    reason: str


@dataclass(frozen=True)
class CheckedRecords:
    """The outcome of a check of records.

    Attributes:
        findings: What is not as it should be.
        specs: The specifications of the whole trainings, by fingerprint.
        objectives: What a search is told of these trainings; None without validation classes.
        runs: The whole test evaluations, by fingerprint.
        records: Number of records that were read.
    """

    findings: tuple[Finding, ...]
    specs: Mapping[str, FoldSpec]
    objectives: Mapping[str, float | None]
    runs: Mapping[str, RunRecord]
    records: int


@patient
def check_records(database: Database, progress: Callable[[int, int], None] | None = None) -> CheckedRecords:
    """Read every record of a store and compute its fingerprint again. Nothing is written.

    It begins again after a lost connection, and if the store was locked and `database.lock_wait` goes on.

    Args:
        database: The store's database.
        progress: Called with the number of records that were read, and of all records.

    Returns:
        The findings, and the whole trainings and test evaluations.
    """
    check = _RecordCheck()
    with database.reading() as connection:
        tables = ((FOLD_RESULTS, check.training), (TEST_CURVES, check.curve), (RUNS, check.run))
        more = (
            *((EXPERIMENTS, check.experiment), (STUDIES, check.study), (TRIALS, check.trial)),
            *((EXPERIMENT_RUNS, check.listed_run), (EXPERIMENT_STUDIES, check.listed_study)),
        )
        counts = [connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one() for t, _ in tables + more]
        done = 0
        for table, check_row in tables + more:
            for row in connection.execute(sa.select(table)).mappings():
                check.findings += check_row(row)
                done += 1
                if progress is not None:
                    progress(done, sum(counts))
    check.findings += check.missing_trainings()
    check.findings += check.missing_trials()
    return CheckedRecords(tuple(check.findings), check.specs, check.objectives, check.runs, done)


class _RecordCheck:
    """The findings so far, and what is needed to check the records that refer to others."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.specs: dict[str, FoldSpec] = {}
        self.objectives: dict[str, float | None] = {}
        self.runs: dict[str, RunRecord] = {}
        self.trainings: set[str] = set()
        self.run_names: set[str] = set()
        self.experiments: set[str] = set()
        self.targets: dict[str, set[str]] = {}
        self.studies: set[str] = set()
        self.numbers: dict[str, set[int]] = defaultdict(set)

    def training(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `fold_results`."""
        name, fingerprint = f"training {row['fingerprint']}", row["fingerprint"]
        self.trainings.add(fingerprint)
        spec, unreadable = _read(FoldSpec, row["spec"], name, lambda content: fingerprint_of(content) == fingerprint)
        result, broken = _read(FoldResult, row["result"], name, lambda content: content["fingerprint"] == fingerprint)
        if spec is None or result is None:
            yield unreadable or broken or Finding("damaged", name, "cannot be read")
            return
        if spec.fingerprint != fingerprint:
            yield Finding("damaged", name, f"its specification has the fingerprint {spec.fingerprint}")
        elif result.fingerprint != fingerprint:
            yield Finding("damaged", name, f"its result belongs to the training {result.fingerprint}")
        elif differing := _differing_columns(row, spec, result):
            yield Finding("damaged", name, f"{', '.join(differing)} differ between the table's columns and the record")
        else:
            self.specs[fingerprint] = spec
            self.objectives[fingerprint] = None if result.best_map_at_r is None else result.objective

    def curve(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `test_curves`."""
        name = f"test curve of training {row['fingerprint']}"
        curve, unreadable = _read(
            TestCurve, row["curve"], name, lambda content: content["fingerprint"] == row["fingerprint"]
        )
        if unreadable is not None:
            yield unreadable
        elif curve is not None and curve.fingerprint != row["fingerprint"]:
            yield Finding("damaged", name, f"it belongs to the training {curve.fingerprint}")

    def run(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `runs`."""
        name, fingerprint = f"test evaluation {row['fingerprint']}", row["fingerprint"]
        self.run_names.add(fingerprint)
        record, unreadable = _read(
            RunRecord, row["record"], name, lambda content: content["fingerprint"] == fingerprint
        )
        if unreadable is not None:
            yield unreadable
        elif record is not None:
            named = f"{name} ({record.method}, {record.name})"
            metrics = tuple(record.metrics_concatenated)
            if record.fingerprint != fingerprint:
                yield Finding("damaged", named, f"it belongs to the test evaluation {record.fingerprint}")
            elif run_fingerprint(record.fold_fingerprints, metrics, record.chosen_by) != fingerprint:
                yield Finding("damaged", named, "its trainings or metrics do not give its fingerprint")
            elif (record.dataset, record.method) != (row["dataset"], row["method"]):
                yield Finding("damaged", named, "dataset or method differ between the table's columns and the record")
            else:
                self.runs[fingerprint] = record

    def experiment(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiments`."""
        self.experiments.add(row["fingerprint"])
        name = f"experiment {row['name']} ({row['fingerprint'][:12]})"
        # Experiments of the first releases have a summary without title and methods.
        _, unreadable = _read(ExperimentSummary, row["settings"], name, lambda _: True)
        if unreadable is not None:
            yield unreadable

    def listed_run(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiment_runs`."""
        name = f"test evaluation {row['run_fingerprint']} ({row['method']})"
        if row["run_fingerprint"] not in self.run_names:
            yield Finding("missing", name, f"the experiment {row['experiment'][:12]} lists it")
        if row["experiment"] not in self.experiments:
            yield Finding("missing", f"experiment {row['experiment'][:12]}", f"{name} is listed under it")

    def study(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `searches`."""
        name = f"study {row['fingerprint']}"
        self.studies.add(row["fingerprint"])
        try:
            identity = json.loads(row["identity"])
            targets = {parameter["target"] for parameter in identity["space"]}
        except (ValueError, TypeError, KeyError):
            yield Finding("damaged", name, "what decides it cannot be read")
            return
        if fingerprint_of(identity) != row["fingerprint"]:
            yield Finding("damaged", name, "what decides it does not give its fingerprint")
        else:
            self.targets[row["fingerprint"]] = targets

    def trial(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `search_trials`."""
        study, name = row["study"], f"trial {row['number']} of study {row['study']}"
        self.numbers[study].add(row["number"])
        if study not in self.studies:
            yield Finding("missing", f"study {study}", f"trial {row['number']} belongs to it")
        try:
            trial = Trial.model_validate_json(row["trial"])
        except ValidationError as error:
            yield Finding("damaged", name, f"not a readable record ({error.errors()[0]['msg']})")
            return
        if reason := self._why_damaged(row, trial, self.targets.get(study)):
            yield Finding("damaged", name, reason)
        for fingerprint in trial.trainings:
            if fingerprint not in self.trainings:
                yield Finding("missing", f"training {fingerprint}", f"{name} was scored by it")

    def _why_damaged(self, row: sa.RowMapping, trial: Trial, targets: set[str] | None) -> str | None:
        if (trial.number, trial.state, trial.score) != (row["number"], row["state"], row["score"]):
            return "number, state or score differ between the table's columns and the record"
        if targets is not None and set(trial.setting) != targets:
            return "its setting is not one of its search"
        for fingerprint, score in zip(trial.trainings, trial.fold_scores, strict=True):
            if fingerprint in self.objectives and score != self.objectives[fingerprint]:
                return f"it has the score {score} of training {fingerprint}, whose record has another"
        return None

    def missing_trials(self) -> Iterator[Finding]:
        """Yield the studies that lack a trial before another one."""
        for study, numbers in self.numbers.items():
            if lacking := set(range(max(numbers))) - numbers:
                yield Finding("damaged", f"study {study}", f"its trial {min(lacking)} is missing")

    def listed_study(self, row: sa.RowMapping) -> Iterator[Finding]:
        """Check a row of `experiment_searches`."""
        if row["study"] not in self.studies:
            reason = f"the experiment {row['experiment'][:12]} lists it for {row['method']}"
            yield Finding("missing", f"study {row['study']}", reason)

    def missing_trainings(self) -> Iterator[Finding]:
        """Yield the trainings that test evaluations were made from and that are not in the store."""
        for record in self.runs.values():
            for fingerprint in (*record.fold_fingerprints, *record.chosen_by):
                if fingerprint not in self.trainings:
                    reason = f"{record.method}, {record.name} was made from it"
                    yield Finding("missing", f"training {fingerprint}", reason)


def _read(
    kind: type[AnyRecord], text: str, name: str, is_named_so: Callable[[Any], bool]
) -> tuple[AnyRecord | None, Finding | None]:
    """Read a record. One that this release cannot read, but that has its fingerprint, comes from another release."""
    try:
        return kind.model_validate_json(text), None
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "the whole text"
    try:
        if is_named_so(json.loads(text)):
            return None, Finding("foreign", name, f"written by another release, which this one cannot read ({place})")
    except (ValueError, TypeError, KeyError):
        pass  # Not JSON, or not of any release: damaged.
    return None, Finding("damaged", name, f"not a readable record ({place})")


def _differing_columns(row: sa.RowMapping, spec: FoldSpec, result: FoldResult) -> list[str]:
    """Return the columns of a training that say something else than its record."""
    recorded = {"dataset": spec.dataset, "method": spec.method.name, "fold": spec.fold}
    recorded |= {key: getattr(result, key) for key in ("status", "best_map_at_r", "iterations", "wall_time")}
    return [column for column, value in recorded.items() if row[column] != value]
