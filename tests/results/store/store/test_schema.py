"""The upgrade of a version-1 store: nothing is lost, and it happens whole or not at all."""

import sqlite3
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from results.store.database import open_engine
from results.store.schema import SCHEMA_VERSION
from results.store.store import Store, StoreError
from tests.support.sample_records import some_result, some_run, some_spec

# As version 1 of the suite made them.
VERSION_1 = """
CREATE TABLE suite_schema (version INTEGER NOT NULL);
CREATE TABLE fold_results (
    fingerprint VARCHAR(32) NOT NULL, dataset VARCHAR(64) NOT NULL, method VARCHAR(64) NOT NULL, fold INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL, best_map_at_r FLOAT NOT NULL, iterations INTEGER NOT NULL, wall_time FLOAT NOT NULL,
    spec TEXT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (fingerprint)
);
CREATE TABLE runs (
    fingerprint VARCHAR(32) NOT NULL, dataset VARCHAR(64) NOT NULL, method VARCHAR(64) NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (fingerprint)
);
CREATE TABLE experiments (
    fingerprint VARCHAR(32) NOT NULL, name VARCHAR(128) NOT NULL, settings TEXT NOT NULL,
    last_started VARCHAR(32) NOT NULL, PRIMARY KEY (fingerprint)
);
CREATE TABLE failures (
    id INTEGER NOT NULL, fold_fingerprint VARCHAR(32) NOT NULL, reason TEXT NOT NULL, at VARCHAR(32) NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE experiment_runs (
    experiment VARCHAR(32) NOT NULL, method VARCHAR(64) NOT NULL, run INTEGER NOT NULL,
    run_fingerprint VARCHAR(32) NOT NULL, PRIMARY KEY (experiment, method, run),
    FOREIGN KEY(experiment) REFERENCES experiments (fingerprint),
    FOREIGN KEY(run_fingerprint) REFERENCES runs (fingerprint)
);
CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR);
INSERT INTO suite_schema VALUES (1);
INSERT INTO studies VALUES (1, 'glyphs/triplet');
INSERT INTO experiments VALUES ('x', 'quickstart', '{}', '2026-01-01');
INSERT INTO failures VALUES (1, 'f', 'worker died', '2026-01-01');
"""
SPECS = [some_spec(seed=seed) for seed in range(40)]


@pytest.fixture
def file(tmp_path):
    """A store of version 1 with something in every table."""
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1)
        for number, spec in enumerate(SPECS):
            result = some_result(spec, 0.1 + number / 3)
            row = (spec.fingerprint, spec.dataset, spec.method.name, spec.fold, "ok", result.best_map_at_r, 200, 2.5)
            texts = (spec.model_dump_json(), result.model_dump_json())
            connection.execute("INSERT INTO fold_results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *texts))
        run = some_run()
        connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?)", (run.fingerprint, run.dataset, run.method, run.model_dump_json())
        )
        connection.execute("INSERT INTO experiment_runs VALUES ('x', 'triplet', 0, ?)", (run.fingerprint,))
    return path


def opened(path):
    return Store(f"sqlite:///{path}", path.parent / "artifacts")


def content(path):
    """Every row of every table but the version's."""
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in sorted(tables)}


def test_an_upgrade_loses_nothing(file):
    before = content(file)
    store = opened(file)
    after = content(file)
    assert before.pop("suite_schema") == [(1,)]
    assert after.pop("suite_schema") == [(SCHEMA_VERSION,)]
    assert after.pop("leases") == []
    assert after.pop("test_curves") == []
    assert after == before
    for number, spec in enumerate(SPECS):
        assert store.fold_result(spec.fingerprint) == some_result(spec, 0.1 + number / 3)
    assert store.experiment_runs("x") == [some_run()]


def test_an_upgraded_store_has_the_columns_of_a_new_one(file, tmp_path):
    opened(file)
    opened(tmp_path / "new.sqlite")

    def columns(path):
        inspector = sa.inspect(sa.create_engine(f"sqlite:///{path}"))
        return {
            name: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)],
                inspector.get_pk_constraint(name)["constrained_columns"],
            )
            for name in inspector.get_table_names()
            if name != "studies"
        }

    assert columns(file) == columns(tmp_path / "new.sqlite")


def test_a_training_without_validation_classes_needs_version_2(file):
    spec = some_spec(validation_classes=(), checkpoint_epoch=2)
    result = some_result(spec, 0.0).model_copy(update={"best_map_at_r": None, "untrained_map_at_r": None})
    with sqlite3.connect(file) as connection, pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        connection.execute("UPDATE fold_results SET best_map_at_r = NULL")
    store = opened(file)
    store.put_fold(spec, result)
    assert store.fold_result(spec.fingerprint) == result
    assert store.folds()["best_map_at_r"].isna().sum() == 1


def test_opening_again_changes_nothing(file):
    opened(file)
    before = content(file)
    opened(file)
    assert content(file) == before


