"""The check of a store: every row that is damaged, or lacks a row that it names, is found."""

import pytest

from results.store.check import check_records
from results.store.database import Database, digest_of
from results.store.store import Store
from tests.support.sample_records import some_spec
from tests.support.small_stores import EXPERIMENT, STUDY, small_run, store_at, study_at

TABLES = ("trainings", "runs", "experiments", "studies", "trials")
RUN = small_run(0, 0.4, some_spec(seed=0)).fingerprint


@pytest.fixture
def database(tmp_path):
    where = store_at(tmp_path, {0: 0.4, 1: 0.5})
    study_at(where, [0.1, 0.2], pending=True)
    Store(where.store, where.artifacts).put_failure("f" * 32, "worker died")
    return Database(where.store)


def found(database):
    return [(finding.kind, finding.name, finding.reason) for finding in check_records(database).faults]


def change(database, statement, *values):
    with database.writing() as connection:
        connection.execute(statement, values)


def test_a_whole_store_has_no_finding(database):
    steps = []
    checked = check_records(database, lambda done, total: steps.append((done, total)))
    assert checked.faults == []
    assert set(checked.specs) >= {some_spec(seed=0).fingerprint}
    assert [run.specs[0].seed for run in checked.runs.values()] == [0, 1]
    assert steps == [(number, checked.rows) for number in range(1, checked.rows + 1)]


@pytest.mark.parametrize("table", TABLES)
def test_a_changed_content_is_damaged(database, table):
    change(database, f"UPDATE {table} SET content = content || ' ' WHERE rowid = 1")
    ((kind, name, reason), *others) = found(database)
    assert (kind, reason) == ("damaged", "its hash is not that of its content")
    assert table.rstrip("s") in name
    assert {kind for kind, _, _ in others} <= {"missing"}
    change(database, f"UPDATE {table} SET content = '[1', sha256 = ? WHERE rowid = 1", digest_of("[1"))
    assert found(database)[0][0] == "damaged", "no JSON"


@pytest.mark.parametrize(
    ("table", "needing"),
    [
        ("trainings", f"row {RUN} of runs needs it"),
        ("runs", f"row {EXPERIMENT} triplet 0 0 of experiment_runs needs it"),
        ("experiments", f"row {EXPERIMENT} triplet 0 {STUDY} of experiment_studies needs it"),
        ("studies", f"trial 0 of study {STUDY} needs it"),
    ],
)
def test_a_row_that_another_one_names_is_missing(database, table, needing):
    trained = some_spec(seed=100).fingerprint  # a trial's
    change(database, "DELETE FROM trainings WHERE fingerprint = ?", trained)
    missing = ("missing", f"row {trained} of trainings", f"trial 0 of study {STUDY} needs it")
    assert found(database) == [missing]
    (first,) = database.rows(f"SELECT fingerprint FROM {table} WHERE rowid = 1")
    change(database, f"DELETE FROM {table} WHERE rowid = 1")
    assert {*found(database)} == {missing, ("missing", f"row {first['fingerprint']} of {table}", needing)}
