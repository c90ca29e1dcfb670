"""Every executor ends a task that hangs, and leaves the other tasks alone."""

import os
import shutil
from pathlib import Path

import pytest

from protocols.jobs import TrainJob
from reproduce.execution.clusters.ray import RayCluster
from reproduce.execution.clusters.slurm import SlurmArrays, SlurmSettings
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.local import LocalProcesses
from reproduce.execution.tasks import TrainTask
from reproduce.storage import storage_paths
from tests.support.processes import wait_until
from tests.support.scheduling import without_time
from tests.support.small_problem import TRIPLET, small_problem

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


class LocalJobs(SlurmArrays):
    cluster = "local"
    settle_seconds = 0.5


def open_local(folder):
    return LocalProcesses("cpu", 2)


def open_ray(folder):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[client]'")
    return RayCluster("local", "cpu", 2, (folder / "cache", folder / "artifacts"))


def open_slurm(folder):
    pytest.importorskip("submitit", reason="submitit is not installed: pip install submitit")
    return LocalJobs(SlurmSettings(time=60), "cpu", 2, storage_paths(str(folder / "store.sqlite"), None, None, None))


EXECUTORS = [
    open_local,
    pytest.param(open_ray, marks=pytest.mark.cluster),
    pytest.param(open_slurm, marks=pytest.mark.cluster),
]


def task_of(problem, fold):
    spec = problem.fold_specs(TRIPLET, "search", 0)[fold]
    return TrainTask(TrainJob(spec), problem.training_data(spec), None)


def progress_beyond(executor, fingerprint, iterations=0):
    """Whether a training reports more iterations now."""
    return any(tick.fingerprint == fingerprint and tick.iterations > iterations for tick in executor.ticks())


@pytest.mark.parametrize("start", EXECUTORS)
def test_the_task_that_hangs_is_ended_and_the_others_go_on(tmp_path: Path, start):
    short = small_problem(tmp_path / "cache")
    forever = short.training.model_copy(update={"max_epochs": 10**6, "patience": 10**6})
    endless = small_problem(tmp_path / "cache", training=forever)
    tasks = [task_of(endless, 0), task_of(endless, 1)]
    executor = start(tmp_path)
    try:
        hanging, other = (executor.submit(task) for task in tasks)
        wait_until(lambda: progress_beyond(executor, tasks[0].job.fingerprint))
        executor.end(hanging, "it hung")
        error = hanging.exception(60)
        assert isinstance(error, WorkerDiedError)
        assert str(error).endswith("it hung")
        executor.end(hanging, "it hung again")
        # Its worker is free again, or there is a new one.
        after = executor.submit(task_of(short, 0))
        wait_until(lambda: executor.ticks() and after.done(), 120)
        assert without_time([after.result().result]) == without_time([in_another_process(short)])
        wait_until(lambda: progress_beyond(executor, tasks[1].job.fingerprint))
        assert not other.done()
    finally:
        executor.close()


def in_another_process(problem):
    executor = LocalProcesses("cpu", 1)
    try:
        return executor.submit(task_of(problem, 0)).result(120).result
    finally:
        executor.close()


def test_a_task_that_waits_for_a_process_is_left_alone(tmp_path: Path):
    problem = small_problem(tmp_path / "cache")
    executor = LocalProcesses("cpu", 1)
    try:
        futures = [executor.submit(task_of(problem, fold)) for fold in (0, 1)]
        executor.end(futures[1], "it hung")
        wait_until(lambda: not executor.ticks() and futures[1].done(), 120)
        executor.end(futures[1], "it hung")
        assert [future.exception() for future in futures] == [None, None]
    finally:
        executor.close()


@pytest.mark.cluster
def test_a_job_that_was_pre_empted_and_waits_is_kept(tmp_path: Path, monkeypatch):
    pytest.importorskip("submitit", reason="submitit is not installed: pip install submitit")
    scripts = {
        "srun": "exit 1",
        "sbatch": "echo Submitted batch job 19",
        "sacct": "echo 'JobID|State|NodeList'\necho '19_0|PENDING|'\necho '19_1|RUNNING|a'",
        "scancel": f'echo "$1" >> {tmp_path}/cancelled',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("sacct") == str(tmp_path / "sacct")
    problem = small_problem(tmp_path / "cache")
    executor = SlurmArrays(SlurmSettings(time=60), "auto", 2, storage_paths(str(tmp_path / "store"), None, None, None))
    try:
        futures = [executor.submit(task_of(problem, fold)) for fold in (0, 1)]
        wait_until(lambda: len(executor._members) == 2)
        for future in futures:
            executor.end(future, "it hung")
        assert str(futures[1].exception(60)) == "job 19_1: it hung"
        assert not futures[0].done()
        assert (tmp_path / "cancelled").read_text().split() == ["19_1"]
    finally:
        executor.close()
