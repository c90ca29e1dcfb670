"""The command starts beside a file with the name of a package, and on Windows it says that it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
BRIEF = ("--trials", "1", "--searches", "1", "--reproductions", "1", "--folds", "1", "--set", "training.max_epochs=1")


def test_windows_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err.count("\n")) == (2, 1)


def test_a_file_with_the_name_of_a_package_hides_none(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text("raise SystemExit")
    command = [sys.executable, "-m", "reproduce", "run", "quickstart", "--methods", "contrastive", *BRIEF]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
