"""Leases: one owner at a time; those of an ended process are free at once, those of a silent machine after a while."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from results.store import leases
from results.store.leases import this_process
from results.store.schema import LEASES
from results.store.store import Store
from tests.support.postgresql import DATABASES


@pytest.fixture(params=DATABASES)
def url(request, tmp_path):
    return request.getfixturevalue("postgresql_url") if request.param == "postgresql" else f"sqlite:///{tmp_path}/s.db"


@pytest.fixture
def store(url, tmp_path):
    return Store(url, tmp_path)


def change_owner(store, **values):
    with store._database.writing() as connection:
        connection.execute(sa.update(LEASES).values(values))


def test_a_lease_has_one_owner_until_it_is_given_back(store):
    with store.leases() as mine, store.leases() as others:
        assert mine.take("a") is None
        assert others.take("a") == this_process()
        assert mine.take("a") is None, "the owner keeps it"
        assert mine.has("a")
        assert not others.has("a")
        others.give_back("a")
        assert others.take("a") is not None, "only the owner can give it back"
        mine.give_back("a")
        assert others.take("a") is None


def test_several_leases_are_taken_together_or_not_at_all(store):
    with store.leases() as mine, store.leases() as others:
        assert others.take("b") is None
        assert mine.take("a", "b", "c") == this_process()
        assert others.take("a", "c") is None


def test_the_leases_of_a_finished_run_are_free(store):
    with store.leases() as others:
        assert others.take("a") is None
    with store.leases() as mine:
        assert mine.take("a") is None


def test_the_leases_of_a_killed_process_are_free_at_once(store, url, tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from results.store.store import Store; "
        "Store(sys.argv[1], Path()).leases().__enter__().take('a'); os._exit(9)"
    )
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code, url], cwd=root, check=False).returncode == 9
    with store._database.reading() as connection:
        assert connection.execute(sa.select(LEASES.c.name)).scalars().all() == ["a"]
    with store.leases() as mine:
        assert mine.take("a") is None


def test_a_silent_process_of_another_machine_loses_its_lease_after_a_while(store, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(leases.time, "monotonic", lambda: clock[0])
    with store.leases() as others, store.leases() as mine:
        others.take("a")
        change_owner(store, machine="elsewhere boot namespace")
        elsewhere = replace(this_process(), machine="elsewhere boot namespace")
        assert mine.take("a") == elsewhere
        clock[0] += leases.LEASE_SECONDS
        assert mine.take("a") == elsewhere
        change_owner(store, beats=1)
        clock[0] += 2
        assert mine.take("a") == elsewhere, "it gave a sign of life"
        clock[0] += leases.LEASE_SECONDS + 1
        assert mine.take("a") is None
        assert not others.has("a")


def test_a_lease_that_is_given_back_in_this_moment_is_taken_by_the_next_try(store, monkeypatch):
    with store.leases() as mine:
        with monkeypatch.context() as moment:
            moment.setattr(leases, "insert_unless_present", lambda *row: False)
            assert mine.take("a") == this_process()
        assert not mine.has("a")
        assert mine.take("a") is None


def test_an_owner_gives_signs_of_life(store, monkeypatch):
    monkeypatch.setattr(leases, "_BEAT_SECONDS", 0.01)
    with store.leases() as mine:
        mine.take("a")
        mine._closed.wait(0.5)
        with store._database.reading() as connection:
            assert connection.execute(sa.select(LEASES.c.beats)).scalar_one() > 1
