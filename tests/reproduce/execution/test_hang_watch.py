"""A training that reports nothing for too long is ended and tried again. Only the last test trains and waits."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from protocols.jobs import EvaluateJob, TrainJob, trainings
from protocols.users_files.sources import hashed_name
from reproduce.errors import WorkFailedError
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.failed_jobs import LEAST_SECONDS, HangWatch
from reproduce.execution.local import InProcess, LocalProcesses, open_executor
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import Trained
from reproduce.execution.track import MethodTrack
from reproduce.forecast.plan_trainings import lengths
from reproduce.forecast.rates import EVALUATION_SPEED
from reproduce.monitoring.observer import Tick
from results.spec.training_spec import Component, MethodSpec
from results.store.store import Store
from tests.support.sample_records import some_result
from tests.support.scheduling import Observer, reproduction, without_time
from tests.support.small_problem import COSFACE, TRIPLET, small_problem


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return small_problem(tmp_path_factory.mktemp("cache"))


class Watched:
    """A watch with a clock that does not run by itself, and the tasks that it looks at."""

    def __init__(self, problem, factor=20.0):
        self.problem, self.now, self.running = problem, 0.0, {}
        self.watch = HangWatch(factor, lambda: self.now)

    def start(self, method=TRIPLET, fold=0):
        spec = self.problem.fold_specs(method, "search", 0)[fold]
        future = Future()
        self.running[future] = (MethodTrack(method.name, self.problem, iter(()), ()), TrainJob(spec))
        return future

    def after(self, seconds, *reports):
        """Let time pass, with a look every second, and report progress at its end: pairs of future and iterations."""
        hanging = {}
        for second in range(1, seconds + 1):
            self.now += 1
            last = second == seconds
            ticks = [Tick(self.running[future][1].fingerprint, done) for future, done in reports] if last else []
            hanging |= self.watch.look(self.running, ticks)
        return hanging

    def images(self, epochs):
        """Images that a training has worked through after some epochs; those of validations count a third."""
        spec = self.problem.fold_specs(TRIPLET, "search", 0)[0]
        validation_images = sum(last - first + 1 for first, last in spec.validation_classes) * 4
        return epochs * 3 * 8 + (epochs + 1) * validation_images / EVALUATION_SPEED


@pytest.fixture
def watched(problem):
    return Watched(problem)


def test_the_longest_training_has_all_epochs(problem, watched):
    (_, longest) = lengths(problem, problem.fold_specs(TRIPLET, "search", 0)[:1])
    assert longest.iterations == 6
    assert longest.work == pytest.approx(watched.images(2))


def test_nothing_hangs_until_a_training_has_shown_its_rate(watched):
    first, second = watched.start(), watched.start(fold=1)
    watched.after(1, (first, 0), (second, 0))
    assert watched.after(100_000) == {}
    assert watched.after(1, (second, 0)) == {}
    assert watched.after(100_000) == {}


def test_a_training_hangs_after_the_multiple_of_its_forecast(watched):
    training = watched.start()
    watched.after(1, (training, 0))
    watched.after(99, (training, 3))
    # Its beginning was noticed at the second 1, so it began after the second 0.
    forecast = 100 * watched.images(2) / watched.images(1)
    assert watched.after(int(20 * forecast)) == {}
    (reason,) = watched.after(1).values()
    assert reason.startswith("the training hung: nothing reported for ")
    assert "more than 20 times the forecast of the longest training, " in reason
    assert reason.endswith("(--training-timeout)")
    # A worker that cannot be ended is not asked for again at once.
    assert watched.after(int(20 * forecast)) == {}
    assert list(watched.after(1)) == [training]


def test_every_report_starts_the_time_anew(watched):
    training = watched.start()
    watched.after(1, (training, 0))
    watched.after(99, (training, 3))
    assert watched.after(3000, (training, 3)) == {}
    assert watched.after(3000) == {}


def test_a_training_that_hangs_before_its_first_validation_is_noticed_by_the_rate_of_the_others(watched):
    first, other = watched.start(), watched.start(COSFACE)
    watched.after(1, (first, 0), (other, 0))
    watched.after(99, (first, 3))
    del watched.running[first]
    assert list(watched.after(4000)) == [other]


def test_the_slowest_rate_of_the_method_counts(watched):
    quick, slow, other = watched.start(), watched.start(fold=1), watched.start(COSFACE)
    watched.after(1, (quick, 0), (slow, 0), (other, 0))
    watched.after(9, (quick, 3), (other, 3))
    del watched.running[quick]
    assert watched.after(200, (slow, 3)) == {}
    # By the rate of the quick training, the slow one would hang too.
    assert list(watched.after(5_000)) == [other]


def test_no_training_is_ended_within_a_minute(problem):
    watched = Watched(problem, factor=2)
    training = watched.start()
    watched.after(1, (training, 0))
    watched.after(1, (training, 3))
    assert watched.after(int(LEAST_SECONDS)) == {}
    assert list(watched.after(1)) == [training]


def test_tasks_that_wait_and_tests_are_left_alone(problem, watched):
    training, waiting, test = watched.start(), watched.start(fold=1), Future()
    specs = problem.fold_specs(TRIPLET, "reproduction", 0)
    track, _ = watched.running[training]
    watched.running[test] = (track, EvaluateJob(specs, "mlrc", {}, 0, 5, 1.0))
    watched.after(1, (training, 0))
    watched.after(1, (training, 3))
    assert waiting in watched.running
    assert list(watched.after(100)) == [training]


def test_a_new_attempt_does_not_hang_by_the_silence_of_the_first(watched):
    first = watched.start()
    watched.after(1, (first, 0))
    watched.after(1, (first, 3))
    assert list(watched.after(100)) == [first]
    del watched.running[first]
    second = watched.start()
    assert watched.after(1000) == {}
    watched.after(1, (second, 0))
    assert watched.after(int(LEAST_SECONDS)) == {}


def test_the_time_while_the_run_itself_stood_still_does_not_count(watched):
    training = watched.start()
    watched.after(1, (training, 0))
    watched.after(1, (training, 3))
    watched.now += 100_000
    assert watched.after(1) == {}
    assert watched.after(40) == {}
    assert list(watched.after(40)) == [training]


class Hangs:
    """Trains in no time; the first trainings of the second fold hang after their first validation.

    Attributes:
        seconds: The time, which goes on by a second at every look.
        ended: Reasons of the trainings that were ended.
    """

    device, workers, capacity = "cpu", 1, 1

    def __init__(self, hanging):
        self.left_to_hang, self.seconds, self.ended = hanging, 0.0, []

    def submit(self, task):
        self.task, self.future, self.reports = task, Future(), [0, 3, 6]
        return self.future

    def ticks(self):
        self.seconds += 1
        assert self.seconds < 10_000, "the training was not ended"
        if not self.reports:
            return []
        done, name = self.reports.pop(0), self.task.job.fingerprint
        if done == 3 and self.task.job.spec.fold == 1 and self.left_to_hang:
            self.left_to_hang -= 1
            self.reports = []
        elif not self.reports:
            self.future.set_result(Trained(some_result(self.task.job.spec, 0.25), None))
        return [Tick(name, done)]

    def end(self, future, reason):
        self.ended.append(reason)
        future.set_exception(WorkerDiedError(reason))


def run_with(executor, problem, store, monkeypatch, watch):
    monkeypatch.setattr(
        "reproduce.execution.scheduler.wait",
        lambda futures, timeout, return_when: ({future for future in futures if future.done()}, None),
    )
    said = []
    jobs = [TrainJob(spec) for spec in problem.fold_specs(TRIPLET, "search", 0)]
    scheduler = Scheduler(problem, store, executor, Observer(), say=said.append, hang_watch=watch)
    return scheduler.run({"triplet": trainings(jobs)})["triplet"], said


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")


def test_the_scheduler_ends_a_hanging_training_and_tries_it_again(problem, store, monkeypatch):
    executor = Hangs(2)
    results, said = run_with(executor, problem, store, monkeypatch, HangWatch(20, lambda: executor.seconds))
    assert [result.fingerprint for result in results] == [
        spec.fingerprint for spec in problem.fold_specs(TRIPLET, "search", 0)
    ]
    failures = store.failures()
    assert list(failures["fold_fingerprint"]) == [results[1].fingerprint] * 2
    assert [f"WorkerDiedError: {reason}" for reason in executor.ended] == list(failures["reason"])
    assert [f"triplet, fold 1: {reason}; it is ended" for reason in executor.ended] == said


def test_a_training_that_hangs_every_time_ends_the_run_with_one_line(problem, store, monkeypatch):
    executor = Hangs(100)
    with pytest.raises(WorkFailedError) as error:
        run_with(executor, problem, store, monkeypatch, HangWatch(20, lambda: executor.seconds))
    assert "triplet, fold 1: failed 3 times, last with WorkerDiedError: the training hung" in str(error.value)
    assert "\n" not in str(error.value)


def test_without_a_watch_nothing_is_ended(problem, store, monkeypatch):
    executor = Hangs(1)
    with pytest.raises(AssertionError, match="was not ended"):
        run_with(executor, problem, store, monkeypatch, None)
    assert executor.ended == []


LOSS = """
import time
from pathlib import Path

