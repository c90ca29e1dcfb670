"""Labs for tests: one with invented outcomes, and runs of real ones with what an observer saw of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import JsonValue

from protocols.evaluation.evaluate_run import test_data
from protocols.jobs import EvaluateJob, Job, Lab, TrainJob
from protocols.setup import Setup
from reproduce.run.devices import prepare_process
from reproduce.run.lab import MethodSearch, SharedLab
from reproduce.run.tasks import EvaluateTask, Executor, TrainTask, run_task
from results.records.artifacts import weights_path
from results.records.records import FoldResult, RunRecord, run_fingerprint
from results.records.trials import Trial
from results.spec.training_spec import FoldSpec
from results.store.searches import Searches
from results.store.store import Store
from tests.support.sample_records import invented_run
from tests.support.small_setup import COSFACE, TRIPLET, UNTRAINED
from tests.support.toys import same_weights


class InventedLab:
    """Answers with invented outcomes.

    Attributes:
        asked: The jobs of every call.
        returned: Kept for what a protocol returns.
    """

    def __init__(self, score: Callable[[FoldSpec], FoldResult]) -> None:
        self.score = score
        self.asked: list[list[Job]] = []
        self.returned: list[RunRecord] = []

    def train(self, jobs: Sequence[TrainJob]) -> list[FoldResult]:
        self.asked.append(list(jobs))
        return [self.score(job.spec) for job in jobs]

    def test(self, jobs: Sequence[EvaluateJob]) -> list[RunRecord]:
        self.asked.append(list(jobs))
        return [invented_run(job) for job in jobs]

    @property
    def search(self) -> list[TrainJob]:
        return [job for jobs in self.asked for job in jobs if isinstance(job, TrainJob) and job.run is None]

    @property
    def reproductions(self) -> list[TrainJob]:
        return [job for jobs in self.asked for job in jobs if isinstance(job, TrainJob) and job.run is not None]

    @property
    def tests(self) -> list[EvaluateJob]:
        return [job for jobs in self.asked for job in jobs if isinstance(job, EvaluateJob)]


class Observer:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bool]] = []

    def job_done(self, method, job, outcome, *, from_store):
        self.seen.append((method, outcome.fingerprint, from_store))


class InProcess:
    """Runs one task after another in this process, which is quicker for tests."""

    device, workers = "cpu", 1

    def __init__(self):
        prepare_process("cpu")

    def submit(self, task):
        future = Future()
        try:
            future.set_result(run_task(task, "cpu"))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self):
        pass


def run_lab(lab: SharedLab, setup: Setup, protocols: Mapping[str, Callable[[Lab], Any]]) -> dict[str, Any]:
    """Follow a function of a lab for each method; return what each returned, or why it failed."""
    found: dict[str, Any] = {}

    def follow(method: str, protocol: Callable[[Lab], Any], lab: Lab) -> None:
        found[method] = protocol(lab)

    failed = lab.run(MethodSearch(key, setup, partial(follow, key, each)) for key, each in protocols.items())
    return {**found, **failed}


def run_here(
    setup: Setup, store: Store, protocols: Mapping[str, Callable[[Lab], Any]], executor: Any = None, **options: Any
) -> dict[str, Any]:
    """Follow a function of a lab for each method in this process."""
    observer = options.pop("observer", None) or Observer()
    return run_lab(SharedLab(store, executor or InProcess(), [observer], **options), setup, protocols)


def reproduction(setup: Setup, method: Any = TRIPLET, run: int = 0) -> Callable[[Lab], list[RunRecord]]:
    """A protocol of one reproduction: trainings, then their test."""
    specs = setup.fold_specs(method, "reproduction", run)
    name = run_fingerprint(tuple(spec.fingerprint for spec in specs))

    def follow(lab: Lab) -> list[RunRecord]:
        folds = lab.train([TrainJob(spec, name) for spec in specs])
        assert [fold.fingerprint for fold in folds] == [spec.fingerprint for spec in specs]
        return lab.test([EvaluateJob(tuple(folds), "mlrc", {}, run, 5)])

    return follow


def trainings(setup: Setup, method: Any = TRIPLET, *trials: int) -> Callable[[Lab], list[list[FoldResult]]]:
    """A protocol of trials, one after another."""
    batches = [[TrainJob(spec) for spec in setup.fold_specs(method, "search", trial)] for trial in trials or (0,)]
    return lambda lab: [lab.train(jobs) for jobs in batches]


def run_all(executor: Executor, setup: Setup, folder: Any) -> tuple[Any, Any, Any]:
    """The results of all methods' trainings and tests, and their weights."""
    try:
        methods = (TRIPLET, COSFACE, UNTRAINED)
        specs = [spec for method in methods for spec in setup.fold_specs(method, "reproduction", 0)]
        tasks = [TrainTask(TrainJob(s, "r"), setup.training_data(s), weights_path(folder, s)) for s in specs]
        folds = [future.result(300).result for future in [executor.submit(task) for task in tasks]]
        jobs = [EvaluateJob(tuple(folds[i : i + 2]), "mlrc", {}, 0, 5) for i in range(0, len(specs), 2)]
        tests = [
            EvaluateTask(
                job, test_data(setup.dataset, setup.split), tuple(weights_path(folder, spec) for spec in job.specs)
            )
            for job in jobs
        ]
        runs = [future.result(300) for future in [executor.submit(task) for task in tests]]
    finally:
        executor.close()
    weights = [torch.load(weights_path(folder, spec), weights_only=True) for spec in specs]
    return folds, runs, weights


def assert_same_numbers(here: Executor, there: Executor, setup: Setup, folder: Path) -> list[FoldResult]:
    """Two executors give equal trainings, tests and weights, to the bit; return the trainings of both."""
    both = run_all(here, setup, folder / "here"), run_all(there, setup, folder / "there")
    folds, runs, weights = zip(*both, strict=True)
    assert without_time(folds[0]) == without_time(folds[1])
    assert without_time(runs[0]) == without_time(runs[1])
    assert all(map(same_weights, *weights))
    return [*folds[0], *folds[1]]


def reasons_of_deaths(killing: Executor, setup: Setup, folder: Path) -> list[str]:
    """Follow two methods calmly, and where a worker is killed: equal numbers; return the recorded failures."""
    stores, found = [], []
    for executor in (InProcess(), killing):
        stores.append(Store(folder / f"{len(stores)}.sqlite", folder / str(len(stores))))
        with closing(executor):
            protocols = {"triplet": reproduction(setup), "cosface": reproduction(setup, COSFACE)}
            found.append(run_here(setup, stores[-1], protocols, executor))
    for method in ("triplet", "cosface"):
        assert without_time(found[0][method]) == without_time(found[1][method])
    calm, killed = (store.table("failures")["reason"].tolist() for store in stores)
    assert calm == []
    assert len(stores[1].table("folds")) == 4
    return killed


def without_time(records: Any) -> list[Any]:
    return [record.model_dump(exclude={"wall_time", "provenance"}) for record in records]


class TrialsInMemory(Searches):
    """Searches whose trials are gone with the process."""

    def __init__(self) -> None:
        self.studies: dict[str, Mapping[str, JsonValue]] = {}
        self._trials: dict[str, dict[int, Trial]] = {}

    def put_study(self, study: str, identity: Mapping[str, JsonValue]) -> None:
        self.studies.setdefault(study, identity)

    def trials(self, study: str) -> tuple[Trial, ...]:
        return tuple(self._trials.get(study, {}).values())

    def put_trial(self, study: str, trial: Trial) -> None:
        self._trials.setdefault(study, {})[trial.number] = trial
