"""Job arrays on submitit's local executor give the numbers of local processes; dead and pre-empted jobs run again.

SLURM itself is replaced by commands of its names where the text of a submission is tested.
"""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from protocols.jobs import TrainJob
from protocols.processes import threads_per_training
from reproduce.errors import InputError
from reproduce.execution.clusters.slurm import SlurmArrays
from reproduce.execution.clusters.slurm_job import SlurmSettings
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.local import InProcess, LocalProcesses
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import TrainTask
from reproduce.storage import storage_paths
from results.store.store import Store
from tests.support.command_line import TINY, ask, in_background, reproduce
from tests.support.processes import HAS_PROC, descendants, parents, titled, wait_until
from tests.support.scheduling import Observer, carry_out_all, reproduction, without_time
from tests.support.small_problem import COSFACE, TRIPLET, small_problem

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("same_threads_afterwards")]


@pytest.fixture
def needs_submitit():
    pytest.importorskip("submitit", reason="submitit is not installed: pip install submitit")


with_submitit = pytest.mark.usefixtures("needs_submitit")
with_proc = pytest.mark.skipif(not HAS_PROC, reason="finds processes in /proc")

# `python -m reproduce` whose jobs run on this machine.
ON_THIS_MACHINE = """
from reproduce.cli import main
from reproduce.execution.clusters.slurm import SlurmArrays
if __name__ == "__main__":
    SlurmArrays.cluster = "local"
    main()
"""


class LocalJobs(SlurmArrays):
    cluster = "local"
    settle_seconds = 0.5


def paths(folder):
    return storage_paths(str(folder / "store.sqlite"), None, None, None)


def jobs(folder, workers=2, start=LocalJobs, **settings):
    return start(SlurmSettings(**{"time": 60, **settings}), "cpu", workers, paths(folder))


def endless_problem(folder):
    settings = small_problem(folder).training
    return small_problem(folder, training=settings.model_copy(update={"max_epochs": 10**5, "patience": 10**5}))


def job_processes() -> list[int]:
    return titled("submitit.core._submit")


@with_submitit
def test_jobs_give_the_numbers_of_local_processes_bit_for_bit(tmp_path, monkeypatch):
    problem, seen, ticks = small_problem(tmp_path / "cache"), [], SlurmArrays.ticks
    here = carry_out_all(LocalProcesses("cpu", 2), problem, tmp_path / "here")
    monkeypatch.setattr(SlurmArrays, "ticks", lambda self: seen.extend(ticks(self)))
    there = carry_out_all(jobs(tmp_path, batch=3), problem, tmp_path / "artifacts")
    assert without_time(here[0]) == without_time(there[0])
    assert without_time(here[1]) == without_time(there[1])
    for mine, theirs in zip(here[2], there[2], strict=True):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert [fold.provenance.threads for fold in there[0]] == [threads_per_training()] * 6
    assert {tick.iterations for tick in seen} == {0, 3, 6}
    assert list((tmp_path / "artifacts").glob(".seen-*")) == []
    assert list((tmp_path / "artifacts" / "slurm").iterdir()) == []


@with_submitit
def test_errors_arrive_unchanged(tmp_path):
    problem = small_problem(tmp_path / "cache")
    first, other = problem.fold_specs(TRIPLET, "search", 0)
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    executor = jobs(tmp_path, batch=2)
    try:
        wrong = executor.submit(TrainTask(TrainJob(first), problem.training_data(other), None))
        no_folder = executor.submit(TrainTask(TrainJob(first), problem.training_data(first), blocked / "w.pt"))
        with pytest.raises(Exception, match="fold 0") as told:
            wrong.result(120)
        with pytest.raises(Exception, match="fold 0") as expected:
            InProcess("cpu").submit(TrainTask(TrainJob(first), problem.training_data(other), None)).result()
        assert type(told.value) is type(expected.value)
        with pytest.raises(OSError, match="file") as broken:
            no_folder.result(120)
        assert broken.value.errno in (errno.ENOTDIR, errno.EEXIST)
    finally:
        executor.close()


class Disturbed(LocalJobs):
    """Disturbs one job when progress is first reported."""

    disturbed = False

    def ticks(self):
        ticks = super().ticks()
        running = [member for member in self._members if member.unfinished and member.read]
        if ticks and running and not self.disturbed:
            self.disturbed = True
            self.disturb(running[0].job)
        return ticks


class Killed(Disturbed):
    def disturb(self, job):
        for process in descendants(int(job.job_id)):
            os.kill(process, signal.SIGKILL)


