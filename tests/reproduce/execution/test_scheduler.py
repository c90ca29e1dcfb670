"""The scheduler looks up outcomes in the store, stores new ones at once, and tries failed jobs again."""

import errno
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest
import torch

from protocols.jobs import EvaluateJob, TrainJob, trainings
from protocols.splits import SplitError
from protocols.training.build_method import MethodError
from protocols.trunks.weights import TrunkError
from reproduce.errors import WorkFailedError
from reproduce.execution.failed_jobs import ATTEMPTS
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import EvaluateTask, Trained, TrainTask, write_tensors
from reproduce.monitoring.observer import Tick
from results.records.artifacts import weights_path
from results.store.store import Store
from tests.support.sample_records import some_result, some_run, some_summary
from tests.support.scheduling import Observer, reproduction
from tests.support.small_problem import COSFACE, TRIPLET, small_problem


class FakeExecutor:
    """Gives invented results.

    Attributes:
        trouble: The error of the n-th task.
        dies_before: Before the n-th call of `submit`, a worker dies, and tasks are refused until `restart`.
    """

    workers = 2

    def __init__(self, store, capacity=4, trouble=None, dies_before=()):
        self.store, self.capacity = store, capacity
        self.trouble, self.dies_before, self.broken = dict(trouble or {}), set(dies_before), False
        self.submitted, self.calls, self.restarts = [], 0, 0
        self.open: list[tuple[Future, object]] = []
        self.most_at_once = 0
        self.late_trouble: dict[str, Exception] = {}

    def submit(self, task):
        self.calls += 1
        if self.broken or self.calls in self.dies_before:
            self.broken = True
            for future, _ in self.open:
                future.set_exception(BrokenProcessPool("a worker died"))
            self.open = []
            raise BrokenProcessPool("a worker died between two looks")
        self.submitted.append(task)
        future = Future()
        self.open.append((future, task))
        self.most_at_once = max(self.most_at_once, sum(not f.done() for f, _ in self.open))
        error = self.trouble.pop(len(self.submitted), None)
        if error is not None:
            future.set_exception(error)
        return future

    def ticks(self):
        return [Tick("f", 1)]

    def finish(self):
        """Finish all submitted tasks."""
        under_way, self.open = self.open, []
        for future, task in under_way:
            error = self.late_trouble.get(task.job.spec.fingerprint) if isinstance(task, TrainTask) else None
            if error is not None:
                future.set_exception(error)
            elif not future.done():
                future.set_result(self.outcome(task))

    def outcome(self, task):
        if isinstance(task, EvaluateTask):
            assert all(path.exists() for path in task.weights)
            return some_run(task.job.specs[0].method.name, task.job.run, fingerprint=task.job.fingerprint)
        if task.weights is not None:
            write_tensors(task.weights, {"w": torch.ones(2)})
        return Trained(some_result(task.job.spec, 0.25), None)

    def restart(self):
        self.restarts += 1
        self.broken = False
        self.open = []

    def trained(self):
        return [task.job.spec.fingerprint for task in self.submitted if isinstance(task, TrainTask)]


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return small_problem(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Replace `wait`: the fake workers finish at once; futures that have already failed are returned first, alone."""

    def wait(futures, timeout, return_when):
        if not any(future.done() for future in futures):
            EXECUTOR[0].finish()
        return {future for future in futures if future.done()}, None

    monkeypatch.setattr("reproduce.execution.scheduler.wait", wait)


EXECUTOR: list[FakeExecutor] = []


def scheduler(problem, store, **settings):
    executor = FakeExecutor(store, **settings)
    EXECUTOR[:] = [executor]
    return Scheduler(problem, store, executor, Observer()), executor


def search_jobs(problem, method=TRIPLET, number=0):
    return [TrainJob(spec) for spec in problem.fold_specs(method, "search", number)]


def only(*batches):
    """A protocol that requests batches of trainings, one after another."""
    told = []
    for batch in batches:
        results = yield from trainings(batch)
        told.append(results)
    return told


def test_everything_is_trained_once_and_stored(problem, store):
    first, executor = scheduler(problem, store)
    found = first.run({"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)})
    assert len(executor.trained()) == len(set(executor.trained())) == 4
    assert {method: len(runs) for method, runs in found.items()} == {"triplet": 1, "cosface": 1}
    assert len(store.folds()) == 4
    assert len(store.runs()) == 2
    second, idle = scheduler(problem, store)
    again = second.run({"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)})
    assert idle.submitted == []
    assert again == found
    assert all(from_store for *_, from_store in second.observer.seen)
    assert len(second.observer.seen) == 6


def test_a_stored_training_is_not_started(problem, store):
    jobs = search_jobs(problem)
    store.put_fold(jobs[0].spec, some_result(jobs[0].spec, 0.75))
    work, executor = scheduler(problem, store)
    told = work.run({"triplet": only(jobs)})["triplet"]
    assert executor.trained() == [jobs[1].spec.fingerprint]
    assert [result.best_map_at_r for result in told[0]] == [0.75, 0.25]
    assert {(name, from_store) for _, name, from_store in work.observer.seen} == {
        (jobs[0].spec.fingerprint, True),
        (jobs[1].spec.fingerprint, False),
    }


def test_outcomes_have_the_order_of_the_jobs(problem, store):
    jobs = [job for number in range(5) for job in search_jobs(problem, number=number)]
    work, _ = scheduler(problem, store, capacity=3)
    (results,) = work.run({"triplet": only(jobs)})["triplet"]
    assert [result.fingerprint for result in results] == [job.spec.fingerprint for job in jobs]


@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_no_more_tasks_are_submitted_than_the_capacity(problem, store, capacity):
    jobs = [job for number in range(5) for job in search_jobs(problem, number=number)]
    work, executor = scheduler(problem, store, capacity=capacity)
    work.run({"triplet": only(jobs)})
    assert executor.most_at_once == capacity
    assert len(executor.trained()) == 10


def test_while_one_method_waits_another_is_trained(problem, store):
    work, executor = scheduler(problem, store, capacity=8)
    trials = [search_jobs(problem, number=number) for number in range(2)]
    others = [search_jobs(problem, COSFACE, number) for number in range(2)]
    work.run({"triplet": only(*trials), "cosface": only(*others)})
    methods = [task.job.spec.method.name for task in executor.submitted]
    assert methods[:4] == ["triplet", "triplet", "cosface", "cosface"]
    assert executor.most_at_once == 4


def test_every_outcome_is_stored_at_once(problem, store):
    jobs = search_jobs(problem) + search_jobs(problem, number=1)
    work, _ = scheduler(problem, store, capacity=1, trouble={3: MethodError("no such thing")})
    with pytest.raises(WorkFailedError):
        work.run({"triplet": only(jobs)})
    assert store.finished_folds([job.spec.fingerprint for job in jobs]) == {j.spec.fingerprint for j in jobs[:2]}


def test_finished_trainings_are_stored_before_a_failure_ends_the_run(problem, store):
    jobs = search_jobs(problem) + search_jobs(problem, number=1)
    work, executor = scheduler(problem, store, capacity=4)
    executor.late_trouble = {jobs[0].spec.fingerprint: OSError(errno.ENOSPC, "No space left on device")}
    with pytest.raises(WorkFailedError, match="disk is full"):
        work.run({"triplet": only(jobs)})
    assert store.finished_folds([job.spec.fingerprint for job in jobs]) == {j.spec.fingerprint for j in jobs[1:]}


def test_a_failed_job_is_recorded_and_tried_again(problem, store):
    jobs = search_jobs(problem)
    work, executor = scheduler(problem, store, trouble={1: OSError(errno.EIO, "cable"), 3: MemoryError("tight")})
    (results,) = work.run({"triplet": only(jobs)})["triplet"]
    assert [result.best_map_at_r for result in results] == [0.25, 0.25]
    assert len(executor.submitted) == 4
    failures = store.failures()
    assert set(failures["fold_fingerprint"]) == {jobs[0].spec.fingerprint}
    assert ["cable" in failures["reason"][0], "MemoryError: tight" in failures["reason"][1]] == [True, True]
    assert (store.folds()["status"] == "ok").all()


def test_after_three_failures_the_run_ends_with_one_line(problem, store):
    jobs = search_jobs(problem)
    trouble = {n: RuntimeError("CUDA error\nand a long story") for n in (2, 3, 4)}
    work, executor = scheduler(problem, store, capacity=2, trouble=trouble)
    with pytest.raises(WorkFailedError) as error:
        work.run({"triplet": only(jobs)})
    text = str(error.value)
    assert "\n" not in text
    assert f"triplet, fold 1: failed {ATTEMPTS} times, last with RuntimeError: CUDA error" in text
    assert "run the same command" in text
    assert len(store.failures()) == ATTEMPTS
    assert jobs[1].spec.fingerprint not in set(store.folds()["fingerprint"])
    assert len(executor.submitted) == 1 + ATTEMPTS


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full; free some space"),
        (MethodError("TripletMarginLoss takes no argument 'x'"), "takes no argument 'x'"),
        (SplitError("class 3 is trained and validated on"), "class 3"),
        (TrunkError("trunk x: its weights are now y"), "its weights are now"),
    ],
)
def test_errors_that_a_retry_cannot_fix_end_the_run_at_once(problem, store, error, said):
    work, executor = scheduler(problem, store, capacity=1, trouble={1: error})
    with pytest.raises(WorkFailedError, match=f"^triplet, fold 0: .*{said}") as raised:
        work.run({"triplet": only(search_jobs(problem))})
    assert "\n" not in str(raised.value)
    assert len(executor.submitted) == 1
    assert len(store.folds()) == 0


def test_a_dead_worker_is_replaced_and_unfinished_tasks_start_again(problem, store):
    jobs = search_jobs(problem) + search_jobs(problem, number=1)
    work, executor = scheduler(problem, store, capacity=4, trouble={2: BrokenProcessPool("killed")})
    (results,) = work.run({"triplet": only(jobs)})["triplet"]
    assert executor.restarts == 1
    assert [result.fingerprint for result in results] == [job.spec.fingerprint for job in jobs]
    assert sorted(set(executor.trained())) == sorted(job.spec.fingerprint for job in jobs)
    assert len(store.failures()) == 1


def test_a_worker_that_dies_before_a_submission_is_replaced(problem, store):
    jobs = search_jobs(problem) + search_jobs(problem, number=1)
    work, executor = scheduler(problem, store, capacity=2, dies_before={2, 6})
    (results,) = work.run({"triplet": only(jobs)})["triplet"]
    assert executor.restarts == 2
    assert [result.fingerprint for result in results] == [job.spec.fingerprint for job in jobs]


def test_a_pool_that_always_breaks_ends_the_run_with_one_line(problem, store):
    jobs = search_jobs(problem)
    work, executor = scheduler(problem, store, dies_before=range(1, 50))
    with pytest.raises(WorkFailedError) as error:
        work.run({"triplet": only(jobs)})
    assert "\n" not in str(error.value)
    assert executor.calls <= 10


def test_a_tested_reproduction_without_weights_is_not_trained_again(problem, store):
    work, _ = scheduler(problem, store)
    work.run({"triplet": reproduction(problem)})
    for spec in problem.fold_specs(TRIPLET, "reproduction", 0):
        weights_path(store.artifacts, spec).unlink()
    again, idle = scheduler(problem, store)
    again.run({"triplet": reproduction(problem)})
    assert idle.submitted == []


def test_an_untested_reproduction_without_weights_is_trained_again(problem, store):
    specs = problem.fold_specs(TRIPLET, "reproduction", 0)
    for spec in specs:
        store.put_fold(spec, some_result(spec, 0.25))
    kept = weights_path(store.artifacts, specs[0])
    write_tensors(kept, {"w": torch.ones(2)})
    work, executor = scheduler(problem, store)
    work.run({"triplet": reproduction(problem)})
    assert executor.trained() == [specs[1].fingerprint]
    assert len(store.runs()) == 1


def test_a_search_keeps_no_weights_and_a_reproduction_does(problem, store):
    work, executor = scheduler(problem, store)
    work.run({"triplet": reproduction(problem), "cosface": only(search_jobs(problem, COSFACE))})
    kept = {task.job.spec.method.name: task.weights for task in executor.submitted if isinstance(task, TrainTask)}
    assert kept["cosface"] is None
    assert kept["triplet"].exists()


def test_a_training_gets_only_the_images_of_its_fold_and_a_test_the_test_images(problem, store):
    work, executor = scheduler(problem, store)
    work.run({"triplet": reproduction(problem)})
    test_classes = set(problem.split.test)
    for task in executor.submitted:
        if isinstance(task, TrainTask):
            task.data.check(task.job.spec)
            assert not test_classes & {*task.data.train.labels.tolist(), *task.data.validation.labels.tolist()}
        else:
            assert set(task.data.images.labels.tolist()) == test_classes


def test_progress_reaches_the_observer(problem, store):
    work, _ = scheduler(problem, store)
    work.run({"triplet": only(search_jobs(problem))})
    assert Tick("f", 1) in work.observer.ticked


def test_a_protocol_without_jobs_finishes(problem, store):
    def nothing():
        return []
        yield

    work, executor = scheduler(problem, store)
    assert work.run({"triplet": nothing()}) == {"triplet": []}
    assert executor.submitted == []


def test_if_the_store_has_all_outcomes_all_methods_finish(problem, store):
    """Regression test: a protocol may finish with outcomes from the store before any task is submitted."""
    jobs = search_jobs(problem)
    for job in jobs:
        store.put_fold(job.spec, some_result(job.spec))
    work, _ = scheduler(problem, store)
    assert list(work.run({"triplet": only(jobs), "again": only(jobs)})) == ["triplet", "again"]


def test_a_run_is_listed_under_its_experiment_as_soon_as_it_is_tested(problem, store):
    listed = []

    class Reader(Observer):
        def job_done(self, method, job, outcome, *, from_store):
            if isinstance(job, EvaluateJob):
                listed.append(len(store.experiment_runs("experiment")))

    store.put_experiment("experiment", "name", some_summary())
    _, executor = scheduler(problem, store)
    work = {"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)}
    Scheduler(problem, store, executor, Reader(), "experiment").run(work)
    assert listed == [1, 2]
