"""A run says in one line that its data differ from those of the earlier runs of the same experiment."""

import shutil
from pathlib import Path

import pytest

from reproduce.execution.session import Session, data_of, note_on_data, open_session
from reproduce.storage import storage_paths
from tests.support.command_line import TINY, ask
from tests.support.experiment_files import load_experiment
from tests.support.image_folders import make_folder, paint
from tests.support.tiny_run import striped_images


def opened(folder: Path, name: str = "mine") -> Session:
    experiment = load_experiment("folder_small/small_network", {"dataset.root": str(folder / "images")})
    where = storage_paths(str(folder / "store.sqlite"), None, None, None)
    return open_session(name, experiment, where, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_folder(tmp_path / "images", classes=10)
    return tmp_path


def keep(session: Session) -> None:
    summary = session.summary().model_copy(update={"data": data_of(session.problem)})
    session.store.put_experiment(session.fingerprint, session.name, summary)


def test_a_new_experiment_and_the_same_data_say_nothing(folder: Path) -> None:
    session = opened(folder)
    assert note_on_data(session) is None
    keep(session)
    assert note_on_data(session) is None


def test_a_deleted_class_and_an_added_image_are_said_with_both_counts(folder: Path) -> None:
    keep(opened(folder))
    shutil.rmtree(folder / "images" / "class_9")
    fewer = opened(folder)
    note = note_on_data(fewer)
    assert note is not None
    assert "then 20 images of 10 classes, now 18 images of 9 classes; so all trainings are made anew" in note
    keep(fewer)
    paint(folder / "images" / "class_0" / "new.png", seed=1)
    assert "then 18 images of 9 classes, now 19 images of 9 classes" in str(note_on_data(opened(folder)))
    (folder / "images" / "class_0" / "new.png").unlink()
    assert note_on_data(opened(folder)) is None


def test_another_experiment_says_nothing(folder: Path) -> None:
    keep(opened(folder))
    shutil.rmtree(folder / "images" / "class_9")
    assert note_on_data(opened(folder, "other")) is None


def test_a_run_after_a_class_was_deleted_begins_with_the_line(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    striped_images(tmp_path / "images")
    text = TINY.replace("{name: glyphs}", "{name: folder, root: images}").replace("untrained, contrastive", "untrained")
    (tmp_path / "tiny.yaml").write_text(text)
    line = "the data differ from those of this experiment's earlier runs"
    for said in (False, False, True):
        if said:
            shutil.rmtree(tmp_path / "images" / "class_15")
        answer = ask("run", "tiny.yaml", "--workers", "1", capsys=capsys, monkeypatch=monkeypatch)
        assert answer.code == 0, answer.err
        assert (line in " ".join(answer.out.split())) == said
