"""The number of trainings before a run, and the question above an hour."""

import io
from pathlib import Path

import pytest
import typer
from rich.console import Console

from reproduce.commands.run import ask_before_run
from reproduce.run.session import Session, open_session
from reproduce.storage import open_store, storage_paths
from tests.support.experiment_files import load_experiment
from tests.support.image_folders import make_folder
from tests.support.sample_records import some_result


@pytest.fixture
def session(tmp_path: Path) -> Session:
    overrides = {
        "dataset.root": str(make_folder(tmp_path / "images", classes=16)),
        "methods": ["untrained", "contrastive"],
    }
    experiment = load_experiment("folder_tiny", overrides)
    where = storage_paths(str(tmp_path / "store.sqlite"))
    return open_session("folder_tiny", experiment, where, None)


def said(session: Session, *, terminal: bool = False, yes: bool = False) -> str:
    console = Console(file=io.StringIO(), width=300, force_terminal=terminal, no_color=True)
    ask_before_run(session, 2, yes=yes, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def measure(session: Session, seconds: float) -> None:
    """Put a training of a method into the store."""
    (method,) = (method.method for method in session.methods.values() if method.method.loss is not None)
    spec = session.setup.fold_specs(method, "calibration", 0)[0]
    open_store(session.paths).put_fold(spec, some_result(spec, wall_time=seconds))


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch, session: Session) -> list[str]:
    """A run that takes long, on a terminal where somebody says no."""
    asked: list[str] = []
    measure(session, 500.0)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question: asked.append(question) or False)
    return asked


def test_a_run_says_how_much_is_to_do_and_how_long_it_takes_if_that_is_measured(session: Session) -> None:
    assert said(session, terminal=True) == "at most 204 trainings to do; how long they take is not known yet\n"
    measure(session, 6.0)
    text = said(session)
    assert text.startswith("at most 204 trainings to do; about 10 min by the trainings in the store")
    assert "folder_tiny are made" not in text


def test_a_long_run_asks_on_a_terminal(session: Session, questions: list[str]) -> None:
    with pytest.raises(typer.Exit):
        said(session, terminal=True)
    assert questions == ["Start?"]


def test_no_question_with_yes_or_without_a_terminal(session: Session, questions: list[str]) -> None:
    assert "folder_tiny are made" not in said(session, terminal=True, yes=True)
    assert "folder_tiny are made" in said(session)
    assert questions == []
