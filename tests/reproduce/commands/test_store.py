"""`reproduce store` on the store of a finished run: it is whole, and every damage is named."""

import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from results.store.database import digest_of
from tests.support.command_line import refused


@pytest.fixture
def runs(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run's store and checkpoints, in the current folder."""
    shutil.copytree(tiny_run / "runs" / "artifacts", tmp_path / "runs" / "artifacts")
    shutil.copyfile(tiny_run / "runs" / "store.sqlite", tmp_path / "runs" / "store.sqlite")
    return tmp_path / "runs"


def a_checkpoint(runs: Path) -> Path:
    return next(path for path in sorted((runs / "artifacts").glob("??/*.pt")) if path.name.count(".") == 1)


def change(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, values)


def forge_a_run(file: Path, **changes: object) -> None:
    """Change the first run, and its hash with it."""
    with closing(sqlite3.connect(file)) as connection:
        fingerprint, text = connection.execute("SELECT fingerprint, content FROM runs").fetchone()
    text = json.dumps({**json.loads(text), **changes})
    change(file, "UPDATE runs SET content = ?, sha256 = ? WHERE fingerprint = ?", text, digest_of(text), fingerprint)


def test_a_finished_run_is_whole(runs, say):
    answer = say("store", "check")
    assert answer.code == 0
    assert "0 damaged, 0 missing, 0 foreign" in answer.out
    (runs / "artifacts" / "notes.txt").write_text("mine")
    answer = say("store", "check")
    assert answer.code == 0
    assert "foreign: runs/artifacts/notes.txt: it belongs to no record in the store\n" in answer.out
    shutil.copyfile(a_checkpoint(runs), runs / "artifacts" / "lost.pt")
    assert "lost.pt: it belongs to no record in the store; was store.sqlite copied" in say("store", "check").out


def test_a_damaged_checkpoint_is_named(runs, say):
    path = a_checkpoint(runs)
    path.write_bytes(path.read_bytes()[:1000])
    answer = say("store", "check")
    assert answer.code == 1
    assert f"damaged: runs/artifacts/{path.parent.name}/{path.name}: cannot be loaded" in answer.out


def test_a_lost_checkpoint_is_missing_and_can_be_left_out_of_the_check(runs, say):
    a_checkpoint(runs).unlink()
    answer = say("store", "check")
    assert answer.code == 1
    assert "missing: runs/artifacts/" in answer.out
    assert say("store", "check", "--records-only").code == 0


def test_a_store_goes_into_one_file_and_out_of_it_again(runs, say):
    assert say("store", "export", "paper.zip", "--checkpoints").code == 0
    say("store", "import", "paper.zip", "--store", "new/store.sqlite").done()
    assert say("store", "check", "--store", "new/store.sqlite").code == 0
    tables = [
        say("table", "tiny", "--store", store, "--format", "csv").out
        for store in ("runs/store.sqlite", "new/store.sqlite")
    ]
    assert tables[0] == tables[1] != ""
    assert say("store", "export", "paper.zip").err == "error: paper.zip: exists already; choose another name\n"
    assert say("store", "export", "small.zip").code == 0
    assert say("store", "import", "small.zip", "--store", "small/store.sqlite").code == 0
    assert len(list(Path("small/artifacts/datasets").iterdir())) == 1
    assert say("store", "check", "--store", "small/store.sqlite").code == 1
    assert say("store", "check", "--store", "small/store.sqlite", "--records-only").code == 0


def changed_zip(name: str, **members: bytes) -> None:
    """Copy paper.zip with other or further members."""
    with zipfile.ZipFile("paper.zip") as source, zipfile.ZipFile(name, "w") as target:
        contents = {info.filename: source.read(info) for info in source.infolist()}
        for member, content in {**contents, **members}.items():
            target.writestr(member, content)


def test_what_cannot_be_read_is_not_imported(runs, say, tmp_path):
    assert say("store", "export", "paper.zip").code == 0
    Path("cut.zip").write_bytes(Path("paper.zip").read_bytes()[:5000])
    Path("text.zip").write_text("no zip file")
    changed_zip("swapped.zip", **{"store.sqlite": b"other"})
    for number, member in enumerate(("artifacts/../../evil.pt", "/etc/x", "notes.txt", "artifacts", "..\\x")):
        changed_zip(f"odd_{number}.zip", **{member: b"evil"})
    shutil.copyfile("runs/store.sqlite", "forged.sqlite")
    forge_a_run(Path("forged.sqlite"), of_the_future=1)
    changed_zip("forged.zip", **{"store.sqlite": Path("forged.sqlite").read_bytes()})
    odd = [f"odd_{number}.zip" for number in range(5)]
    for name in ("cut.zip", "text.zip", "swapped.zip", "forged.zip", "gone.zip", *odd):
        refused(say("store", "import", name, "--store", "new/store.sqlite"))
        assert not Path("new").exists(), name
    assert not (tmp_path.parent / "evil.pt").exists()


def test_conflicts_are_named_in_one_line(runs, say):
    assert say("store", "export", "paper.zip").code == 0
    forge_a_run(runs / "store.sqlite", class_scores=None)
    answer = say("store", "import", "paper.zip")
    assert answer.code == 2
    assert "error: 1 conflict, so nothing was imported; " in answer.err
    assert answer.err.endswith(" of runs\n")
    for arguments in (["check", "--store", "none"], ["export", "p.zip", "--store", "none"]):
        assert "there is no store yet" in say("store", *arguments).err