from pytorch_metric_learning.losses import TripletMarginLoss

HAS_HUNG = Path({marker!r})


class HangsOnce(TripletMarginLoss):
    steps = 0

    def forward(self, *inputs):
        self.steps += 1
        if self.steps == 5 and not HAS_HUNG.exists():
            HAS_HUNG.touch()
            time.sleep(10**6)
        return super().forward(*inputs)
"""


@pytest.mark.long
@pytest.mark.usefixtures("same_threads_afterwards")
def test_a_training_that_really_hangs_changes_no_number(problem, tmp_path: Path, monkeypatch):
    # An honest training that a busy machine stops for longer would only be tried again.
    monkeypatch.setattr("reproduce.execution.failed_jobs.LEAST_SECONDS", 10.0)
    has_hung = tmp_path / "has_hung"
    (tmp_path / "hangs.py").write_text(LOSS.format(marker=str(has_hung)))
    loss = Component(name=hashed_name(f"{tmp_path}/hangs.py:HangsOnce"), arguments={"margin": 0.1})
    method = MethodSpec(name="hangs", loss=loss)
    stores, runs = {}, {}
    for name, watch in (("calm", None), ("hung", HangWatch(2))):
        stores[name] = Store(f"sqlite:///{tmp_path}/{name}.sqlite", tmp_path / name)
        executor = open_executor("cpu", 1, processes_only=watch is not None)
        assert isinstance(executor, InProcess if watch is None else LocalProcesses)
        has_hung.unlink(missing_ok=True) if watch else has_hung.touch()
        try:
            scheduler = Scheduler(problem, stores[name], executor, Observer(), hang_watch=watch)
            runs[name] = scheduler.run({"hangs": reproduction(problem, method)})["hangs"]
        finally:
            executor.close()
    assert has_hung.exists()
    assert len(stores["calm"].failures()) == 0
    assert "WorkerDiedError: the training hung: nothing reported" in stores["hung"].failures()["reason"][0]
    assert without_time(runs["calm"]) == without_time(runs["hung"])
    assert len(stores["hung"].folds()) == 2
