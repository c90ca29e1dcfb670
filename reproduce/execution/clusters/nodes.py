"""What both kinds of clusters need: the environment of nodes, and checks that they share folders and code."""

import hashlib
import os
import sys
import sysconfig
import uuid
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from protocols.processes import THREAD_VARIABLES
from protocols.training.torch_state import torch_provenance
from protocols.trunks.weights import WEIGHTS_VARIABLE
from reproduce.errors import InputError
from reproduce.execution.devices import does_not_fit, is_full
from reproduce.execution.local import LocalProcesses
from reproduce.execution.tasks import Done, Task, carry_out, is_foreign
from reproduce.monitoring.observer import Tick
from results.records.provenance import mixed_versions
from results.records.records import Provenance

_CHECKOUT = Path(__file__).resolve().parents[3]


def check_kind_of_device(device: str, option: str) -> None:
    """Raise InputError if a cluster cannot be asked for this device."""
    if device not in ("auto", "cpu", "cuda"):
        cluster = "Ray" if option == "--ray" else "SLURM"
        raise InputError(f"device {device!r}: with {option} use cpu, cuda or auto; {cluster} chooses which GPU")


def environment_of_workers(threads: int) -> dict[str, str]:
    """Return the nodes' environment variables: threads per training, and where modules and weights are found."""
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = [str(_CHECKOUT), *(str(Path(entry).absolute()) for entry in sys.path)]
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


def outcome_of(
    task: Task, device: str, threads: int, report: Callable[[Tick], None], sharing: int = 1
) -> Done | Exception:
    """Carry out a task on a node; one with foreign code in a process of its own, since this one may get other tasks.

    An error is returned and not raised, since a cluster wraps errors into its own. `sharing` is the number of trainings
    on the GPU at the same time.
    """
    try:
        if is_foreign(task):
            return _apart(task, device, threads, report, sharing)
        return carry_out(task, device, report)
    except Exception as error:
        return does_not_fit(error) if sharing == 1 and is_full(error) else error


def _apart(task: Task, device: str, threads: int, report: Callable[[Tick], None], sharing: int) -> Done:
    with closing(LocalProcesses(device, 1, threads=threads, shares=sharing)) as executor:
        future = executor.submit(task)
        while not future.done():
            wait([future], timeout=0.5)
            for tick in executor.ticks():
                report(tick)
        return future.result()


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
    return f"cannot import this suite ({reason}); it must see {_CHECKOUT} and have the same packages installed"


def other_code(difference: str) -> str:
    """Describe a node with other code, as the end of a message that begins with the node's name."""
    return f"has other code ({difference}); its numbers could differ, so give it the same and run the command again"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if there is no message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


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
        for path in sorted((_CHECKOUT / folder).rglob("*.py")):
            digest.update(path.relative_to(_CHECKOUT).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return CodeVersion(digest.hexdigest(), torch_provenance(torch.device("cpu")))


def difference(here: CodeVersion, there: CodeVersion) -> str:
    """Describe what could make numbers differ, such as "torch 2.6.0 there, 2.5.1 here"; empty if nothing could."""
    packages = mixed_versions((here.origin, there.origin))
    phrases = [f"{name} {there.origin.versions[name]} there, {here.origin.versions[name]} here" for name in packages]
    if here.sources != there.sources:
        phrases.append("its files of the suite are not those of this run")
    return "; ".join(phrases)
