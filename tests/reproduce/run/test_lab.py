"""The lab looks up outcomes in the store, makes what is missing once, stores it at once, and lets all searches end."""

import errno
import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
import torch

from protocols.datasets.splits import SplitError
from protocols.images.packing import BrokenImageError
from protocols.jobs import EvaluateJob, TrainJob
from protocols.mlrc import mlrc
from protocols.protocol_registry import PROTOCOLS
from protocols.study import RunningSearch
from protocols.training.build_method import MethodError, RefusedError
from protocols.trunks.trunk_entry import TrunkError
from reproduce import interrupts
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.lab import ATTEMPTS, MethodSearch, SharedLab
from reproduce.run.tasks import EvaluateTask, Trained, TrainTask, WorkerDiedError, write_tensors
from results.records.artifacts import weights_path
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings
from results.store.store import Store
from tests.support.labs import Observer, reproduction, run_lab, trainings
from tests.support.sample_records import invented_run, some_plan, some_result
from tests.support.small_setup import COSFACE, TRIPLET, small_setup
from tests.support.studies import study_of


class InventingExecutor:
    """Gives invented results, in threads.

    Args:
        trouble: The error of the n-th task.
        meet: How many tasks must be under way before the first of them ends.
        act: Called with each task before it ends.
    """

    device = "cpu"

    def __init__(self, workers=2, trouble=None, meet=1, act=lambda task: None):
        self.workers, self.trouble, self.act = workers, dict(trouble or {}), act
        self.submitted = []
        self.under_way, self.most_at_once = 0, 0
        self._pool, self._lock, self._barrier = ThreadPoolExecutor(20), threading.Lock(), threading.Barrier(meet)

    def submit(self, task):
        self.submitted.append(task)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        return self._pool.submit(self._outcome, task, self.trouble.get(len(self.submitted)), len(self.submitted))

    def _outcome(self, task, error, number):
        try:
            if number <= self._barrier.parties:
                self._barrier.wait(20)
            self.act(task)
            if error is not None:
                raise error
            return outcome_of(task)
        finally:
            with self._lock:
                self.under_way -= 1

    def trained(self):
        return [task.job.spec.fingerprint for task in self.submitted if isinstance(task, TrainTask)]


