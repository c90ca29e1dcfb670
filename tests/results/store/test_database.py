"""The file of a store: it is made whole or not at all, one version is read, threads and processes share it."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from results.store.database import SCHEMA_VERSION, Database, digest_of, store_file
from results.store.store import Store, StoreError
from tests.support.sample_records import some_result, some_spec


@pytest.fixture
def file(tmp_path):
    """A store with one training."""
    path, spec = tmp_path / "store.sqlite", some_spec()
    opened(path).put_fold(some_result(spec))
    return path


def opened(path):
    return Store(path, path.parent / "artifacts")


def content(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def refusal(call, *arguments):
    with pytest.raises(StoreError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["a b", "a%20b", "c#1", "really?", "e\u0301t\u00e9 '; x", "mode=memory", "sqlite:"])
def test_any_name_of_a_file_is_a_store(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    spec = some_spec()
    opened(Path(name)).put_fold(some_result(spec))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert Store(f"sqlite:///{tmp_path / name}", tmp_path).fold_result(spec.fingerprint) is not None


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_file("~/s.sqlite") == store_file("sqlite:///~/s.sqlite") == tmp_path / "s.sqlite"


@pytest.mark.parametrize(
    "place", ["postgresql://host/db", "sqlite://", "", " ", ":memory:", "sqlite:///", "sqlite:///:memory:"]
)
def test_what_is_no_file_is_refused(place, tmp_path):
    assert "runs/store.sqlite" in refusal(Store, place, tmp_path)


def test_the_file_is_in_wal_mode_and_commits_are_synchronous(file):
    with Database(file).reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    assert [path.name for path in file.parent.iterdir()] == [file.name], "nothing beside it when nobody uses it"


@pytest.mark.parametrize(("mask", "rights"), [(0o002, 0o664), (0o077, 0o600)])
def test_a_store_and_its_log_have_the_rights_that_the_mask_gives(tmp_path, mask, rights):
    before = os.umask(mask)
    try:
        with Database(tmp_path / "s.sqlite").writing():
            found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(found.values()) == {rights}
    assert {"s.sqlite", "s.sqlite-wal"} <= set(found)


@pytest.mark.parametrize("version", [4, SCHEMA_VERSION + 1])
def test_other_versions_are_refused_and_left_alone(file, version):
    change(file, f"UPDATE suite_schema SET version = {version}")
    before = content(file)
    text = refusal(opened, file)
    assert f"made by schema version {version}, this suite reads version {SCHEMA_VERSION}; use the release" in text
    assert content(file) == before


def test_files_of_others_are_left_alone(tmp_path):
    tables, text = tmp_path / "tables", tmp_path / "text"
    change(tables, "CREATE TABLE runs (speed REAL)")
    text.write_text("title: an experiment\n" * 100)
    for path, said in ((tables, "tables of another program"), (text, "not a database")):
        before = path.read_bytes()
        assert said in refusal(opened, path)
        assert path.read_bytes() == before
    assert "unable to open database file" in refusal(opened, tmp_path / "nowhere" / "store.sqlite")


def growing_no_more(monkeypatch, pages):
    """From here on no database may grow, as if the disk were full."""
    connect = Database._connect

    def full(self, mode="rw"):
        connection = connect(self, mode)
        size = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(size, pages)}")
        return connection

    monkeypatch.setattr(Database, "_connect", full)


def test_a_full_disk_is_one_line_and_what_was_there_stays(file, monkeypatch):
    store, stored = opened(file), []
    growing_no_more(monkeypatch, 1)

    def put_many():
        for seed in range(100, 400):
            spec = some_spec(seed=seed)
            store.put_fold(some_result(spec))
            stored.append(spec.fingerprint)

    said = f"database or disk is full; free some space in {file.parent}; what was stored before is kept"
    free = {str(file.parent): 1}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free.get(str(folder), 2)))
    assert said in refusal(put_many)
    free = {"/var/tmp": 0}  # SQLite sorts large queries there.
    monkeypatch.delenv("TMPDIR", raising=False)
    assert "free some space in /var/tmp" in refusal(lambda: store.put_fold(some_result(some_spec(seed=999))))
    assert store.finished_folds(stored) == set(stored)
    assert len(store.table("folds")) == 1 + len(stored)


CRASH = """
import os, sys
from results.store import database
database.SCHEMA_VERSION = type("Crash", (), {"__conform__": lambda *_: os._exit(9)})()
database.Database(sys.argv[1])
"""


def test_a_crash_while_the_store_is_made_leaves_none(tmp_path):
    path = tmp_path / "store.sqlite"
    done = subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False)
    assert done.returncode == 9
    assert len(opened(path).table("folds")) == 0


FILL = """
import sys, threading
from pathlib import Path
from results.store.store import Store
from tests.support.sample_records import some_result, some_run, some_spec, some_plan
def fill():
    store = Store(Path(sys.argv[1]), Path())
    for number in range(10):
        spec, run = some_spec(seed=number), some_run("triplet", number)
        store.put_fold(some_result(spec))
        store.put_experiment("x", "quickstart", some_plan())
        store.put_run(run)
        store.enlist("x", "triplet", run)
        assert store.fold_result(spec.fingerprint) == some_result(spec)
