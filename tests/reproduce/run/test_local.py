"""Local executors: this process and others give the same numbers, and a dead worker costs its own task only."""

import multiprocessing
import os
import signal
import threading
from contextlib import closing, nullcontext

import pytest
import torch

from protocols.images.samples import has_room
from protocols.jobs import TrainJob
from protocols.machine.processes import GPU_THREADS, EndedProcessError, threads_per_training
from protocols.machine.torch_state import device_name
from protocols.training.check_method import with_versions
from reproduce.errors import InputError
from reproduce.run import devices, local
from reproduce.run.devices import is_full, prepare_process, spread
from reproduce.run.local import LocalProcesses
from reproduce.run.tasks import Trained, TrainTask, WorkerDiedError
from results.spec.component import Component
from results.spec.method import Method
from tests.support.labs import InProcess, assert_same_numbers, reasons_of_deaths, without_time
from tests.support.processes import wait_until
from tests.support.sample_records import some_result
from tests.support.small_setup import TRIPLET, small_setup

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    return small_setup(tmp_path_factory.mktemp("cache"))


def task_of(setup, method=TRIPLET, trial=0):
    spec = setup.fold_specs(method, "search", trial)[0]
    return TrainTask(TrainJob(spec), setup.training_data(spec), None)


def test_other_processes_give_the_same_numbers_bit_for_bit(setup, tmp_path):
    folds = assert_same_numbers(InProcess(), LocalProcesses("cpu", 2), setup, tmp_path)
    assert [fold.provenance.threads for fold in folds] == [threads_per_training()] * 12
    assert folds[0].best_map_at_r > 0
    assert multiprocessing.active_children() == [], "closing ends the workers"


def test_an_error_is_set_on_the_future_and_the_worker_stays(setup):
    first, second = setup.fold_specs(TRIPLET, "search", 0)
    with closing(LocalProcesses("cpu", 1)) as executor:
        future = executor.submit(TrainTask(TrainJob(first), setup.training_data(second), None))
        with pytest.raises(Exception, match="fold 0") as raised:
            future.result(120)
        assert not isinstance(raised.value, WorkerDiedError)
        assert isinstance(executor.submit(task_of(setup)).result(120), Trained)


class KillsOneWorker(LocalProcesses):
    """Kills the worker of the first task."""

    killed: int | None = None

    def submit(self, task):
        future = super().submit(task)
        if self.killed is None:
            self.killed = wait_until(multiprocessing.active_children, 60)[0].pid
            os.kill(self.killed, signal.SIGKILL)
        return future


@pytest.mark.late
def test_a_killed_worker_is_replaced_and_changes_no_number(tmp_path):
    killing = KillsOneWorker("cpu", 2)
    # Only the training of the killed process counts as failed.
    (reason,) = reasons_of_deaths(killing, small_setup(tmp_path), tmp_path)
    assert reason.startswith("triplet, fold 0: WorkerDiedError: signal SIGKILL ended the process; ")
    assert killing.killed is not None


@pytest.mark.late
def test_an_idle_process_that_died_is_replaced(setup):
    with closing(LocalProcesses("cpu", 1)) as executor:
        first = executor.submit(task_of(setup)).result(120)
        (process,) = multiprocessing.active_children()
        process.kill()
        process.join(30)
        again = executor.submit(task_of(setup)).result(120)
        assert without_time([again.result]) == without_time([first.result])


def test_closing_ends_running_and_waiting_tasks(tmp_path):
    endless = small_setup(tmp_path).conditions.training.model_copy(update={"max_epochs": 100_000, "patience": 100_000})
    setup = small_setup(tmp_path, training=endless)
    executor = LocalProcesses("cpu", 1)
    running, waiting = (executor.submit(task_of(setup, trial=trial)) for trial in range(2))
    wait_until(multiprocessing.active_children, 60)
    executor.close()
    assert isinstance(running.exception(), WorkerDiedError)
    assert waiting.cancelled()
    assert multiprocessing.active_children() == []


# Code of users.

SPREADING = """\
import torch
from pytorch_metric_learning.losses import TripletMarginLoss
from torch import nn

TripletMarginLoss.compute_loss = lambda self, *arguments: self.zero_losses()
torch.nn.functional.normalize = lambda x, *arguments, **options: x.round()


class Mine(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(False)
        torch.set_grad_enabled(True)
        return embeddings.square().mean()
"""