class Preempted(Disturbed):
    """Sends the signal that a job gets when its place is needed. submitit then queues the job again."""

    def disturb(self, job):
        for process in descendants(int(job.job_id)):
            os.kill(process, signal.SIGUSR2)


@with_submitit
@with_proc
@pytest.mark.parametrize(("start", "failures"), [(Killed, 1), (Preempted, 0)])
@pytest.mark.long
def test_a_disturbed_job_runs_again_and_changes_no_number(tmp_path, start, failures):
    training = small_problem(tmp_path / "cache").training.model_copy(update={"iterations_per_epoch": 150})
    problem = small_problem(tmp_path / "cache", training=training)
    stores, runs = {}, {}
    executors = {"calm": lambda: InProcess("cpu"), "disturbed": lambda: jobs(tmp_path, start=start)}
    for name, opened in executors.items():
        stores[name] = Store(f"sqlite:///{tmp_path}/{name}.sqlite", tmp_path / name)
        executor = opened()
        try:
            runs[name] = Scheduler(problem, stores[name], executor, Observer()).run(
                {"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)}
            )
        finally:
            executor.close()
    assert executor.disturbed
    reasons = list(stores["disturbed"].failures()["reason"])
    assert [reason.startswith("WorkerDiedError: job ") for reason in reasons] == [True] * failures
    assert len(list((tmp_path / "artifacts" / "slurm").iterdir())) == failures, "logs of a dead job are kept"
    for method in ("triplet", "cosface"):
        assert without_time(runs["calm"][method]) == without_time(runs["disturbed"][method])
    assert len(stores["disturbed"].folds()) == 4


@with_submitit
@with_proc
def test_closing_cancels_running_and_waiting_jobs(tmp_path):
    problem = endless_problem(tmp_path / "cache")
    executor = jobs(tmp_path)
    try:
        tasks = [
            TrainTask(TrainJob(spec), problem.training_data(spec), None)
            for spec in problem.fold_specs(TRIPLET, "search", 0)
        ]
        futures = [executor.submit(task) for task in tasks]
        wait_until(executor.ticks)
        family = set(job_processes())
        futures.append(executor.submit(tasks[0]))
    finally:
        executor.close()
    assert len(family) == 2
    wait_until(lambda: not family & set(parents()), 20)
    assert all(isinstance(future.exception(10), WorkerDiedError) for future in futures)
    assert list((tmp_path / "artifacts" / "slurm").iterdir()) == []


def write_commands(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Put programs with SLURM's names in front of all others."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def two_trainings(folder):
    problem = small_problem(folder / "cache")
    specs = problem.fold_specs(TRIPLET, "search", 0)
    return [TrainTask(TrainJob(spec), problem.training_data(spec), None) for spec in specs]


@with_submitit
def test_a_submission_asks_slurm_for_what_the_option_says_and_is_cancelled(tmp_path, monkeypatch):
    write_commands(
        tmp_path / "bin",
        monkeypatch,
        srun="exit 1",
        sbatch='cp "$1" submission\necho Submitted batch job 17',
        sacct="echo 'JobID|State|NodeList'\necho '17_0|RUNNING|a'\necho '17_1|PENDING|'",
        scancel='echo "$1" >> cancelled',
    )
    executor = SlurmArrays(
        SlurmSettings(time=240, partition="fast", gpus=1, cpus=64, mem=16), "auto", 5, paths(tmp_path)
    )
    try:
        assert (executor.device, executor.workers, executor.capacity) == ("cuda", 5, 5)
        futures = [executor.submit(task) for task in two_trainings(tmp_path)]
        wait_until(lambda: len(executor._members) == 2)
    finally:
        executor.close()
    lines = (tmp_path / "bin" / "submission").read_text().splitlines()
    for option in ("partition=fast", "time=240", "gpus-per-node=1", "cpus-per-task=64", "mem=16GB", "array=0-1%2"):
        assert f"#SBATCH --{option}" in lines
    assert "#SBATCH --job-name=reproduce" in lines
    command = next(line for line in lines if line.startswith("srun "))
    assert f" env OMP_NUM_THREADS={threads_per_training('cuda')} " in command
    assert f" {sys.executable} -u -m submitit.core._submit " in command
    assert sorted((tmp_path / "bin" / "cancelled").read_text().split()) == ["17_0", "17_1"]
    assert all(isinstance(future.exception(10), WorkerDiedError) for future in futures)


@with_submitit
def test_a_job_that_slurm_ended_names_its_state_and_its_log(tmp_path, monkeypatch):
    write_commands(
        tmp_path / "bin",
        monkeypatch,
        srun="exit 1",
        sbatch="echo Submitted batch job 18",
        sacct="echo 'JobID|State|NodeList'\necho '18_0|OUT_OF_MEMORY|a'\necho '18_1|OUT_OF_MEMORY|a'",
        scancel="exit 0",
    )
    monkeypatch.setattr(SlurmArrays, "settle_seconds", 0.5)
    executor = SlurmArrays(SlurmSettings(time=60), "auto", None, paths(tmp_path))
    try:
        futures = [executor.submit(task) for task in two_trainings(tmp_path)]
        reason = str(futures[1].exception(60))
    finally:
        executor.close()
    assert reason.startswith("job 18_1 ended without a result (OUT_OF_MEMORY); log: ")
    assert reason.endswith("18_1_0_log.err")


@with_submitit
def test_a_refused_submission_fails_its_trainings_with_slurms_words(tmp_path, monkeypatch):
    refusal = "sbatch: error: invalid partition specified: nowhere"
    write_commands(tmp_path / "bin", monkeypatch, srun="exit 1", sbatch=f"echo '{refusal}' >&2\nexit 1")
    executor = jobs(tmp_path, start=SlurmArrays, partition="nowhere")
    try:
        futures = [executor.submit(task) for task in two_trainings(tmp_path)]
        for future in futures:
            assert isinstance(future.exception(60), WorkerDiedError)
            assert refusal in str(future.exception())
            assert "\n" not in str(future.exception())
    finally:
        executor.close()


@with_submitit
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="--slurm: jobs cannot be submitted from this machine") as error:
        jobs(tmp_path, start=SlurmArrays)
    assert "\n" not in str(error.value)
    for device, message in (("cuda:1", "SLURM chooses which GPU"), ("cuda", "the jobs ask for no GPU; add gpus=1")):
        with pytest.raises(InputError, match=message):
            LocalJobs(SlurmSettings(time=60), device, 1, paths(tmp_path))
    monkeypatch.setattr("reproduce.execution.clusters.slurm.threads_per_training", lambda device: 4)
    with pytest.raises(InputError, match=r"cpus=2: a training has 4 threads.*use at least cpus=4"):
        jobs(tmp_path, cpus=2)
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--slurm", "time=60"), "--slurm: submitit is not installed ("),
        (("--slurm", "partition=gpu"), "--slurm: time= is missing"),
        (("--slurm", "time=60", "--ray", "local"), "--ray and --slurm: choose one of them"),
    ],
)
def test_the_command_line_refuses_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "submitit", None)
    (tmp_path / "tiny.yaml").write_text(TINY)
    answer = ask("run", "tiny.yaml", *arguments, capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 2
    assert answer.err.startswith(f"error: {message}")
    assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def run_on_this_machine(folder, *arguments):
    (folder / "on_this_machine.py").write_text(ON_THIS_MACHINE)
    program = [sys.executable, "on_this_machine.py"]
    return in_background(folder, [*program, "run", "tiny.yaml", "--slurm", "time=60", *arguments])


@with_submitit
def test_the_command_line_makes_the_same_table_with_and_without_slurm(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    plain = reproduce(tmp_path, "run", "tiny.yaml", "--workers", "1", "--store", "plain/store.sqlite")
    assert plain.code == 0, plain.err
    running = run_on_this_machine(tmp_path, "--workers", "2", "--store", "slurm/store.sqlite")
    shown, told = running.communicate(timeout=300)
    assert running.returncode == 0, told
    assert "2 training(s) at a time" in shown
    tables = [(tmp_path / store / "tables" / "tiny.csv").read_text() for store in ("plain", "slurm")]
    assert tables[0] == tables[1]


@with_submitit
@with_proc
def test_stopping_the_command_cancels_its_jobs(tmp_path):
    text = TINY.replace("max_epochs: 2", "max_epochs: 100000").replace("patience: 3", "patience: 100000")
    (tmp_path / "tiny.yaml").write_text(text)
    running = run_on_this_machine(tmp_path, "--workers", "2")
    try:
        wait_until(lambda: list((tmp_path / "runs" / "artifacts" / "slurm").glob("*/*.progress")), 120)
        family = descendants(running.pid)
        # On a cluster the jobs are not children of the command: only the command gets the signal.
        os.kill(running.pid, signal.SIGINT)
        _, told = running.communicate(timeout=60)
        assert running.returncode == 130
        assert told.endswith("stopped; everything finished is kept, run the same command to continue\n")
        wait_until(lambda: not family & set(parents()), 20)
        assert list((tmp_path / "runs" / "artifacts" / "slurm").iterdir()) == []
    finally:
        running.kill()
        running.communicate(timeout=60)
