"""A raced search through the scheduler: the same with any number of workers, and after a kill at any moment."""

from collections import Counter
from concurrent.futures import Future

import pytest
import torch

from protocols.protocol_registry import PROTOCOLS
from protocols.search.open_method import OpenMethod
from protocols.search.space import SearchParameter
from protocols.search.study import Budget, Study
from reproduce.execution.failed_jobs import ATTEMPTS
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import EvaluateTask, Trained
from results.spec.search_settings import SamplerSettings
from results.store.store import Store
from tests.support.sample_records import some_result, some_run
from tests.support.scheduling import Observer
from tests.support.small_problem import TRIPLET, small_problem

MARGIN = SearchParameter(target="loss.margin", scale="linear", low=0.0, high=1.0)
TRIALS, RUNS, FOLDS = 7, 2, 4
ONLY_START = SamplerSettings(startup_trials=50)


class Killed(BaseException):
    """The process dies."""


class OneByOne:
    """Finishes the oldest task at each `wait`, and may die after some of them."""

    device = "cpu"

    def __init__(self, workers, lives=10_000):
        self.workers, self.capacity, self.lives = workers, 2 * workers, lives
        self.open, self.most_at_once, self.idle = [], 0, 0

    def submit(self, task):
        future = Future()
        self.open.append((future, task))
        self.most_at_once = max(self.most_at_once, len(self.open))
        return future

    def ticks(self):
        return []

    def wait(self, futures, timeout, return_when):
        self.idle += max(0, self.workers - len(self.open))
        if self.lives == 0:
            raise Killed
        self.lives -= 1
        future, task = self.open.pop(0)
        future.set_result(outcome_of(task))
        return {future}, None


class FailsAhead(OneByOne):
    """As `OneByOne`, but the last fold fails at once whenever it is trained for an idle worker."""

    def __init__(self, workers, lives=500):
        super().__init__(workers, lives)
        self.failures = Counter()

    def wait(self, futures, timeout, return_when):
        for place, (future, task) in enumerate(self.open):
            job = getattr(task, "job", None)
            if self.lives > 0 and getattr(job, "if_idle", False) and job.spec.fold == FOLDS - 1:
                del self.open[place]
                self.failures[job.fingerprint] += 1
                future.set_exception(RuntimeError("no power"))
                self.lives -= 1
                return {future}, None
        return super().wait(futures, timeout, return_when)


def outcome_of(task):
    """A hill over the margin with its top at 0.6; the folds are differently hard."""
    if isinstance(task, EvaluateTask):
        return some_run("triplet", task.job.run, fingerprint=task.job.fingerprint)
    if task.weights is not None:
        task.weights.parent.mkdir(parents=True, exist_ok=True)
        torch.save({}, task.weights)
    spec = task.job.spec
    score = 0.5 - 0.4 * abs(spec.method.loss.arguments["margin"] - 0.6) + 0.02 * spec.fold
    return Trained(some_result(spec, score), None)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Returns a function that runs the raced study: workers, and after how many finished tasks the process dies."""
    problem, worlds = small_problem(tmp_path, folds=FOLDS), {}

    def run(name, workers, lives=10_000, kind=OneByOne, searches=1):
        if name not in worlds:
            store = Store(f"sqlite:///{tmp_path}/{name}.db", tmp_path / name)
            worlds[name] = store
        store = worlds[name]
        method, budget = OpenMethod(method=TRIPLET, space=(MARGIN,)), Budget(TRIALS, RUNS, searches)
        study = Study(problem, method, budget, ONLY_START, store.searches, racing=True)
        executor, observer = kind(workers, lives), Observer()
        monkeypatch.setattr("reproduce.execution.scheduler.wait", executor.wait)
        Scheduler(problem, store, executor, observer).run({"triplet": PROTOCOLS["mlrc"].run(study)})
        return study, executor, observer, store

    return run


def told(study):
    return study.trials()


def test_one_worker_trains_nothing_that_is_not_needed(world):
    study, executor, observer, store = world("once", 1)
    spared = study.spared()
    assert spared > 0
    assert len(observer.not_needed) == spared
    assert len(store.folds()) == FOLDS * (TRIALS + RUNS) - spared == PROTOCOLS["mlrc"].trainings_of(study) - spared
    assert executor.idle == 0


def test_more_workers_give_the_same_and_are_not_idle_while_folds_are_left(world):
    alone, *_ = world("once", 1)
    for workers in (2, 4):
        study, executor, _, store = world(f"with_{workers}", workers)
        assert told(study) == told(alone)
        assert study.found_hyperparameters() == alone.found_hyperparameters()
        trained = len(store.folds())
        assert FOLDS * (TRIALS + RUNS) - study.spared() <= trained <= FOLDS * (TRIALS + RUNS)
        # The first wait of a trial finds every worker busy, as without racing.
        assert executor.most_at_once >= workers


def test_a_training_for_an_idle_worker_that_fails_is_tried_as_often_as_others(world):
    study, executor, _, store = world("failing", 4, 500, FailsAhead)
    assert max(executor.failures.values()) == ATTEMPTS
    assert len(store.failures()) == sum(executor.failures.values())
    whole, *_ = world("whole", 4)
    assert told(study) == told(whole)


@pytest.mark.parametrize("workers", [1, 3])
def test_killed_after_every_training_the_result_is_the_same(world, workers):
    whole, *_ = world("once", workers)
    for _ in range(100):
        try:
            pieces, *_ = world("pieces", workers, lives=1)
            break
        except Killed:
            continue
    assert told(pieces) == told(whole)
    assert pieces.found_hyperparameters() == whole.found_hyperparameters()


def test_a_raced_trial_is_never_the_best_even_if_it_was_told_the_highest_value(world):
    study, *_ = world("once", 1)
    best = study.found_hyperparameters()
    raced = next(trial for trial in study.trials() if trial.state == "raced")
    study.log.put_trial(study.name, raced.model_copy(update={"score": 0.99}))
    assert study.found_hyperparameters() == best


def test_a_resumed_run_counts_what_was_trained_and_what_was_spared(world):
    study, _, before, store = world("once", 1)
    spared = study.spared()
    again, executor, after, _ = world("once", 1)
    assert executor.most_at_once == 0
    assert len(after.not_needed) == len(before.not_needed) == spared
    assert (
        len(PROTOCOLS["mlrc"].foreseeable(again))
        == PROTOCOLS["mlrc"].trainings_of(again) - spared
        == len(store.folds())
    )


def test_repeated_searches_are_races_of_their_own(world):
    once, *_ = world("once", 1)
    for workers in (1, 3):
        study, _, observer, store = world(f"twice_{workers}", workers, searches=2)
        first, second = study.searches()
        assert told(first) == told(once)
        assert {trial.state for trial in told(second)} == {"complete", "raced"}
        assert not {trial.setting["loss.margin"] for trial in told(first)} & {
            trial.setting["loss.margin"] for trial in told(second)
        }
        assert study.spared() > once.spared()
        assert len(observer.not_needed) == len(set(observer.not_needed)) <= study.spared()
        assert len(PROTOCOLS["mlrc"].foreseeable(study)) == 2 * FOLDS * (TRIALS + RUNS) - study.spared()
        assert set(store.folds()["fingerprint"]) >= {spec.fingerprint for spec in PROTOCOLS["mlrc"].foreseeable(study)}