def outcome_of(task):
    """A hill over the margin with its top at 0.6; the folds are differently hard."""
    if isinstance(task, EvaluateTask):
        assert all(path.exists() for path in task.weights)
        return invented_run(task.job)
    if task.weights is not None:
        write_tensors(task.weights, {"w": torch.ones(2)})
    margin = task.job.spec.method.loss.arguments.get("margin", 0.1)
    return Trained(some_result(task.job.spec, 0.5 - 0.4 * abs(margin - 0.6) + 0.02 * task.job.spec.fold), None)


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    return small_setup(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite", tmp_path / "artifacts")


def opened(store, experiment=None, **settings):
    executor = InventingExecutor(**settings)
    said: list[str] = []
    return SharedLab(store, executor, [Observer()], experiment, say=said.append), executor


def specs_of(setup, method=TRIPLET, trial=0):
    return setup.fold_specs(method, "search", trial)


def test_lower_numbers_come_first_and_each_round_of_searches_is_told(setup, store):
    lab, executor = opened(store, workers=1)
    searches = [
        MethodSearch(key, setup, partial(follow_trials, setup, method, number), number)
        for key, method in {"triplet": TRIPLET, "cosface": COSFACE}.items()
        for number in (1, 0, 2)
    ]
    told = []
    lab.run(searches, lambda rounds: told.append((rounds, len(executor.submitted))))
    seeds = [task.job.spec.seed for task in executor.submitted]
    of_search = {spec.seed: n for n in range(3) for m in (TRIPLET, COSFACE) for spec in trial_specs(setup, m, n)}
    assert [of_search[seed] for seed in seeds[1:]] == sorted(of_search[seed] for seed in seeds[1:])
    assert [rounds for rounds, _ in told] == [1, 2]
    assert told[0][1] >= 2 * len(trial_specs(setup, TRIPLET, 0))


def trial_specs(setup, method, number):
    return list(setup.fold_specs(method, "search", number))


def follow_trials(setup, method, number, lab):
    lab.train([TrainJob(spec) for spec in trial_specs(setup, method, number)])


def test_everything_is_made_once_and_stored(setup, store):
    work = {"triplet": reproduction(setup), "cosface": reproduction(setup, COSFACE)}
    lab, executor = opened(store)
    found = run_lab(lab, setup, work)
    assert len(executor.trained()) == len(set(executor.trained())) == 4
    assert {method: len(runs) for method, runs in found.items()} == {"triplet": 1, "cosface": 1}
    assert (len(store.table("folds")), store.count("runs")) == (4, 2)
    again, idle = opened(store)
    assert run_lab(again, setup, work) == found
    assert idle.submitted == []
    assert [from_store for *_, from_store in again.observers[0].seen] == [True] * 6


def test_searches_run_side_by_side_on_a_bounded_number_of_workers(setup, store):
    lab, executor = opened(store, workers=4, meet=4)
    work = {key: trainings(setup, method, 0, 1, 2) for key, method in (("triplet", TRIPLET), ("cosface", COSFACE))}
    searches = [MethodSearch(key, setup, follow) for key, follow in work.items()]
    assert lab.run([*searches, MethodSearch("triplet", setup, trainings(setup, TRIPLET, 5, 6))]) == {}
    assert executor.most_at_once == 4
    assert len(executor.trained()) == 2 * 8


def test_two_that_ask_for_one_training_share_it(setup, store):
    lab, executor = opened(store, meet=2)
    found = run_lab(lab, setup, {"one": trainings(setup), "two": trainings(setup)})
    assert sorted(executor.trained()) == sorted(spec.fingerprint for spec in specs_of(setup))
    assert found["one"] == found["two"]
    assert sorted(from_store for *_, from_store in lab.observers[0].seen) == [False, False, True, True]
    assert {method for method, *_ in lab.observers[0].seen} == {"one", "two"}


def test_a_failure_is_recorded_and_the_job_tried_again(setup, store):
    lab, executor = opened(store, workers=1, trouble={1: OSError(errno.EIO, "cable"), 2: WorkerDiedError("SIGKILL")})
    ((first, _),) = run_lab(lab, setup, {"triplet": trainings(setup)})["triplet"]
    assert first.status == "ok"
    assert len(executor.submitted) == 4
    failures = store.table("failures")
    assert set(failures["training"]) == {first.fingerprint}
    assert all(map(str.__contains__, failures["reason"], ("cable", "triplet, fold 0: WorkerDiedError: SIGKILL")))


def test_after_three_failures_a_method_has_no_results_and_the_others_go_on(setup, store):
    died = {number: WorkerDiedError(f"signal SIGKILL{' ' * 10**5}\nand a long story") for number in (1, 2, 3)}
    lab, _ = opened(store, workers=1, trouble=died)
    work = {"triplet": trainings(setup), "cosface": reproduction(setup, COSFACE)}
    found = run_lab(lab, setup, work)
    assert len(found["cosface"]) == 1
    failure = found["triplet"]
    assert isinstance(failure, WorkFailedError)
    assert str(failure).startswith(f"triplet, fold 0: failed {ATTEMPTS} times, last with WorkerDiedError: signal SIGK")
    assert "run the same command" in str(failure)
    assert "\n" not in str(failure)
    failures = store.table("failures")
    assert len(failures) == ATTEMPTS
    assert failures["reason"].str.len().max() <= 2000


@pytest.mark.parametrize(
    "error", [MethodError("no argument 'x'"), SplitError("class 3"), TrunkError("its weights are now others")]
)
def test_an_error_of_a_method_is_not_tried_again(setup, store, error):
    lab, executor = opened(store, workers=1, trouble={1: error})
    found = run_lab(lab, setup, {"triplet": trainings(setup), "cosface": trainings(setup, COSFACE)})
    assert str(found["triplet"]) == f"triplet, fold 0: {error}"
    assert len(found["cosface"][0]) == 2
    assert len(executor.submitted) == 1 + 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full; free some space"),
        (InputError("cuda:0 has too little memory"), "cuda:0 has too little memory"),
        (BrokenImageError("a.png: cannot be decoded"), "a.png: cannot be decoded"),
    ],
)
def test_an_error_that_all_methods_would_meet_ends_the_run_after_finished_work_is_stored(setup, store, error, said):
    lab, executor = opened(store, workers=3, meet=3, trouble={2: error})
    work = {"triplet": trainings(setup), "cosface": trainings(setup, COSFACE, 0, 1)}
    with pytest.raises(WorkFailedError, match=rf"^\w+, fold \d: {said}") as raised:
        run_lab(lab, setup, work)
    assert "\n" not in str(raised.value)
    assert len(store.table("folds")) >= 1
    assert len(store.table("failures")) == 0
    assert len(executor.submitted) <= 5


