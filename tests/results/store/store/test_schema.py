"""The schema: one version is read, others are refused in one line; a store is made whole or not at all."""

import sqlite3
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from results.store.database import open_engine
from results.store.schema import SCHEMA_VERSION
from results.store.store import Store, StoreError
from tests.support.sample_records import some_result, some_spec


@pytest.fixture
def file(tmp_path):
    """A store with one training."""
    path, spec = tmp_path / "store.sqlite", some_spec()
    opened(path).put_fold(spec, some_result(spec))
    return path


def opened(path):
    return Store(f"sqlite:///{path}", path.parent / "artifacts")


def content(path):
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_opening_again_changes_nothing(file):
    before = content(file)
    opened(file)
    assert content(file) == before


@pytest.mark.parametrize("version", [1, 3, SCHEMA_VERSION + 1, 99])
def test_other_versions_are_refused_in_one_line_and_left_alone(file, version):
    with sqlite3.connect(file) as connection:
        connection.execute(f"UPDATE suite_schema SET version = {version}")
    before = content(file)
    message = f"made by schema version {version}, this suite reads version {SCHEMA_VERSION}; use the release that made"
    for only_read in (False, True):
        with pytest.raises(StoreError, match=message) as error:
            Store(f"sqlite:///{file}", file.parent, only_read=only_read)
        assert "\n" not in str(error.value)
    assert content(file) == before


def test_a_full_disk_leaves_no_store(tmp_path):
    file = tmp_path / "store.sqlite"

    def stop_growing(connection, _record):
        connection.execute("PRAGMA max_page_count = 3")

    sa.event.listen(sa.engine.Engine, "connect", stop_growing)
    try:
        with pytest.raises(StoreError, match="disk is full; what was stored before is kept"):
            opened(file)
    finally:
        sa.event.remove(sa.engine.Engine, "connect", stop_growing)
    assert len(opened(file).folds()) == 0


def test_several_that_open_it_at_once_make_it_once(tmp_path):
    barrier, failures, file = threading.Barrier(4), [], tmp_path / "store.sqlite"

    def make():
        barrier.wait()
        try:
            opened(file)
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT version FROM suite_schema").fetchall() == [(SCHEMA_VERSION,)]


@pytest.mark.cluster
def test_four_first_openings_on_postgresql_write_the_version_once(postgresql_url):
    code = "import sys; from results.store.store import Store; Store(sys.argv[1], None)"
    processes = [subprocess.Popen([sys.executable, "-c", code, postgresql_url]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    engine = open_engine(postgresql_url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT version FROM suite_schema").fetchall() == [(SCHEMA_VERSION,)]
    engine.dispose()
