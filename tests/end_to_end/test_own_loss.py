"""A loss and a metric from users' files, from `new method` to the page and the exported model."""

from pathlib import Path

import pytest

from tests.support.command_line import reproduce
from tests.support.tiny_run import write_own_loss


@pytest.mark.long
def test_a_run_with_two_processes_and_the_second_run(tmp_path: Path) -> None:
    write_own_loss(tmp_path)
    first = reproduce(tmp_path, "run", "files/experiment.yaml", "--workers", "2").done()
    assert "Users own" in first.out
    second = reproduce(tmp_path, "run", "files/experiment.yaml", "--workers", "2", page=True)
    assert "0 trainings made" in second.out
    page = (tmp_path / "runs" / "reports" / "experiment" / "index.html").read_text()
    assert "users_own.py:UsersOwn (sha256 " in page
    assert "users_metrics.py:spread (sha256 " in page
    loss = tmp_path / "files" / "users_own.py"
    loss.write_text(loss.read_text() + "\n# changed\n")
    again = reproduce(tmp_path, "run", "files/experiment.yaml", "--workers", "1")
    assert "6 trainings made" in again.out, again.err
    assert "users_own.py:UsersOwn changed since its 6 trainings of " in again.out
    assert reproduce(tmp_path, "status").out.count("users_own.py:UsersOwn (sha256 ") == 2
    for file in ("users_own.py", "users_own.yaml"):
        (tmp_path / "files" / file).unlink()
    reproduce(tmp_path, "export", "model", "experiment", "--method", "users_own", "--to", "model").done()
