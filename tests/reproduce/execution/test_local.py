"""Local executors: this process and other processes give the same numbers, and a dead worker is replaced."""

import os
import signal
import time

import pytest
import torch

from protocols.jobs import TrainJob
from protocols.processes import threads_per_training
from reproduce.execution.local import InProcess, LocalProcesses, open_executor
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import TrainTask, write_tensors
from results.records.artifacts import weights_path
from results.store.store import Store
from tests.support.scheduling import Observer, carry_out_all, reproduction, without_time
from tests.support.small_problem import COSFACE, TRIPLET, small_problem


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return small_problem(tmp_path_factory.mktemp("cache"))


pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


def test_other_processes_give_the_same_numbers_bit_for_bit(problem, tmp_path):
    here = carry_out_all(InProcess("cpu"), problem, tmp_path / "here")
    there = carry_out_all(LocalProcesses("cpu", 2), problem, tmp_path / "there")
    assert without_time(here[0]) == without_time(there[0])
    assert without_time(here[1]) == without_time(there[1])
    for mine, theirs in zip(here[2], there[2], strict=True):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert [fold.provenance.threads for fold in here[0] + there[0]] == [threads_per_training()] * 12
    assert here[0][0].best_map_at_r > 0


def test_progress_is_reported_at_the_beginning_and_at_every_validation(problem, tmp_path):
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    executor = InProcess("cpu")
    executor.submit(TrainTask(TrainJob(spec), problem.training_data(spec), None)).result()
    assert [(tick.fingerprint, tick.iterations) for tick in executor.ticks()] == [
        (spec.fingerprint, 0),
        (spec.fingerprint, 0),
        (spec.fingerprint, 3),
        (spec.fingerprint, 6),
    ]
    assert executor.ticks() == []


def test_an_error_in_this_process_is_set_on_the_future(problem):
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    other = problem.fold_specs(TRIPLET, "search", 0)[1]
    future = InProcess("cpu").submit(TrainTask(TrainJob(spec), problem.training_data(other), None))
    with pytest.raises(Exception, match="fold 0"):
        future.result()


def test_a_search_writes_no_weights(problem, tmp_path):
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    InProcess("cpu").submit(TrainTask(TrainJob(spec), problem.training_data(spec), None)).result()
    assert list(tmp_path.rglob("*")) == []


def test_weights_are_written_completely_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "ab" / "abc.pt"
    write_tensors(path, {"w": torch.ones(3)})
    assert torch.equal(torch.load(path, weights_only=True)["w"], torch.ones(3))

    def full_disk(self, data):
        with self.open("wb") as file:
            file.write(bytes(data)[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_tensors(path, {"w": torch.zeros(3)})
    assert [each.name for each in path.parent.iterdir()] == ["abc.pt"]
    assert torch.equal(torch.load(path, weights_only=True)["w"], torch.ones(3))


def test_the_path_of_weights_is_given_by_the_trainings_fingerprint(problem, tmp_path):
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    assert weights_path(tmp_path, spec) == tmp_path / spec.fingerprint[:2] / f"{spec.fingerprint}.pt"


def test_one_worker_trains_in_this_process():
    executor = open_executor("cpu", 1)
    assert isinstance(executor, InProcess)
    assert executor.capacity == 1


class KillsOneWorker(LocalProcesses):
    """Kills one worker when progress is first reported."""

    killed: int | None = None

    def ticks(self):
        ticks = super().ticks()
        if ticks and self.killed is None:
            self.killed = next(iter(self._pools[0]._processes))
            os.kill(self.killed, signal.SIGKILL)
        return ticks


def test_a_killed_worker_is_replaced_and_changes_no_number(tmp_path):
    # The trainings are so long that one is always running when the first progress is reported.
    training = small_problem(tmp_path).training.model_copy(update={"iterations_per_epoch": 30, "max_epochs": 3})
    problem = small_problem(tmp_path, training=training)
    stores, found = {}, {}
    for name, executor in (("calm", InProcess("cpu")), ("killed", KillsOneWorker("cpu", 2))):
        stores[name] = Store(f"sqlite:///{tmp_path}/{name}.sqlite", tmp_path / name)
        protocols = {"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)}
        try:
            found[name] = Scheduler(problem, stores[name], executor, Observer()).run(protocols)
        finally:
            executor.close()
    assert executor.killed is not None
    # Only the training of the killed process counts as failed.
    (reason,) = stores["killed"].failures()["reason"]
    assert reason.startswith("WorkerDiedError: the process of this task ended")
    assert len(stores["calm"].failures()) == 0
    for method in ("triplet", "cosface"):
        assert without_time(found["calm"][method]) == without_time(found["killed"][method])
    assert len(stores["killed"].folds()) == 4


def test_an_idle_process_that_died_is_replaced(problem):
    executor = LocalProcesses("cpu", 1)
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    task = TrainTask(TrainJob(spec), problem.training_data(spec), None)
    try:
        first = executor.submit(task).result(120)
        processes = list(executor._pools[0]._processes.values())
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].join(30)
        while not executor._pools[0]._broken:
            time.sleep(0.01)
        assert without_time([executor.submit(task).result(120).result]) == without_time([first.result])
    finally:
        executor.close()


def test_closing_ends_the_workers(problem):
    executor = LocalProcesses("cpu", 2)
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    executor.submit(TrainTask(TrainJob(spec), problem.training_data(spec), None)).result(120)
    processes = [process for pool in executor._pools for process in (pool._processes or {}).values()]
    executor.close()
    assert processes
    assert not any(process.is_alive() for process in processes)
