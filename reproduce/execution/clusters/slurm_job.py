"""A job of a SLURM cluster: what it asks for, and the batch of tasks that it carries out.

On a CPU the tasks follow one another. On a GPU they run side by side, in a pool of processes inside the job. Each
outcome is a file of its own in a shared folder. A job that is pre-empted is requeued; it starts again, leaves out the
tasks whose outcomes are there, and restarts those that were interrupted. A training is a pure function, so the numbers
stay the same.
"""

import pickle
import socket
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.clusters.nodes import (
    CodeVersion,
    code_version,
    difference,
    other_code,
    outcome_of,
    unseen_folder,
)
from reproduce.execution.devices import prepare_process
from reproduce.execution.executor import sendable
from reproduce.execution.local import LocalProcesses
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick
from results.whole_files import write_whole

SHORTEST_MINUTES = 15
"""submitit takes a pre-emption in the last ten minutes for the time limit, so limits near that are refused."""

_EXAMPLE = "--slurm partition=gpu,time=240,gpus=1,mem=16"


@dataclass(frozen=True)
class SlurmSettings:
    """What each job asks for.

    Attributes:
        time: Limit in minutes.
        partition: Name of the partition; None for the cluster's default.
        gpus: GPUs per job, 0 or 1.
        cpus: Cores per job; None for as many as its trainings have threads.
        mem: Memory per job in GB; None for the cluster's default.
        batch: Trainings per job: one after another, or with a GPU side by side.
    """

    time: int
    partition: str | None = None
    gpus: int = 0
    cpus: int | None = None
    mem: int | None = None
    batch: int = 1

    def side_by_side(self, threads: int) -> int:
        """Return how many trainings of this number of threads a job with a GPU runs at the same time."""
        return self.batch if self.cpus is None else max(1, min(self.batch, self.cpus // threads))


_LEAST = {"time": SHORTEST_MINUTES, "gpus": 0, "cpus": 1, "mem": 1, "batch": 1}


def read_slurm_settings(text: str) -> SlurmSettings:
    """Read the value of `--slurm`, `key=value` pairs separated by commas; raise InputError if one is wrong."""
    known = [field.name for field in fields(SlurmSettings)]
    values: dict[str, str] = {}
    for pair in text.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value or key not in known:
            raise InputError(f"--slurm: {pair.strip()!r} is not one of {'=, '.join(known)}=; for example {_EXAMPLE}")
        if key in values:
            raise InputError(f"--slurm: {key} is given twice")
        values[key] = value
    if "time" not in values:
        raise InputError(f"--slurm: time= is missing, the limit of a job in minutes; for example {_EXAMPLE}")
    numbers = {key: _number(key, values[key]) for key in _LEAST if key in values}
    if numbers.get("gpus", 0) > 1:
        raise InputError(f"--slurm: gpus={values['gpus']}: a training uses one GPU; use gpus=0 or gpus=1")
    return SlurmSettings(partition=values.get("partition"), **numbers)


def _number(key: str, value: str) -> int:
    # A longer number is no sensible request, and int() refuses very long ones.
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 8 else -1
    if number < _LEAST[key]:
        raise InputError(f"--slurm: {key}={value}: use a whole number, at least {_LEAST[key]}")
    return number


@dataclass(frozen=True)
class SlurmBatch:
    """Tasks of one job. submitit calls it on a node.

    Attributes:
        tasks: The tasks by their numbers in the run.
        folder: Shared folder for outcomes and progress.
        marks: Files that the node must see.
        version: The code that the node must have.
        device: cpu or cuda.
        threads: Threads per training.
        minutes: Time limit of the job.
        side_by_side: How many tasks run at the same time.
    """

    tasks: Mapping[int, Task]
    folder: Path
    marks: tuple[Path, ...]
    version: CodeVersion
    device: str
    threads: int
    minutes: int
    side_by_side: int = 1

    def __call__(self) -> None:
        """Carry out the tasks that have no outcome yet, and write each outcome as soon as it is known."""
        left, unusable = self._left(), self._unusable()
        if unusable is not None:
            for number in left:
                self._write(number, unusable)
        elif self.side_by_side == 1:
            self._one_by_one(left)
        elif left:
            self._together(left)

    def _left(self) -> dict[int, Task]:
        return {number: task for number, task in self.tasks.items() if not outcome_path(self.folder, number).exists()}

    def _one_by_one(self, tasks: Mapping[int, Task]) -> None:
        from submitit.core.utils import UncompletedJobError

        prepare_process(self.device, self.threads)
        for number, task in tasks.items():
            outcome = outcome_of(task, self.device, self.threads, partial(self._report, number))
            # submitit raises this error inside the training when the job is at its time limit for the last time.
            if isinstance(outcome, UncompletedJobError):
                self._write(number, self._too_short())
                return
            self._write(number, outcome)

    def _together(self, tasks: Mapping[int, Task]) -> None:
        from submitit.core.utils import UncompletedJobError

        numbers = {task.job.fingerprint: number for number, task in tasks.items()}
        workers = min(self.side_by_side, len(tasks))
        with closing(LocalProcesses(self.device, workers, threads=self.threads)) as executor:
            try:
                futures = {executor.submit(task): number for number, task in tasks.items()}
                while futures:
                    done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
                    for tick in executor.ticks():
                        self._report(numbers[tick.fingerprint], tick)
                    for future in done:
                        error = future.exception()
                        self._write(futures.pop(future), future.result() if error is None else error)
            except UncompletedJobError:  # From submitit's handler, which runs in this thread.
                for number in self._left():
                    self._write(number, self._too_short())

    def _too_short(self) -> InputError:
        return InputError(
            f"--slurm time={self.minutes}: a training needs more than {self.minutes} minutes; use a longer time"
        )

    def checkpoint(self) -> Any:
        """Return what submitit requeues: the same batch, since outcomes are kept in files."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def _unusable(self) -> InputError | None:
        node = f"--slurm: node {socket.gethostname()}"
        for path in self.marks:
            if not path.exists():
                return InputError(f"{node} {unseen_folder(path)}")
        if other := difference(self.version, code_version()):
            return InputError(f"{node} {other_code(other)}")
        return None

    def _report(self, number: int, tick: Tick) -> None:
        with progress_path(self.folder, number).open("a") as file:
            file.write(f"{tick.fingerprint} {tick.iterations}\n")

    def _write(self, number: int, outcome: Done | BaseException) -> None:
        content = pickle.dumps(sendable(outcome) if isinstance(outcome, Exception) else outcome)
        write_whole(outcome_path(self.folder, number), content)


def outcome_path(folder: Path, number: int) -> Path:
    """Return the file with the outcome of a task."""
    return folder / f"{number}.outcome"


def progress_path(folder: Path, number: int) -> Path:
    """Return the file with the progress of a task: fingerprint and iterations, a line per report."""
    return folder / f"{number}.progress"
