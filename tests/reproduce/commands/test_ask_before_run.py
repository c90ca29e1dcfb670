"""The forecast before a run, the question above an hour, and the panel for the size of the images."""

import io
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from rich.console import Console

from reproduce.commands import run as module
from reproduce.commands.run import ask_before_run
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.open_sessions import suitable_panels
from reproduce.execution.session import Session, open_session
from reproduce.storage import open_store, storage_paths
from results.spec.experiment_spec import Experiment
from tests.support.experiment_files import load_experiment
from tests.support.feature_files import some_features, write_features
from tests.support.image_folders import make_folder
from tests.support.sample_records import some_result


@pytest.fixture
def session(tmp_path: Path) -> Session:
    overrides = {"dataset.root": str(make_folder(tmp_path / "images")), "methods": ["untrained", "contrastive"]}
    experiment = load_experiment("folder_small/small_network", overrides)
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    return open_session("folder_small/small_network", experiment, where, None)


def said(session: Session, *, terminal: bool = False, yes: bool = False) -> str:
    console = Console(file=io.StringIO(), width=300, force_terminal=terminal, no_color=True)
    ask_before_run(session, "cpu", 2, yes=yes, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A run that takes long, on a terminal where somebody says no."""
    asked: list[str] = []
    monkeypatch.setattr(module, "LONG_SECONDS", 0.0)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question: asked.append(question) or False)
    return asked


def test_a_short_run_only_says_its_forecast(session: Session) -> None:
    text = said(session)
    assert "at most 204 trainings to do, forecast: about " in text
    assert "6,400 images a second, for cpu: 200 optimizer steps a second (estimated)" in text
    assert "folder_small is made" not in text


def test_a_forecast_says_that_a_method_has_the_rate_of_its_own_trainings(session: Session) -> None:
    (method,) = (method.method for method in session.methods.values() if method.method.loss is not None)
    spec = session.problem.fold_specs(method, "calibration", 0)[0]
    open_store(session.paths).put_fold(spec, some_result(spec))
    text = said(session)
    assert "from 1 training on folder in the store; a method with trainings in the store has their rate)" in text


def test_a_long_run_asks_on_a_terminal(session: Session, questions: list[str]) -> None:
    with pytest.raises(typer.Exit):
        said(session, terminal=True)
    assert questions == ["Start?"]


def test_no_question_with_yes_or_without_a_terminal(session: Session, questions: list[str]) -> None:
    assert "folder_small is made" not in said(session, terminal=True, yes=True)
    assert "folder_small is made" in said(session)
    assert questions == []


def test_a_run_on_features_speaks_of_features(tmp_path: Path, questions: list[str]) -> None:
    write_features(tmp_path, some_features(width=24), np.repeat(np.arange(16), 4))
    (tmp_path / "mine.yaml").write_text(
        "title: T\ndataset: {name: features, root: .}\nmethods: [contrastive]\nembedding_size: 8\n"
    )
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    ((name, experiment),) = load_experiments(str(tmp_path / "mine.yaml"), {}).items()
    text = said(open_session(name, experiment, where, None))
    assert "rows of features a second, for cpu: 1000 optimizer steps" in text
    assert "Shorter: " in text
    assert "image" not in text
    assert "--frozen" not in text


def located(root: Path) -> dict[str, Experiment]:
    return load_experiments("folder_small", {"dataset.root": str(root)})


@pytest.mark.parametrize(("side", "panel"), [(128, "small_network"), (129, "frozen_features")])
def test_the_panel_suits_the_size_of_the_images(tmp_path: Path, side: int, panel: str) -> None:
    for number in range(8):
        path = tmp_path / f"class_{number}" / "0.png"
        path.parent.mkdir()
        Image.new("L", (side + 50, side)).save(path)
    console = Console(file=io.StringIO(), width=400)
    assert list(suitable_panels("folder_small", located(tmp_path), console)) == [f"folder_small/{panel}"]
    assert isinstance(console.file, io.StringIO)
    assert f"the median of the shorter sides is {side} pixels" in console.file.getvalue()


def test_a_named_panel_is_kept(tmp_path: Path) -> None:
    make_folder(tmp_path)
    named = load_experiments("folder_small/frozen_features", {"dataset.root": str(tmp_path)})
    assert suitable_panels("folder_small/frozen_features", named, Console(file=io.StringIO())) == named
