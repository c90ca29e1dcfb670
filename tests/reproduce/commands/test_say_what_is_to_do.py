"""The number of trainings before a run, and what its name leads to until then."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from reproduce.commands.run import say_what_is_replaced, say_what_is_to_do
from reproduce.run.session import Session, open_session
from reproduce.storage import open_store, storage_paths
from tests.support.experiment_files import load_experiment
from tests.support.image_folders import make_folder


@pytest.fixture
def session(tmp_path: Path) -> Session:
    overrides = {
        "dataset.root": str(make_folder(tmp_path / "images", classes=16)),
        "methods": ["untrained", "contrastive"],
    }
    experiment = load_experiment("folder_tiny", overrides)
    where = storage_paths(str(tmp_path / "store.sqlite"))
    return open_session("folder_tiny", experiment, where, None)


def said(session: Session, say: Callable[[Session, Console], None]) -> str:
    console = Console(file=io.StringIO(), width=300, no_color=True)
    say(session, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_says_how_much_is_to_do(session: Session) -> None:
    assert said(session, say_what_is_to_do) == "at most 204 trainings, 0 in the store, 204 to do\n"


def test_a_run_says_if_its_name_leads_to_other_settings_until_now(session: Session) -> None:
    store, summary = open_store(session.paths), session.summary()
    assert said(session, say_what_is_replaced) == ""
    store.put_experiment("a" * 32, session.name, summary.model_copy(update={"methods": {"other": "Other"}}))
    assert said(session, say_what_is_replaced) == "", "other methods are no other settings"
    debug = summary.experiment.model_copy(update={"reproductions": 9})
    store.put_experiment("b" * 32, session.name, summary.model_copy(update={"experiment": debug}))
    assert "`table folder_tiny` will show this run; until now it shows bbbbbbbbbbbb" in said(
        session, say_what_is_replaced
    )