def test_a_fault_in_one_search_ends_all(setup, store):
    trials = []

    def goes_on(lab):
        for trial in range(1000):
            trainings(setup, TRIPLET, trial)(lab)
            trials.append(trial)

    def faulty(lab):
        trainings(setup, COSFACE)(lab)
        raise ArithmeticError("a fault")

    lab, _ = opened(store)
    with pytest.raises(ArithmeticError, match="a fault"):
        run_lab(lab, setup, {"triplet": goes_on, "cosface": faulty})
    assert max(trials, default=0) < 10


def test_a_protocol_is_asked_again_with_what_it_asked_for_and_observers_hear_of_each_outcome_once(setup, store):
    asked = []

    def follow(lab):
        asked.append("begun")
        (first,) = trainings(setup, TRIPLET, 0)(lab)
        asked.append([fold.fingerprint for fold in first])
        return trainings(setup, TRIPLET, 1)(lab)[0]

    lab, _ = opened(store)
    (observer,) = lab.observers
    found = run_lab(lab, setup, {"triplet": follow})["triplet"]
    first = asked[2]
    assert asked == ["begun", "begun", first, "begun", first]
    assert sorted(observer.seen) == sorted(
        ("triplet", name, False) for name in (*first, *(fold.fingerprint for fold in found))
    )
    assert len({name for _, name, _ in observer.seen}) == len(observer.seen) == 2 * setup.folds


def test_a_refused_job_is_tried_once_and_the_method_learns_of_it(setup, store):
    refusal = RefusedError("XBMLoss: a batch of 8 does not fit")
    lab, executor = opened(store, workers=1, trouble={1: refusal})
    seen = []

    def follow(lab):
        with pytest.raises(RefusedError) as raised:
            trainings(setup)(lab)
        seen.append(raised.value)
        return trainings(setup, TRIPLET, 1)(lab)

    found = run_lab(lab, setup, {"triplet": follow, "cosface": reproduction(setup, COSFACE)})
    assert seen
    assert all(one is refusal for one in seen)
    refused, *later = executor.trained()
    assert refused == specs_of(setup)[0].fingerprint
    assert specs_of(setup)[1].fingerprint not in later, "the other fold is not needed"
    assert (len(found["triplet"]), len(found["cosface"])) == (1, 1)
    (reason,) = store.table("failures")["reason"]
    assert reason == f"triplet, fold 0: {refusal}"
    again, _ = opened(store, workers=1, trouble={1: refusal})
    assert run_lab(again, setup, {"triplet": trainings(setup)})["triplet"] is refusal


@pytest.fixture
def handled_signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupts.install()
    interrupts.imports_done()
    yield
    interrupts.install()
    interrupts.imports_done()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_executor_that_takes_no_task_ends_the_run(setup, store):
    class Closed(InventingExecutor):
        def submit(self, task):
            if len(self.submitted) == 2:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(task)

    lab = SharedLab(store, Closed(), [Observer()])
    work = {"triplet": trainings(setup, TRIPLET, 0, 1), "cosface": trainings(setup, COSFACE)}
    with pytest.raises(RuntimeError, match="cannot schedule"):
        run_lab(lab, setup, work)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_request_ends_all_searches_after_what_is_finished_is_stored(setup, store, handled_signals, number):
    finished = []

    def act(task):
        finished.append(task.job.fingerprint)
        if len(finished) == 3:
            os.kill(os.getpid(), number)

    lab, executor = opened(store, act=act)
    with interrupts.deferred(), pytest.raises(interrupts.StopRequest):
        run_lab(lab, setup, {one.name: trainings(setup, one, *range(100)) for one in (TRIPLET, COSFACE)})
    assert set(finished[:2]) <= set(store.table("folds")["fingerprint"])
    assert len(executor.submitted) < 10


def test_weights_are_made_again_only_where_a_test_needs_them(setup, store):
    specs = setup.fold_specs(TRIPLET, "reproduction", 0)
    for spec in specs:
        store.put_fold(some_result(spec, 0.25))
    write_tensors(weights_path(store.artifacts, specs[0]), {"w": torch.ones(2)})
    lab, executor = opened(store)
    run_lab(lab, setup, {"triplet": reproduction(setup)})
    assert executor.trained() == [specs[1].fingerprint]
    for spec in specs:
        weights_path(store.artifacts, spec).unlink()
    again, idle = opened(store)
    run_lab(again, setup, {"triplet": reproduction(setup)})
    assert idle.submitted == [], "it is tested already"