def own(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    return with_versions(Method(name=folder.name, loss=Component(name=f"{folder / 'mine.py'}:Mine")))


def test_what_foreign_code_changes_reaches_no_other_training(setup, tmp_path):
    spreading, other = own(tmp_path / "one", SPREADING), own(tmp_path / "two", SPREADING.replace("square", "abs"))

    def trained(executor, *methods):
        with closing(executor):
            done = [executor.submit(task_of(setup, method)).result(120) for method in methods]
        return dict(zip([method.name for method in methods], without_time([each.result for each in done]), strict=True))

    one_way = trained(LocalProcesses("cpu", 1), TRIPLET, other, spreading)
    assert one_way == trained(LocalProcesses("cpu", 1), spreading, TRIPLET, other)
    assert trained(InProcess(), TRIPLET) == {"triplet": one_way["triplet"]}
    assert one_way["one"] != one_way["two"]


# GPUs. There is none here: torch's functions and the processes are replaced.

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


class PretendedWorker:
    """A process that gives an invented result, or the next of some errors."""

    errors: list[Exception]
    calls: list[tuple[str, int, int]]

    def __init__(self, threads):
        self.threads = threads

    def call(self, function, *arguments):
        if function is local._use:
            return None
        task, device, threads, sharing = arguments
        self.calls.append((device, threads, sharing))
        if self.errors:
            raise self.errors.pop()
        return Trained(some_result(task.job.spec, 0.25), None)

    def is_alive(self):
        return True

    def end(self):
        self.ended.append(self)

    def kill(self):
        pass


@pytest.fixture
def worker(monkeypatch, two_gpus):
    PretendedWorker.errors, PretendedWorker.calls, PretendedWorker.ended = [], [], []
    monkeypatch.setattr(local, "WorkerProcess", PretendedWorker)
    monkeypatch.setattr(local, "multi_process_service", lambda try_out: nullcontext(try_out() is None))
    return PretendedWorker


def test_trainings_are_spread_over_all_gpus(worker, setup):
    with closing(LocalProcesses("cuda", 5)) as executor:
        for trial in range(5):
            executor.submit(task_of(setup, trial=trial)).result(20)
    assert [device for device, *_ in worker.calls] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"]
    # Each knows how many there are on its GPU.
    assert [rest for _, *rest in worker.calls] == [[GPU_THREADS, sharing] for sharing in (3, 2, 3, 2, 3)]
    assert [spread(device) for device in ("cuda", "cuda:1", "cpu")] == [["cuda:0", "cuda:1"], ["cuda:1"], ["cpu"]]


def test_a_training_goes_to_the_gpu_with_the_fewest(worker, setup, monkeypatch):
    """While one training runs on a GPU, the next two run on the other one, in turn."""
    began, go_on, call = threading.Event(), threading.Event(), worker.call

    def first_one_waits(self, function, *arguments):
        result = call(self, function, *arguments)
        if function is not local._use and len(self.calls) == 1:
            began.set()
            assert go_on.wait(20)
        return result

    monkeypatch.setattr(worker, "call", first_one_waits)
    with closing(LocalProcesses("cuda", 4)) as executor:
        first = executor.submit(task_of(setup))
        assert began.wait(20)
        for trial in (1, 2):
            executor.submit(task_of(setup, trial=trial)).result(20)
        go_on.set()
        first.result(20)
    busy, *others = [device for device, *_ in worker.calls]
    assert busy not in others


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (2, r"cuda:0 has too little memory for 2 trainings \(CUDA out of memory.*; use fewer --workers"),
        (1, r"alone on cuda:0, it needs more memory than is free \(CUDA out of memory"),
    ],
)
def test_a_full_gpu_gives_one_line_with_the_remedy(worker, setup, workers, said):
    worker.errors = [FULL]
    with closing(LocalProcesses("cuda:0", workers)) as executor, pytest.raises(InputError, match=said) as raised:
        executor.submit(task_of(setup)).result(20)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "replaced"),
    [(torch.AcceleratorError("CUDA error: an illegal memory access"), True), (ValueError("of the task"), False)],
)
def test_a_process_whose_gpu_failed_gets_no_other_task(worker, setup, error, replaced):
    worker.errors = [error]
    executor = LocalProcesses("cuda:0", 1)
    with pytest.raises(type(error)):
        executor.submit(task_of(setup)).result(20)
    executor.submit(task_of(setup)).result(20)
    assert len(worker.ended) == replaced
    worker.errors = [EndedProcessError("exit code 7")]
    with pytest.raises(WorkerDiedError, match="exit code 7"):
        executor.submit(task_of(setup)).result(20)
    executor.close()


def test_a_process_sets_its_gpu_before_it_uses_it(two_gpus, monkeypatch, setup):
    done = []
    monkeypatch.setattr(local, "run_task", lambda task, device: done.append(list(two_gpus)))
    local._run_in_worker(task_of(setup), "cuda:1", 2, 4)
    assert done == [[("current", "cuda:1")]]
    assert torch.get_num_threads() == 2
    # Half of the 40 free bytes, for four trainings.
    assert has_room(torch.device("cuda:1"), 5, 100)
    assert not has_room(torch.device("cuda:1"), 6, 100)
    prepare_process("cuda", sharing=1)
    assert has_room(torch.device("cuda"), 10, 100)
    assert not has_room(torch.device("cuda"), 10, 9)


def test_the_number_of_a_gpu_is_in_no_record(two_gpus):
    assert device_name(torch.device("cuda:1")) == device_name(torch.device("cuda")) == "A GPU"


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
