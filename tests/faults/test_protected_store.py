"""A store that cannot be written: what only reads works, and the rest says one line."""

import ctypes
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command_line import environment, reproduce_all

_DROP_FROM_BOUNDING_SET, _MAY_WRITE_EVERYWHERE = 24, 1
"""Numbers of prctl(2) and capabilities(7) on Linux."""


def protect(folder: Path) -> None:
    """Take away the permission to write from a folder and all that is in it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _obey_permissions() -> None:
    """Let a process be that of a user who may not write where the permissions say so."""
    if sys.platform == "linux" and os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, _MAY_WRITE_EVERYWHERE, 0, 0, 0)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="root loses its privilege only on Linux")

READING = [("status",), ("table", "tiny"), ("store", "check")]
WRITING = [("report", "tiny"), ("run", "tiny.yaml", "--data", "images", "--workers", "1")]


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run that cannot be written."""
    shutil.copytree(tiny_run / "runs", tmp_path / "runs")
    (tmp_path / "images").symlink_to(tiny_run / "images")
    shutil.copyfile(tiny_run / "tiny.yaml", tmp_path / "tiny.yaml")
    protect(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.late
def test_nothing_is_written_into_a_protected_folder(folder):
    before = content(folder)
    environ = {**environment(), "PYTHONDONTWRITEBYTECODE": "1"}
    answers = reproduce_all(folder, *READING, *WRITING, env=environ, preexec_fn=_obey_permissions)
    reading = answers[: len(READING)]
    assert [(answer.code, answer.err) for answer in reading] == [(0, "")] * len(READING), reading
    assert all(answer.out for answer in reading)
    assert [(answer.code, answer.err.count("\n")) for answer in answers[len(READING) :]] == [(2, 1)] * len(WRITING)
    assert content(folder) == before