@pytest.mark.parametrize("version", ["0", "4", "99"])
def test_other_versions_are_left_alone(file, version):
    with sqlite3.connect(file) as connection:
        connection.execute(f"UPDATE suite_schema SET version = {version}")
    before = content(file)
    with pytest.raises(
        StoreError, match=f"made by schema version {version}, this suite reads version {SCHEMA_VERSION}"
    ) as error:
        opened(file)
    assert "\n" not in str(error.value)
    assert content(file) == before


CRASH = """
import os, sys
import sqlalchemy as sa
from results import schema
from results.store import Store
sa.event.listen(schema.FOLD_RESULTS, "after_drop", lambda *_, **__: os._exit(9))
Store(sys.argv[1], None)
"""


def test_a_crash_in_the_middle_leaves_version_1_whole(file):
    before = content(file)
    done = subprocess.run([sys.executable, "-c", CRASH, f"sqlite:///{file}"], check=False)
    assert done.returncode == 9
    assert content(file) == before
    assert len(opened(file).folds()) == len(SPECS)


def test_a_full_disk_leaves_version_1_whole(file):
    before = content(file)

    def stop_growing(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    sa.event.listen(sa.engine.Engine, "connect", stop_growing)
    try:
        with pytest.raises(StoreError, match="disk is full; what was stored before is kept"):
            opened(file)
    finally:
        sa.event.remove(sa.engine.Engine, "connect", stop_growing)
    assert content(file) == before
    assert len(opened(file).folds()) == len(SPECS)


def test_several_that_open_it_at_once_upgrade_it_once(file):
    barrier, failures = threading.Barrier(4), []

    def upgrade():
        barrier.wait()
        try:
            opened(file)
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert content(file)["suite_schema"] == [(SCHEMA_VERSION,)]
    assert len(content(file)["fold_results"]) == len(SPECS)


def version_2(file):
    """Turn a store into one of version 2."""
    with sqlite3.connect(file) as connection:
        connection.executescript("DROP TABLE leases; UPDATE suite_schema SET version = 2")


def test_a_store_of_version_2_gets_the_leases(file):
    opened(file)
    before = content(file)
    version_2(file)
    opened(file)
    assert content(file) == before


def test_a_store_of_version_2_that_nobody_can_write_is_read(file):
    opened(file)
    version_2(file)
    before = content(file)
    # As for a file without the right to write, which root has for every file.
    store = Store(f"sqlite:///file:{file}?mode=ro&uri=true", file.parent)
    assert len(store.folds()) == len(SPECS)
    assert content(file) == before


def test_a_version_that_was_written_twice_is_read(file):
    """Older releases did so when two processes created a store on PostgreSQL."""
    opened(file)
    with sqlite3.connect(file) as connection:
        connection.execute(f"INSERT INTO suite_schema VALUES ({SCHEMA_VERSION})")
    assert len(opened(file).folds()) == len(SPECS)


@pytest.fixture
def server_of_version_1(file, postgresql_server):
    """The URL of a store of version 1 on a PostgreSQL server, with the rows of the file."""
    url = postgresql_server.new_database()
    engine = open_engine(url)
    script = VERSION_1.replace("id INTEGER NOT NULL, fold", "id SERIAL NOT NULL, fold").partition("INSERT")[0]
    with engine.begin() as connection:
        connection.exec_driver_sql(script)
        for name, rows in content(file).items():
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER ALL")
                connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({places})", row)
    engine.dispose()
    return url


def rows_on_server(url):
    engine = open_engine(url)
    with engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        rows = {name: sorted(map(tuple, connection.exec_driver_sql(f"SELECT * FROM {name}"))) for name in names}
    engine.dispose()
    return rows


@pytest.mark.cluster
def test_an_upgrade_on_postgresql_loses_nothing(server_of_version_1, tmp_path):
    before = rows_on_server(server_of_version_1)
    store = Store(server_of_version_1, tmp_path)
    after = rows_on_server(server_of_version_1)
    assert before.pop("suite_schema") == [(1,)]
    assert after.pop("suite_schema") == [(SCHEMA_VERSION,)]
    assert after.pop("leases") == after.pop("test_curves") == []
    assert after == before
    spec = some_spec(validation_classes=(), checkpoint_epoch=2)
    store.put_fold(spec, some_result(spec, 0.0).model_copy(update={"best_map_at_r": None}))
    assert len(store.folds()) == len(SPECS) + 1


@pytest.mark.cluster
def test_a_store_of_version_2_on_postgresql_gets_the_leases(postgresql_url, tmp_path):
    Store(postgresql_url, tmp_path).put_fold(SPECS[0], some_result(SPECS[0]))
    before = rows_on_server(postgresql_url)
    engine = open_engine(postgresql_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE leases; UPDATE suite_schema SET version = 2")
    engine.dispose()
    Store(postgresql_url, tmp_path)
    assert rows_on_server(postgresql_url) == before


@pytest.mark.cluster
@pytest.mark.parametrize("old", [False, True], ids=["new", "upgraded"])
def test_four_first_openings_on_postgresql_write_the_version_once(request, old, tmp_path):
    url = request.getfixturevalue("server_of_version_1" if old else "postgresql_url")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", "import sys; from results.store.store import Store; Store(sys.argv[1], None)", url]
        )
        for _ in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert rows_on_server(url)["suite_schema"] == [(SCHEMA_VERSION,)]
