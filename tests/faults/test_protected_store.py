"""A store that cannot be written: what only reads works, and the rest says one line."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.write_protection import protect, reproduce_without_privilege

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


def test_nothing_is_written_into_a_protected_folder(folder):
    before = content(folder)
    answers = reproduce_without_privilege(folder, *READING, *WRITING)
    reading = answers[: len(READING)]
    assert [(answer.code, answer.err) for answer in reading] == [(0, "")] * len(READING), reading
    assert all(answer.out for answer in reading)
    assert [(answer.code, answer.err.count("\n")) for answer in answers[len(READING) :]] == [(2, 1)] * len(WRITING)
    assert content(folder) == before
