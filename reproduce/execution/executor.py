"""The interface of executors, which carry out tasks in this process, in local processes or on a cluster."""

import hashlib
import os
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from protocols.trunks.weights import WEIGHTS_VARIABLE
from reproduce.execution.devices import THREAD_VARIABLES
from reproduce.execution.tasks import Done, Task, carry_out
from reproduce.monitoring.observer import Tick
from results.records.provenance import mixed_versions, provenance
from results.records.records import Provenance


def environment_of_workers(threads: int) -> dict[str, str]:
    """Return the environment variables of the processes on the nodes.

    They set the number of threads, and the folders in which this process finds modules and weights.

    Args:
        threads: Threads per training.
    """
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = [str(Path(__file__).resolve().parents[2]), *(str(Path(entry).absolute()) for entry in sys.path)]
    source_folders = [folder for folder in dict.fromkeys(folders) if folder not in installed and Path(folder).is_dir()]
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
    # Trunks are loaded from torch.hub's folder, which may differ between the nodes' home folders.
    variables |= {
        "PYTHONPATH": os.pathsep.join(source_folders),
        "TORCH_HOME": str(Path(torch.hub.get_dir()).parent.absolute()),
    }
    if weights := os.environ.get(WEIGHTS_VARIABLE):
        variables[WEIGHTS_VARIABLE] = str(Path(weights).expanduser().absolute())
    return variables


def outcome_of(task: Task, device: str, report: Callable[[Tick], None]) -> Done | Exception:
    """Carry out a task on a node. An error is returned and not raised, since a cluster wraps errors into its own.

    Args:
        task: A training or a test evaluation.
        device: cpu, cuda or cuda:N.
        report: Called with the progress of a training.
    """
    try:
        return carry_out(task, device, report)
    except Exception as error:
        return error


def mark(folder: Path) -> Path:
    """Make an empty file with a unique name in `folder` and return its path.

    A node may have a folder of the same name on a local disk. For this reason nodes look for this file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f".seen-{uuid.uuid4().hex}"
    path.touch()
    return path


def unseen_folder(mark: str | Path) -> str:
    """Describe a node that does not see a mark, as the end of a message that begins with the node's name."""
    return (
        f"does not see {Path(mark).parent}; the cache, the artifacts and the checkout must lie on a file system that "
        "all nodes share (--cache, --artifacts)"
    )


def cannot_import(reason: str) -> str:
    """Describe a node that cannot import the suite, as the end of a message that begins with the node's name."""
    checkout = Path(__file__).resolve().parents[2]
    return f"cannot import this suite ({reason}); it must see {checkout} and have the same packages installed"


def other_code(difference: str) -> str:
    """Describe a node with other code, as the end of a message that begins with the node's name."""
    return f"has other code ({difference}); its numbers could differ, so give it the same and run the command again"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if there is no message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("losses", "results", "protocols", "reproduce/execution")
"""Folders with the code that runs on other machines."""


@dataclass(frozen=True)
class CodeVersion:
    """The code that a process runs.

    Attributes:
        sources: Hash of the suite's files that train and test.
        origin: Versions of the packages, and the commit.
    """

    sources: str
    origin: Provenance


def code_version() -> CodeVersion:
    """Return the version of the code in this process's checkout and environment."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return CodeVersion(digest.hexdigest(), provenance("cpu", 1))


def difference(here: CodeVersion, there: CodeVersion) -> str:
    """Describe what could make the numbers of two processes differ.

    Args:
        here: The code of the process that starts the run.
        there: The code of a process on another machine.

    Returns:
        A phrase such as "torch 2.6.0 there, 2.5.1 here"; empty if the code is the same.
    """
    packages = mixed_versions((here.origin, there.origin))
    phrases = [f"{name} {there.origin.versions[name]} there, {here.origin.versions[name]} here" for name in packages]
    if here.sources != there.sources:
        phrases.append("its files of the suite are not those of this run")
    return "; ".join(phrases)


class WorkerDiedError(Exception):
    """A process, a job or a node ended while it ran a task. The other tasks continue."""


class Executor(Protocol):
    """Carries out tasks and gives a future for each.

    Attributes:
        device: Device that the tasks run on: cpu, cuda or cuda:N.
        workers: How many tasks run at the same time.
        capacity: How many tasks should be submitted and unfinished at the same time, so that no worker is idle.
    """

    device: str
    workers: int
    capacity: int

    def submit(self, task: Task) -> "Future[Done]":
        """Start a task or queue it.

        Args:
            task: A training or a test evaluation.

        Returns:
            The future of the task's outcome.

        Raises:
            BrokenProcessPool: A worker has died; call `restart` before the next task is submitted.
        """

    def end(self, future: "Future[Done]", reason: str) -> None:
        """End a task that hangs. The other tasks continue.

        Its future then fails with WorkerDiedError, unless the task has finished in the meantime. A task that no worker
        has begun is left alone.

        Args:
            future: The task's future, from `submit`.
            reason: Message of the error.
        """

    def restart(self) -> None:
        """Make the executor usable again after a worker died. Unfinished tasks must be submitted again."""

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call.

        Some executors also start waiting tasks here. So call it at least whenever a task ends.
        """

    def close(self) -> None:
        """End all workers and the trainings that they run."""


def in_order(executor: Executor, futures: "Sequence[Future[Done]]") -> "Iterator[Future[Done]]":
    """Wait for tasks and yield their futures in the given order, each as soon as it and those before it are done.

    Args:
        executor: The executor that the tasks were submitted to.
        futures: The futures of all tasks that are not finished.
    """
    for future in futures:
        while not future.done():
            wait([other for other in futures if not other.done()], timeout=0.5, return_when=FIRST_COMPLETED)
            executor.ticks()
        yield future
