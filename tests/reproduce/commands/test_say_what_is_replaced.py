"""What the name of a run leads to until then."""

from pathlib import Path

import pytest

from reproduce.commands.run import say_what_is_replaced
from reproduce.run.session import Session, open_session
from reproduce.storage import open_store, storage_paths
from tests.support.experiment_files import load_experiment
from tests.support.image_folders import make_folder
from tests.support.sample_records import changed_plan


@pytest.fixture
def session(tmp_path: Path) -> Session:
    overrides = {
        "dataset.root": str(make_folder(tmp_path / "images", classes=16)),
        "methods": ["untrained", "contrastive"],
    }
    experiment = load_experiment("folder_tiny", overrides)
    where = storage_paths(str(tmp_path / "store.sqlite"))
    return open_session("folder_tiny", experiment, where, None)


def test_a_run_says_if_its_name_leads_to_other_settings_until_now(session: Session, capsys) -> None:
    def said() -> str:
        say_what_is_replaced(session)
        return capsys.readouterr().out

    store, plan = open_store(session.paths), session.plan
    assert said() == ""
    store.put_experiment("a" * 32, session.name, changed_plan(plan, methods={"other": "Other"}))
    assert said() == "", "other methods are no other settings"
    debug = plan.experiment.model_copy(update={"reproductions": 9})
    store.put_experiment("b" * 32, session.name, plan.model_copy(update={"experiment": debug}))
    assert "`table folder_tiny` will show this run; until now it shows bbbbbbbbbbbb" in said()
