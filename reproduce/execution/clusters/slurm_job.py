"""A job of a SLURM cluster: what it asks for, and the batch of tasks that it carries out one after another.

Each outcome is a file of its own in a shared folder. A job that is pre-empted is requeued; it starts again, leaves out
the tasks whose outcomes are there, and restarts the task that was interrupted. A training is a pure function, so the
numbers stay the same.
"""

import pickle
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.clusters.nodes import (
    CodeVersion,
    code_version,
    difference,
    first_line,
    other_code,
    outcome_of,
    unseen_folder,
)
from reproduce.execution.devices import prepare_process
from reproduce.execution.executor import WorkerDiedError
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
        cpus: Cores per job; None for as many as a training has threads.
        mem: Memory per job in GB; None for the cluster's default.
        batch: Trainings per job, one after another.
    """

    time: int
    partition: str | None = None
    gpus: int = 0
    cpus: int | None = None
    mem: int | None = None
    batch: int = 1


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
    """

    tasks: Mapping[int, Task]
    folder: Path
    marks: tuple[Path, ...]
    version: CodeVersion
    device: str
    threads: int
    minutes: int

    def __call__(self) -> None:
        """Carry out the tasks that have no outcome yet, and write each outcome as soon as it is known."""
        from submitit.core.utils import UncompletedJobError

        prepare_process(self.device, self.threads)
        unusable = self._unusable()
        for number, task in self.tasks.items():
            if outcome_path(self.folder, number).exists():
                continue
            outcome = unusable or self._carry_out(number, task)
            # submitit raises this error inside the training when the job is at its time limit for the last time.
            ended = isinstance(outcome, UncompletedJobError)
            if ended:
                outcome = InputError(
                    f"--slurm time={self.minutes}: a training needs more than {self.minutes} minutes; use a longer time"
                )
            write_whole(outcome_path(self.folder, number), _pickled(outcome))
            if ended:
                return

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

    def _carry_out(self, number: int, task: Task) -> Done | Exception:
        def report(tick: Tick) -> None:
            with progress_path(self.folder, number).open("a") as file:
                file.write(f"{tick.fingerprint} {tick.iterations}\n")

        return outcome_of(task, self.device, self.threads, report)


def outcome_path(folder: Path, number: int) -> Path:
    """Return the file with the outcome of a task."""
    return folder / f"{number}.outcome"


def progress_path(folder: Path, number: int) -> Path:
    """Return the file with the progress of a task: fingerprint and iterations, a line per report."""
    return folder / f"{number}.progress"


def _pickled(outcome: Done | Exception) -> bytes:
    """Pickle an outcome. An error that cannot be unpickled is replaced by its name and message."""
    try:
        content = pickle.dumps(outcome)
        pickle.loads(content)
    except Exception:
        if not isinstance(outcome, Exception):
            raise
        return pickle.dumps(WorkerDiedError(f"{type(outcome).__name__}: {first_line(outcome)}"))
    return content