def test_a_task_gets_only_the_images_that_it_may_see_and_a_search_keeps_no_weights(setup, store):
    lab, executor = opened(store)
    run_lab(lab, setup, {"triplet": reproduction(setup), "cosface": trainings(setup, COSFACE)})
    test_classes = set(setup.split.test)
    for task in executor.submitted:
        if isinstance(task, TrainTask):
            task.data.check(task.job.spec)
            assert not test_classes & {*task.data.train.labels.tolist(), *task.data.validation.labels.tolist()}
            assert (task.weights is None) == (task.job.spec.method.name == "cosface")
        else:
            assert set(task.data.images.labels.tolist()) == test_classes


def test_a_run_is_listed_under_its_experiment_as_soon_as_it_is_tested(setup, store):
    listed = []

    class Reader(Observer):
        def job_done(self, method, job, outcome, *, from_store):
            if isinstance(job, EvaluateJob):
                listed.append(len(store.experiment_runs("experiment")))

    store.put_experiment("experiment", "name", some_plan())
    lab = SharedLab(store, InventingExecutor(workers=1), [Reader()], "experiment")
    run_lab(lab, setup, {"triplet": reproduction(setup), "cosface": reproduction(setup, COSFACE)})
    assert listed == [1, 2]


# Whole searches: the same with any number of workers, and after a death at any moment.

MARGIN = {"loss.margin": Range(scale="linear", low=0.0, high=1.0)}


class Killed(BaseException):
    """The process dies."""


class DyingExecutor:
    """Finishes each task at once. After some of them the process dies."""

    device, workers = "cpu", 3

    def __init__(self, lives):
        self.lives = lives

    def submit(self, task):
        if self.lives == 0:
            raise Killed
        self.lives -= 1
        future = Future()
        future.set_result(outcome_of(task))
        return future


def follow_searches(setup, store, executor, *, racing=False):
    """Run two searches of two methods; return the studies."""
    cosface = COSFACE.model_copy(update={"loss": COSFACE.loss.model_copy(update={"arguments": {"margin": 0.1}})})
    studies = [
        study_of(
            setup,
            method,
            MARGIN,
            store.searches,
            reproductions=1,
            trials=5,
            searches=2,
            sampler=SamplerSettings(startup_trials=3),
            racing=racing,
        )
        for method in (TRIPLET, cosface)
    ]
    searches = [search for study in studies for search in study.searches]
    lab = SharedLab(store, executor, [Observer()])
    lab.run(MethodSearch(each.method.name, each.setup, partial(mlrc, RunningSearch(each))) for each in searches)
    return studies


def trials_of(studies):
    return [search.trials() for study in studies for search in study.searches]


@pytest.mark.parametrize("racing", [False, True])
def test_searches_find_the_same_with_any_number_of_workers_and_after_any_death(tmp_path, racing):
    setup = small_setup(tmp_path / "cache", folds=4)
    stores = {name: Store(tmp_path / f"{name}.sqlite", tmp_path / name) for name in ("one", "four", "killed")}
    one = follow_searches(setup, stores["one"], InventingExecutor(workers=1), racing=racing)
    four = follow_searches(setup, stores["four"], InventingExecutor(workers=4), racing=racing)
    deaths = 0
    for lives in range(3, 100, 9):
        try:
            killed = follow_searches(setup, stores["killed"], DyingExecutor(lives), racing=racing)
            break
        except Killed:
            deaths += 1
    assert deaths > 3
    assert trials_of(killed) == trials_of(four) == trials_of(one)
    assert len({str(trial.setting) for trials in trials_of(one) for trial in trials}) == 2 * 5, "matched by search"
    made = sorted(name for study in one for name in PROTOCOLS["mlrc"].foreseeable(study))
    for store in stores.values():
        assert sorted(store.table("folds")["fingerprint"]) == made, "no training is started on suspicion"
    states = {trial.state for trials in trials_of(one) for trial in trials}
    assert states == ({"complete", "raced"} if racing else {"complete"})
    for study in one:
        assert PROTOCOLS["mlrc"].trainings_of(study) - study.skipped() == len(PROTOCOLS["mlrc"].foreseeable(study))
        assert study.skipped() > 0 or not racing


def test_a_raced_trial_is_never_the_best_whatever_its_expected_score(tmp_path, store):
    setup = small_setup(tmp_path / "cache", folds=4)
    search = follow_searches(setup, store, InventingExecutor(workers=4), racing=True)[0].searches[0]
    best = search.found_hyperparameters()
    raced = next(trial for trial in search.trials() if trial.state == "raced")
    store.searches.put_trial(search.name, raced.model_copy(update={"score": 0.99}))
    assert search.found_hyperparameters() == best
