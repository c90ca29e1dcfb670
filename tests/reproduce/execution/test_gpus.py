"""Trainings on several GPUs, and several on one: where they run, what each may take, and what happens if one is full.

There is no GPU here: torch's functions and the processes are replaced.
"""

from concurrent.futures import Future
from contextlib import nullcontext

import pytest
import torch

from protocols.images.batch_source import has_room
from protocols.jobs import TrainJob, trainings
from protocols.processes import GPU_THREADS
from protocols.training.torch_state import device_name
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution import devices, local
from reproduce.execution.devices import is_full, prepare_process, spread
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.local import InProcess, LocalProcesses
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import Trained, TrainTask
from results.store.store import Store
from tests.support.sample_records import some_result
from tests.support.scheduling import Observer
from tests.support.small_problem import COSFACE, TRIPLET, small_problem

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nAnd more")


@pytest.fixture
def two_gpus(monkeypatch):
    """Two GPUs with 40 GB each; the list has the calls that touch one."""
    calls = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(("current", str(device))))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: calls.append(("room", str(device))) or (40, 80))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A GPU")
    yield calls
    devices.share_gpu(1)


class FakePool:
    """A process that carries out a task when the test says so."""

    started: list["FakePool"]

    def __init__(self, _workers, *, mp_context, initializer, initargs):
        self.device, self.tasks, self.ended = initargs[2], [], False
        self._processes = None
        self._executor_manager_thread = None

    def submit(self, _function, task, sharing):
        FakePool.started.append(self)
        self.sharing, self.task = sharing, task
        self.future = Future()
        return self.future

    def finish(self, error=None):
        FakePool.started.remove(self)
        if error is None:
            self.future.set_result(Trained(some_result(self.task.job.spec, 0.25), None))
        else:
            self.future.set_exception(error)

    def shutdown(self, wait, cancel_futures=False):
        self.ended = True


@pytest.fixture
def running(monkeypatch, two_gpus):
    """The fake processes that have a task."""
    FakePool.started = []
    monkeypatch.setattr(local, "ProcessPoolExecutor", FakePool)
    monkeypatch.setattr(local, "multi_process_service", lambda: nullcontext(False))
    return FakePool.started


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return small_problem(tmp_path_factory.mktemp("cache"))


def tasks(problem, count):
    specs = [spec for trial in range(count) for spec in problem.fold_specs(TRIPLET, "search", trial)]
    return [TrainTask(TrainJob(spec), problem.training_data(spec), None) for spec in specs[:count]]


def test_workers_are_spread_over_the_visible_gpus(running, problem):
    executor = LocalProcesses("cuda", 5)
    futures = [executor.submit(task) for task in tasks(problem, 5)]
    assert [pool.device for pool in running] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"]
    # Each is told how many there are on its GPU, the last included.
    assert [pool.sharing for pool in running] == [3, 2, 3, 2, 3]
    for pool in list(running):
        pool.finish()
    assert all(isinstance(future.result(), Trained) for future in futures)
    executor.close()


def test_one_gpu_by_name_and_cpus_are_not_spread(running):
    assert spread("cuda") == ["cuda:0", "cuda:1"]
    assert spread("cuda:1") == ["cuda:1"]
    assert spread("cpu") == ["cpu"]


def test_a_process_sets_its_gpu_before_it_uses_it(two_gpus, monkeypatch, problem):
    done = []
    monkeypatch.setattr(local, "carry_out", lambda task, device, report: done.append(list(two_gpus)))
    monkeypatch.setitem(local._worker, "queue", type("Queue", (), {"put": None}))
    for name, value in {"device": "cuda:1", "threads": None}.items():
        monkeypatch.setitem(local._worker, name, value)
    local._carry_out_in_worker(tasks(problem, 1)[0], 4)
    assert done == [[("current", "cuda:1")]]
    assert torch.get_num_threads() == GPU_THREADS
    # A quarter of the 40 free bytes, for four trainings.
    assert has_room(torch.device("cuda:1"), 2, 100)
    assert not has_room(torch.device("cuda:1"), 3, 100)
    prepare_process("cuda", sharing=1)
    assert has_room(torch.device("cuda"), 10, 100)
    assert not has_room(torch.device("cuda"), 10, 9)


def test_the_number_of_a_gpu_is_in_no_record(two_gpus):
    assert device_name(torch.device("cuda:1")) == device_name(torch.device("cuda")) == "A GPU"