threads = [threading.Thread(target=fill) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_processes_and_threads_that_make_and_fill_a_store_at_once_store_everything_once(tmp_path):
    path = tmp_path / "store.sqlite"
    processes = [
        subprocess.Popen([sys.executable, "-c", FILL, str(path)], stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate(timeout=300)[1] for process in processes] == [""] * 3
    store = opened(path)
    assert len(store.table("folds")) == len(store.experiment_runs("x")) == 10
    assert len(store.starts()) == 1
    with store.database.reading() as connection:
        assert [*map(tuple, connection.execute("SELECT version FROM suite_schema"))] == [(SCHEMA_VERSION,)]


def test_one_reading_sees_one_state(file):
    with Database(file).reading() as connection:
        before = connection.execute("SELECT count(*) FROM trainings").fetchone()[0]
        opened(file).put_fold(some_result(some_spec(seed=9)))
        assert connection.execute("SELECT count(*) FROM trainings").fetchone()[0] == before == 1


@pytest.mark.parametrize("protected", ["store.sqlite", "."])
def test_a_store_that_cannot_be_written_is_read_and_nothing_is_made_beside_it(file, protected, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != file.parent / protected)
    spec = some_spec(seed=9)
    assert "readonly database" in refusal(opened(file).put_fold, some_result(spec))
    with Database(file).reading() as connection:
        assert len(connection.execute("SELECT * FROM trainings").fetchall()) == 1
        assert [path.name for path in file.parent.iterdir()] == [file.name]
    monkeypatch.undo()
    with Database(file).reading() as held:  # So the log stays beside the file, and has what follows.
        held.execute("SELECT * FROM trainings").fetchall()
        opened(file).put_fold(some_result(spec))
        monkeypatch.setattr("os.access", lambda path, mode: path != file.parent / protected)
        assert opened(file).finished_folds([spec.fingerprint]) == {spec.fingerprint}


def test_after_a_kill_the_file_alone_lacks_the_latest_and_the_next_opening_makes_it_whole(file, tmp_path):
    code = """
import os, signal, sys
from results.store.store import Store
from tests.support.sample_records import some_result, some_spec
store = Store(sys.argv[1], sys.argv[2])
with store.database.reading() as reader:  # Another reader, as in a run; the last one to close empties the log.
    reader.execute("SELECT count(*) FROM runs").fetchall()
    for seed in range(100, 112):
        store.put_fold(some_result(some_spec(seed=seed)))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code, str(file), str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(opened(Path(shutil.copy(file, tmp_path / "copy.sqlite"))).table("folds")) == 1
    assert len(opened(file).table("folds")) == 13
    assert len(opened(Path(shutil.copy(file, tmp_path / "later.sqlite"))).table("folds")) == 13


def test_a_copy_is_one_state_of_the_store(file, tmp_path):
    Database(file).copy_to(tmp_path / "copy.sqlite")
    assert content(tmp_path / "copy.sqlite") == content(file)


def test_an_error_in_a_transaction_leaves_nothing(file):
    database = Database(file)

    def fail():
        with database.writing() as connection:
            connection.execute("DELETE FROM trainings")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert len(database.rows("SELECT * FROM trainings")) == 1


def forged(text):
    """A content with the hash of it."""
    return {"content": text, "sha256": digest_of(text)}


RECORD = some_result(some_spec()).model_dump_json()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"content": RECORD.replace("0.5", "0.6")}, "its hash is not that of its content"),
        ({"content": b"\xff"}, "its hash is not that of its content"),
        ({"sha256": ""}, "its hash is not that of its content"),
        (forged(RECORD[:100]), "content: Invalid JSON"),
        (forged("[]"), "content: Input should be an object"),
        (forged(RECORD[:-1] + ',"colour":1}'), "colour: Extra inputs are not permitted"),
        (forged(RECORD[:-1] + ',"colour":1,"size":1}'), "colour: Extra inputs are not permitted"),
    ],
)
def test_a_damaged_row_is_named_with_the_remedy_whenever_it_is_read(file, values, said, caplog):
    places = ", ".join(f"{name} = ?" for name in values)
    change(file, f"UPDATE trainings SET {places}", *values.values())
    store, fingerprint = opened(file), some_spec().fingerprint
    assert store.table("folds").empty
    assert [*store.trainings()] == [*store.trainings()] == []
    (left_out,) = caplog.messages
    for text in (refusal(store.fold_result, fingerprint), left_out):
        assert f"store {file}: row {fingerprint} of trainings is damaged" in text
        assert said in text
        assert "`reproduce store check`" in text
