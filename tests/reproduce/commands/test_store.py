"""`reproduce store` on the store of a finished run: it is whole, and every damage is named."""

import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from results.store.database import Database
from results.store.schema import FOLD_RESULTS, RUNS
from tests.support.command_line import ask


@pytest.fixture
def runs(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the finished run's store and checkpoints, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("store.sqlite", "artifacts"):
        copy = shutil.copytree if (tiny_run / "runs" / name).is_dir() else shutil.copyfile
        (tmp_path / "runs").mkdir(exist_ok=True)
        copy(tiny_run / "runs" / name, tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.fixture
def say(capsys, monkeypatch):
    return lambda *arguments: ask("store", *arguments, capsys=capsys, monkeypatch=monkeypatch)


def a_checkpoint(runs: Path) -> Path:
    return next(path for path in sorted((runs / "artifacts").glob("??/*.pt")) if path.name.count(".") == 1)


def change(runs: Path, table: sa.Table, **values: object) -> None:
    with Database(f"sqlite:///{runs / 'store.sqlite'}").writing() as connection:
        first = sa.select(table.c.fingerprint).limit(1).scalar_subquery()
        connection.execute(sa.update(table).where(table.c.fingerprint == first).values(**values))


def test_a_finished_run_is_whole(runs, say):
    answer = say("check")
    assert answer.code == 0
    assert "0 damaged, 0 missing, 0 foreign" in answer.out


@pytest.mark.parametrize("keep", [0, 1000])
def test_a_cut_checkpoint_is_named(runs, say, keep):
    path = a_checkpoint(runs)
    path.write_bytes(path.read_bytes()[:keep])
    answer = say("check")
    assert answer.code == 1
    assert f"damaged: runs/artifacts/{path.parent.name}/{path.name}: cannot be loaded" in answer.out


def test_a_flipped_bit_in_a_checkpoint_is_named(runs, say):
    path = a_checkpoint(runs)
    with zipfile.ZipFile(path) as archive:
        member = max(archive.infolist(), key=lambda info: info.file_size)
    content = bytearray(path.read_bytes())
    content[member.header_offset + 200] ^= 1
    path.write_bytes(content)
    answer = say("check")
    assert answer.code == 1
    assert f"{path.name}: " in answer.out


def test_a_lost_checkpoint_is_missing_and_can_be_left_out_of_the_check(runs, say):
    a_checkpoint(runs).unlink()
    answer = say("check")
    assert answer.code == 1
    assert "missing: runs/artifacts/" in answer.out
    assert say("check", "--records-only").code == 0


def test_files_that_belong_to_nothing_are_foreign_and_do_no_harm(runs, say):
    (runs / "artifacts" / "notes.txt").write_text("mine")
    answer = say("check")
    assert answer.code == 0
    assert "foreign: runs/artifacts/notes.txt" in answer.out


@pytest.mark.parametrize("values", [{"iterations": 7}, {"spec": "{}"}, {"result": "["}, {"fold": 3}])
def test_a_changed_training_is_damaged(runs, say, values):
    change(runs, FOLD_RESULTS, **values)
    answer = say("check", "--records-only")
    assert answer.code == 1
    assert "damaged: training" in answer.out


def test_a_training_under_another_fingerprint_is_damaged_and_missed_by_others(runs, say):
    change(runs, FOLD_RESULTS, fingerprint="f" * 32)
    out = say("check", "--records-only").out
    assert f"damaged: training {'f' * 32}" in out
    assert "missing: training" in out


def test_a_trial_with_another_score_than_its_trainings_is_damaged(runs, say):
    with closing(sqlite3.connect(runs / "store.sqlite")) as connection, connection:
        study, number, text = connection.execute("SELECT study, number, trial FROM search_trials").fetchone()
        trial = json.loads(text)
        trial |= {"score": trial["score"] / 2, "fold_scores": [score / 2 for score in trial["fold_scores"]]}
        changed = (json.dumps(trial), trial["score"], study, number)
        connection.execute("UPDATE search_trials SET trial = ?, score = ? WHERE study = ? AND number = ?", changed)
    answer = say("check", "--records-only")
    assert answer.code == 1
    assert f"trial {number} of study {study}: it has the score {trial['fold_scores'][0]} of training" in answer.out


def test_a_changed_test_evaluation_is_damaged(runs, say):
    change(runs, RUNS, fingerprint="f" * 32)
    out = say("check", "--records-only").out
    assert "damaged: test evaluation" in out
    assert "the experiment" in out


def test_a_record_of_another_release_is_foreign(runs, say):
    with Database(f"sqlite:///{runs / 'store.sqlite'}").reading() as connection:
        record = json.loads(connection.execute(sa.select(RUNS.c.record).limit(1)).scalar_one())
    change(runs, RUNS, record=json.dumps({**record, "of_the_future": 1}))
    answer = say("check", "--records-only")
    assert answer.code == 0
    assert "written by another release" in answer.out


def test_a_store_goes_into_one_file_and_out_of_it_again(runs, say, capsys, monkeypatch):
    assert say("export", "paper.zip", "--checkpoints").code == 0
    answer = say("import", "paper.zip", "--store", "new/store.sqlite")
    assert answer.code == 0, answer.err
    assert say("check", "--store", "new/store.sqlite").code == 0
    tables = [
        ask("table", "tiny", "--store", store, "--format", "csv", capsys=capsys, monkeypatch=monkeypatch).out
        for store in ("runs/store.sqlite", "new/store.sqlite")
    ]
    assert tables[0] == tables[1] != ""


def test_an_export_without_checkpoints_has_everything_else(runs, say):
    assert say("export", "paper.zip").code == 0
    assert say("import", "paper.zip", "--store", "new/store.sqlite").code == 0
    assert say("check", "--store", "new/store.sqlite").code == 1
    assert say("check", "--store", "new/store.sqlite", "--records-only").code == 0


def test_an_export_replaces_no_file(runs, say):
    Path("paper.zip").write_text("mine")
    assert say("export", "paper.zip").err == "error: paper.zip: exists already; choose another name\n"
    assert Path("paper.zip").read_text() == "mine"


def changed_zip(name: str, **members: bytes) -> None:
    """Copy paper.zip with other contents of some members; new names are added to the manifest."""
    with zipfile.ZipFile("paper.zip") as source, zipfile.ZipFile(name, "w") as target:
        contents = {info.filename: source.read(info) for info in source.infolist()}
        for member, content in {**contents, **members}.items():
            target.writestr(member, content)


def test_a_damaged_file_is_not_imported(runs, say):
    assert say("export", "paper.zip").code == 0
    Path("cut.zip").write_bytes(Path("paper.zip").read_bytes()[:5000])
    changed_zip("swapped.zip", **{"store.sqlite": b"other"})
    with zipfile.ZipFile("paper.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
    manifest["members"]["artifacts/../../evil.pt"] = {"size": 4, "sha256": "0" * 64}
    changed_zip("evil.zip", **{"manifest.json": json.dumps(manifest).encode(), "artifacts/../../evil.pt": b"evil"})
    changed_zip("empty.zip", **{"manifest.json": b"[]"})
    Path("text.zip").write_text("no zip file")
    for name in ("cut", "swapped", "evil", "empty", "text", "gone"):
        answer = say("import", f"{name}.zip", "--store", "new/store.sqlite")
        assert answer.code == 2, name
        assert answer.err.startswith("error: "), name
        assert answer.err.count("\n") == 1, name
        assert not Path("new/store.sqlite").exists(), name
    assert not Path("../evil.pt").exists()


def test_two_names_of_one_store_are_not_merged(runs, say):
    answer = say("merge", "runs/store.sqlite", "runs/../runs/store.sqlite")
    assert answer.code == 2
    assert "both are the same store" in answer.err


def test_conflicts_are_printed_and_end_with_exit_status_1(runs, say):
    assert say("export", "paper.zip").code == 0
    assert say("import", "paper.zip", "--store", "new/store.sqlite").code == 0
    with Database(f"sqlite:///{runs / 'store.sqlite'}").writing() as connection:
        record = json.loads(connection.execute(sa.select(RUNS.c.record).limit(1)).scalar_one())
    change(runs, RUNS, record=json.dumps({**record, "class_scores": None}))
    answer = say("merge", "new/store.sqlite", "runs/store.sqlite")
    assert answer.code == 1
    assert "conflict: test evaluation" in answer.out
    assert "(class_scores)" in answer.out
    kept = say("merge", "new/store.sqlite", "runs/store.sqlite", "--keep-first")
    assert kept.code == 0
    assert "keeps its version" in kept.out


def test_a_store_that_is_not_there_is_one_line(tmp_path, say, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["check"], ["export", "paper.zip"], ["merge", "a.sqlite", "b.sqlite"]):
        answer = say(*arguments)
        assert answer.code == 2
        assert "there is no store yet" in answer.err
