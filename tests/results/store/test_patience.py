"""Calls are repeated after a lost connection, and while a SQLite file is locked and a run waits for it."""

import sqlite3
import threading
import time

import pytest
import sqlalchemy as sa

from results.store import database as engine
from results.store import patience
from results.store.check_records import check_records
from results.store.merge_records import apply_merge, plan_merge
from results.store.patience import LockWait, LostConnectionError, patient
from results.store.schema import FAILURES
from results.store.store import Store, StoreError
from tests.support.sample_records import some_result, some_spec
from tests.support.sound_store import sound_result, sound_spec


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A store that gives up after a moment, and a connection that has locked its file."""
    monkeypatch.setattr(engine, "_PATIENCE", 0.1)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    lock = sqlite3.connect(tmp_path / "store.sqlite", check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    yield store, lock
    lock.close()


def test_a_run_keeps_a_training_until_the_lock_goes(locked):
    store, lock = locked
    lines, spec = [], some_spec()
    store.wait_while_locked(LockWait(lines.append))
    threading.Timer(0.7, lock.rollback).start()
    store.put_fold(spec, some_result(spec))
    assert store.fold_result(spec.fingerprint) == some_result(spec)
    assert len(lines) == 1
    assert lines[0].startswith("another program has locked the store")


def test_a_check_and_a_merge_wait_until_the_lock_goes(locked, tmp_path):
    store, lock = locked
    lines, specs = [], [sound_spec(number) for number in range(2)]
    other = Store(f"sqlite:///{tmp_path}/other.sqlite", tmp_path)
    for spec in specs:
        other.put_fold(spec, sound_result(spec, 0.5))
    other.put_failure(specs[0].fingerprint, "no power")
    into, source = store._database, other._database
    into.lock_wait = LockWait(lines.append)

    def with_a_lock(call, *arguments):
        lock.rollback()
        lock.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.4, lock.rollback).start()
        return call(*arguments)

    merge = with_a_lock(plan_merge, into, source)
    with_a_lock(apply_merge, into, merge)
    apply_merge(into, merge)  # As after a lost connection, when nobody knows whether it was carried out.
    checked = with_a_lock(check_records, into)
    assert (checked.findings, set(checked.specs)) == ((), {spec.fingerprint for spec in specs})
    assert len(store.failures()) == 1
    assert len(lines) == 3


def test_other_commands_do_not_wait_longer(locked):
    store, _ = locked
    with pytest.raises(StoreError, match="database is locked; what was stored before is kept"):
        store.folds()


def test_a_run_that_is_stopped_does_not_wait_longer(locked):
    store, _ = locked
    store.wait_while_locked(LockWait(lambda line: None, stopped=lambda: True))
    with pytest.raises(StoreError, match="database is locked"):
        store.folds()


class Server:
    lock_wait = LockWait()

    def __init__(self, losses):
        self.losses, self.calls = losses, 0

    @patient
    def work(self):
        self.calls += 1
        if self.calls <= self.losses:
            raise LostConnectionError("lost")
        return "done"


def test_lost_connections_are_repeated_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(patience, "_PAUSES", (0.0, 0.0))
    assert Server(2).work() == "done"
    broken = Server(3)
    with pytest.raises(StoreError, match="lost") as error:
        broken.work()
    assert type(error.value) is StoreError  # A caller that is patient too does not start again.
    assert broken.calls == 3


@pytest.mark.cluster
def test_a_store_whose_connections_are_cut_loses_nothing(postgresql_server, tmp_path):
    url = postgresql_server.new_database()
    store = Store(url, tmp_path)
    specs = [some_spec(seed=seed) for seed in range(60)]
    until = time.monotonic() + 3
    with postgresql_server.cutting(url, 0.05):
        while time.monotonic() < until:
            for spec in specs:
                store.put_fold(spec, some_result(spec))
            assert set(store.fold_results([spec.fingerprint for spec in specs])) == {s.fingerprint for s in specs}
    assert len(store.folds()) == len(specs)


@pytest.mark.cluster
def test_other_errors_are_not_repeated(postgresql_server, tmp_path):
    store = Store(postgresql_server.new_database(), tmp_path)
    with store._database.writing() as connection:
        FAILURES.drop(connection)
    began = time.monotonic()
    with pytest.raises(StoreError, match='relation "failures" does not exist'):
        store.failures()
    assert time.monotonic() - began < 5
    assert sa.inspect(store._database.engine).has_table("runs")
