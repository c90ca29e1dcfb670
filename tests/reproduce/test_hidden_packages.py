"""A user's file that hides a package of the suite is one line, not a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.__main__ import hidden_package

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_hides_the_suite_here() -> None:
    assert hidden_package() is None


@pytest.mark.parametrize("name", ["losses"])
def test_a_file_of_the_same_name_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", "methods"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path / name}.py hides the suite's package {name}; rename it")
    assert done.stderr.count("\n") == 1
