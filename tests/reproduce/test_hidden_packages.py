"""Where the suite cannot start, the command says so in one line: behind a file that hides a package, on Windows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.__main__ import hidden_package, main

ROOT = Path(__file__).resolve().parents[2]


def test_windows_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err.count("\n")) == (2, 1)


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