def test_a_full_gpu_gets_fewer_trainings_and_they_begin_again(running, problem, caplog):
    executor = LocalProcesses("cuda:0", 4)
    futures = [executor.submit(task) for task in tasks(problem, 5)]
    first, second, third, fourth = list(running)
    # Three of them find it full at the same time, which costs one place.
    for pool in (first, second, third):
        pool.finish(FULL)
    executor.ticks()
    assert executor.workers == 3
    assert [pool.ended for pool in (first, second, third, fourth)] == [True, True, True, False]
    assert [pool.sharing for pool in running] == [4, 3, 3]
    assert "cuda:0 is too small for 4 trainings at the same time; from now on 3" in caplog.text
    assert not any(future.done() for future in futures)
    while running:
        running[0].finish()
        executor.ticks()
    assert [future.result().result.fingerprint for future in futures] == [
        task.job.spec.fingerprint for task in tasks(problem, 5)
    ]
    executor.close()


def test_only_a_training_that_is_alone_on_its_gpu_fails(running, problem):
    executor = LocalProcesses("cuda", 4)
    futures = [executor.submit(task) for task in tasks(problem, 2)]
    tried = 0
    while running:
        running[0].finish(FULL)
        executor.ticks()
        tried += 1
    assert executor.workers == 2, "one is left for each GPU"
    for future in futures:
        with pytest.raises(InputError, match=r"alone on the GPU, it needs more memory than is free \(CUDA out of") as e:
            future.result()
        assert "\n" not in str(e.value)
    assert 3 <= tried <= 6
    executor.close()


def test_an_executor_that_shares_its_gpu_with_others_leaves_the_error_to_them(running, problem):
    executor = LocalProcesses("cuda:0", 1, shares=2)
    future = executor.submit(tasks(problem, 1)[0])
    assert running[0].sharing == 2
    running[0].finish(FULL)
    executor.ticks()
    assert future.exception() is FULL
    executor.close()


def test_a_process_whose_gpu_failed_gets_no_other_task(running, problem):
    executor = LocalProcesses("cuda:0", 1)
    first, second, third = [executor.submit(task) for task in tasks(problem, 3)]
    broken = running[0]
    broken.finish(torch.AcceleratorError("CUDA error: an illegal memory access was encountered"))
    executor.ticks()
    assert isinstance(first.exception(), torch.AcceleratorError)
    assert broken.ended
    sound = running[0]
    assert sound is not broken
    sound.finish()
    executor.ticks()
    assert running[0] is sound
    sound.finish()
    assert second.done()
    assert third.done()
    executor.close()


def test_in_this_process_a_training_is_alone(monkeypatch, problem):
    def full(*_, **__):
        raise FULL

    monkeypatch.setattr(local, "carry_out", full)
    future = InProcess("cpu").submit(tasks(problem, 1)[0])
    assert isinstance(future.exception(), InputError)


def test_a_full_gpu_is_no_failed_training(running, problem, tmp_path, monkeypatch):
    """A whole run: all begin again and end; nothing is stored as a failure. Then one that fits nowhere ends the run."""
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    crowded = []

    def wait(futures, timeout, return_when):
        # With more than two side by side, the last finds the GPU full.
        if len(running) > 2 or (crowded and crowded[0] == "alone"):
            running[-1].finish(FULL)
        elif running:
            running[0].finish()
        return {future for future in futures if future.done()}, None

    monkeypatch.setattr("reproduce.execution.scheduler.wait", wait)

    def search(method):
        return (yield from trainings([TrainJob(spec) for spec in problem.fold_specs(method, "search", 0)]))

    executor = LocalProcesses("cuda:0", 4)
    found = Scheduler(problem, store, executor, Observer()).run(
        {"triplet": search(TRIPLET), "cosface": search(COSFACE)}
    )
    assert sum(map(len, found.values())) == 4
    assert executor.workers == 2
    assert len(store.failures()) == 0
    crowded.append("alone")
    other = Store(f"sqlite:///{tmp_path}/other.sqlite", tmp_path / "artifacts")
    with pytest.raises(WorkFailedError, match=r"triplet, fold \d: alone on the GPU, it needs more memory"):
        Scheduler(problem, other, executor, Observer()).run({"triplet": search(TRIPLET)})
    assert len(other.failures()) == 0
    executor.close()


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (FULL, True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (torch.AcceleratorError("CUDA error: out of memory"), True),
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), False),
        (MemoryError(), False),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), False),
    ],
)
def test_what_says_that_a_gpu_is_full(error, full):
    assert is_full(error) is full


class PickyError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def test_an_error_that_cannot_be_sent_is_told_and_ends_no_process(monkeypatch, problem):
    def picky(*_, **__):
        raise PickyError("one", "two")

    monkeypatch.setattr(local, "carry_out", picky)
    monkeypatch.setitem(local._worker, "queue", type("Queue", (), {"put": None}))
    for name, value in {"device": "cpu", "threads": 1}.items():
        monkeypatch.setitem(local._worker, name, value)
    with pytest.raises(WorkerDiedError, match=r"^PickyError: one and two$"):
        local._carry_out_in_worker(tasks(problem, 1)[0], 1)
