"""What executors on clusters share: the environment of workers, checks of shared folders, and outcomes of tasks."""

import os
import sys
import sysconfig
import uuid
from collections.abc import Callable
from pathlib import Path

import torch

from protocols.trunks.weights import WEIGHTS_VARIABLE
from reproduce.execution.carry_out import carry_out
from reproduce.execution.devices import THREAD_VARIABLES
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick


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
