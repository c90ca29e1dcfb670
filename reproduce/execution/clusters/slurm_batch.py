"""One member of a SLURM job array: a batch of tasks that a node carries out one after another.

Each outcome is a file of its own in a shared folder. A job that is pre-empted is requeued; it starts again, leaves out
the tasks whose outcomes are there, and restarts the task that was interrupted. A training is a pure function, so the
numbers stay the same.
"""

import pickle
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.devices import prepare_process
from reproduce.execution.executor import (
    CodeVersion,
    WorkerDiedError,
    code_version,
    difference,
    first_line,
    other_code,
    outcome_of,
    unseen_folder,
)
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick
from results.whole_files import write_whole


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
        """Return the reason why this node must not train, if there is one."""
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

        return outcome_of(task, self.device, report)


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
