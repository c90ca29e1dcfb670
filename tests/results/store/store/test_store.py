"""The store: what is put in comes out, the first result stays, and what cannot be used is said in one line."""

import sqlite3
import subprocess
import sys
import threading

import pandas as pd
import pytest
import sqlalchemy as sa

from results.records import records
from results.records.records import EVALUATION_VERSION, ClassScores
from results.store.schema import SCHEMA_VERSION
from results.store.store import Store, StoreError
from tests.support.postgresql import DATABASES
from tests.support.sample_records import scores, some_result, some_run, some_spec, some_summary


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(file):
    return Store(f"sqlite:///{file}", file.parent / "artifacts")


@pytest.fixture(params=DATABASES)
def any_store(request, tmp_path):
    """A store in each kind of database."""
    url = f"sqlite:///{tmp_path}/any.sqlite"
    return Store(request.getfixturevalue("postgresql_url") if request.param == "postgresql" else url, tmp_path)


def opened(file):
    return Store(f"sqlite:///{file}", file.parent / "artifacts")


def is_one_line(error: pytest.ExceptionInfo[StoreError]) -> bool:
    return str(error.value).count("\n") == 0


def test_a_training_comes_out_as_it_was_put_in(store, file):
    spec = some_spec()
    assert store.fold_result(spec.fingerprint) is None
    store.put_fold(spec, some_result(spec))
    assert store.fold_result(spec.fingerprint) == some_result(spec)
    assert opened(file).fold_result(spec.fingerprint) == some_result(spec)


def test_the_folder_of_the_artifacts_is_the_one_that_was_given(store, file):
    assert store.artifacts == file.parent / "artifacts"


def test_the_first_result_of_a_training_stays(any_store):
    spec = some_spec()
    any_store.put_fold(spec, some_result(spec, 0.5))
    any_store.put_fold(spec, some_result(spec, 0.6))
    assert any_store.fold_result(spec.fingerprint).best_map_at_r == 0.5
    assert len(any_store.folds()) == 1


def test_the_first_evaluation_of_a_run_stays(any_store):
    any_store.put_run(some_run(separated=0.5))
    any_store.put_run(some_run(separated=0.9))
    assert any_store.run("triplet-0") == some_run(separated=0.5)
    assert any_store.run("triplet-1") is None


def test_finished_folds_takes_any_number_of_fingerprints(any_store):
    specs = [some_spec(seed=seed) for seed in range(1203)]
    for spec in specs[::600]:
        any_store.put_fold(spec, some_result(spec))
    expected = {specs[0].fingerprint, specs[600].fingerprint, specs[1200].fingerprint}
    assert any_store.finished_folds([spec.fingerprint for spec in specs]) == expected
    assert any_store.finished_folds([]) == set()


def test_trainings_and_curves_are_read_back_as_frames(any_store):
    for fold in (1, 0):
        spec = some_spec(fold=fold)
        any_store.put_fold(spec, some_result(spec, 0.1 + fold))
    folds = any_store.folds()
    assert list(folds.columns) == [
        *("fingerprint", "dataset", "method", "fold", "status", "best_map_at_r", "iterations", "wall_time"),
    ]
    assert folds["fold"].tolist() == [0, 1]
    assert folds["best_map_at_r"].tolist() == [0.1, 1.1]
    curves = any_store.curves()
    assert list(curves.columns) == ["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"]
    mine = curves[curves["fingerprint"] == some_spec(fold=1).fingerprint]
    assert mine["iteration"].tolist() == [0, 100, 200]
    assert mine["map_at_r"].tolist() == [0.0, 0.55, 1.1]
    assert pd.isna(mine["loss"].iloc[0])


def test_runs_are_read_back_as_a_frame(any_store):
    any_store.put_run(some_run("triplet", 1, 0.6))
    any_store.put_run(some_run("contrastive", 0, 0.5))
    runs = any_store.runs().set_index("fingerprint")
    assert runs.loc["triplet-1", "separated_precision_at_1"] == 0.6
    assert runs.loc["triplet-1", "concatenated_map_at_r"] == pytest.approx(0.7 / 4)
    assert runs.loc["contrastive-0", "method"] == "contrastive"
    assert runs.loc["contrastive-0", "commit"] == "0" * 40


def test_empty_frames_have_their_columns(any_store):
    assert "status" in any_store.folds()
    assert "map_at_r" in any_store.curves()
    assert "reason" in any_store.failures()
    assert "last_started" in any_store.experiments()
    assert len(any_store.runs()) == 0


def test_the_experiment_started_last_comes_first(any_store):
    for name in ("a", "b", "c", "a"):
        any_store.put_experiment(f"fingerprint-{name}", name, some_summary(title=name))
    assert any_store.experiments()["name"].tolist() == ["a", "c", "b"]


def test_the_latest_start_of_an_experiment_says_its_methods(any_store):
    any_store.put_experiment("x", "quickstart", some_summary(methods={"triplet": "Triplet"}))
    any_store.put_experiment("x", "quickstart", some_summary(methods={"triplet": "Triplet", "cosface": "CosFace"}))
    assert list(any_store.experiment("x").methods) == ["triplet", "cosface"]
    assert len(any_store.experiments()) == 1


def test_an_experiment_that_is_not_there_is_an_error(any_store):
    with pytest.raises(StoreError, match="holds no experiment nowhere"):
        any_store.experiment("nowhere")


def test_an_experiments_runs_come_by_method_and_run(any_store):
    any_store.put_experiment("x", "quickstart", some_summary())
    any_store.put_experiment("y", "other", some_summary())
    for run in (some_run("triplet", 1), some_run("triplet", 0), some_run("cosface", 0)):
        any_store.put_run(run)
        any_store.enlist("x", run.method, run)
    assert [(r.method, r.run) for r in any_store.experiment_runs("x")] == [
        ("cosface", 0),
        ("triplet", 0),
        ("triplet", 1),
    ]
    assert any_store.experiment_runs("y") == []


def test_runs_of_equal_numbers_in_two_searches_are_both_kept(any_store):
    any_store.put_experiment("x", "quickstart", some_summary())
    for search in (1, 0):
        run = some_run(run=0, search=search, fingerprint=f"of search {search}")
        any_store.put_run(run)
        any_store.enlist("x", "triplet", run)
    assert [run.search for run in any_store.experiment_runs("x")] == [0, 1]


def test_enlisting_twice_is_enlisting_once_and_the_later_run_counts(any_store):
    any_store.put_experiment("x", "quickstart", some_summary())
    first, another = some_run("triplet", 0), some_run("triplet", 0, fingerprint="another", separated=0.7)
    for run in (first, first, another):
        any_store.put_run(run)
        any_store.enlist("x", "triplet", run)
    assert [run.fingerprint for run in any_store.experiment_runs("x")] == ["another"]


def test_failures_are_kept_in_order(any_store):
    any_store.put_failure("f", "worker died")
    any_store.put_failure("f", "worker died again")
    assert any_store.failures()["reason"].tolist() == ["worker died", "worker died again"]


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0])
def test_another_schema_version_is_named_with_what_to_do(store, file, version):
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE suite_schema SET version = ?", (version,))
    with pytest.raises(StoreError) as error:
        opened(file)
    text = f"made by schema version {version}, this suite reads version {SCHEMA_VERSION}"
    assert text in str(error.value)
    assert str(file) in str(error.value)
    assert "--store" in str(error.value)
    assert is_one_line(error)


def test_tables_of_another_program_are_left_alone(file):
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE runs (speed REAL)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"tables of another program.*--store") as error:
        opened(file)
    assert is_one_line(error)
    assert file.read_bytes() == before


def test_tables_of_other_names_are_no_hindrance(file):
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE studies (study_id INTEGER)")
    spec = some_spec()
    opened(file).put_fold(spec, some_result(spec))
    assert opened(file).fold_result(spec.fingerprint) == some_result(spec)


def test_a_file_that_is_no_database_is_left_alone(file):
    file.write_text("title: an experiment\n" * 100)
    with pytest.raises(StoreError, match="not a database") as error:
        opened(file)
    assert is_one_line(error)
    assert file.read_text() == "title: an experiment\n" * 100


@pytest.mark.parametrize("url", ["nonsense", "martian:///x", "postgresql+nodriver://host/x"])
def test_an_unusable_url_is_one_line(url, tmp_path):
    with pytest.raises(StoreError, match="not a usable SQLAlchemy URL") as error:
        Store(url, tmp_path)
    assert url in str(error.value)
    assert is_one_line(error)


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(StoreError, match="unable to open database file") as error:
        Store(f"sqlite:///{tmp_path}/nowhere/store.sqlite", tmp_path)
    assert is_one_line(error)


@pytest.fixture
def no_more_pages():
    """From here on no SQLite database may grow, as if the disk were full; undone at the end."""

    def stop_growing(connection, _record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(pages, 1)}")

    sa.event.listen(sa.engine.Engine, "connect", stop_growing)
    yield
    sa.event.remove(sa.engine.Engine, "connect", stop_growing)


def test_a_full_disk_is_one_line_and_what_was_there_stays(store, file, no_more_pages):
    first = some_spec(seed=0)
    store.put_fold(first, some_result(first))
    full = opened(file)
    stored = []

    def put_many():
        for seed in range(1, 200):
            spec = some_spec(seed=seed)
            full.put_fold(spec, some_result(spec))
            stored.append(spec.fingerprint)

    with pytest.raises(StoreError, match="database or disk is full; what was stored before is kept") as error:
        put_many()
    assert is_one_line(error)
    assert full.fold_result(first.fingerprint) == some_result(first)
    assert full.finished_folds(stored) == set(stored)
    assert len(full.folds()) == 1 + len(stored)


def test_a_disk_that_is_full_from_the_start_leaves_no_half_made_store(file, no_more_pages):
    with pytest.raises(StoreError, match="database or disk is full"):
        opened(file)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


CRASH = """
import os, sys
import sqlalchemy as sa
from results.store import schema, store
def die(*_, **__):
    os._exit(9)
sa.event.listen(schema.EXPERIMENTS, "after_create", die)
store.Store(sys.argv[1], None)
"""


def test_a_crash_while_the_store_is_made_leaves_none(file):
    done = subprocess.run([sys.executable, "-c", CRASH, f"sqlite:///{file}"], check=False)
    assert done.returncode == 9
    spec = some_spec()
    opened(file).put_fold(spec, some_result(spec))
    assert opened(file).fold_result(spec.fingerprint) is not None


def test_two_processes_that_make_the_store_at_once_make_one(file):
    barrier, failures = threading.Barrier(4), []

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


def test_a_reader_sees_whole_results_while_another_writes(store, file):
    specs = [some_spec(seed=seed) for seed in range(60)]
    seen, done = [], threading.Event()

    def read():
        reader = opened(file)
        while not done.is_set():
            seen.append(len(reader.curves()) / 3)
        seen.append(len(reader.curves()) / 3)

    thread = threading.Thread(target=read)
    thread.start()
    for spec in specs:
        store.put_fold(spec, some_result(spec))
    done.set()
    thread.join()
    assert seen == sorted(seen)
    assert all(count == int(count) for count in seen)
    assert seen[-1] == len(specs)


def test_a_reader_in_the_middle_of_its_reading_does_not_stop_the_writer(store, file):
    with sqlite3.connect(file) as reader:
        cursor = reader.execute("SELECT version FROM suite_schema")
        spec = some_spec()
        writer = threading.Thread(target=store.put_fold, args=(spec, some_result(spec)))
        writer.start()
        cursor.fetchall()
        reader.commit()
        writer.join()
    assert store.fold_result(spec.fingerprint) == some_result(spec)


def some_curve(fingerprint, best=0.5, **changes):
    points = tuple(records.TestPoint(iteration=100 * i, scores=scores(best * i / 2)) for i in range(3))
    return records.TestCurve(fingerprint=fingerprint, points=points, **changes)


def test_test_curves_come_out_as_they_were_put_in(store, file):
    assert store.test_curve("a") is None
    store.put_test_curve(some_curve("a"))
    store.put_test_curve(some_curve("a", 0.9))
    store.put_test_curve(some_curve("b"))
    assert opened(file).test_curve("a") == some_curve("a")
    assert store.test_curves(["b", "c", "a"]) == {"a": some_curve("a"), "b": some_curve("b")}
    points = store.test_points()
    assert list(points.columns) == ["fingerprint", "iteration", "precision_at_1", "r_precision", "map_at_r"]
    assert points["iteration"].tolist() == [0, 100, 200] * 2
    assert points["map_at_r"].tolist() == [0.0, 0.0625, 0.125] * 2


def test_a_test_curve_of_another_evaluation_is_as_if_absent_and_is_replaced(any_store):
    any_store.put_test_curve(some_curve("a", evaluation_version=EVALUATION_VERSION - 1))
    assert any_store.test_curve("a") is None
    assert len(any_store.test_points()) == 0
    any_store.put_test_curve(some_curve("a", 0.7))
    assert any_store.test_curve("a") == some_curve("a", 0.7)


def test_trainings_are_loaded_in_bulk(any_store):
    specs = [some_spec(seed=seed) for seed in range(1203)]
    for spec in specs[::600]:
        any_store.put_fold(spec, some_result(spec))
    found = any_store.fold_results([spec.fingerprint for spec in specs])
    assert found == {spec.fingerprint: (spec, some_result(spec)) for spec in specs[::600]}
    assert any_store.fold_results([]) == {}


def test_further_metrics_have_columns_where_a_run_has_them(any_store):
    plain, rich = some_run("contrastive"), some_run("triplet", metrics_separated={"recall@2": 0.6, "nmi": 0.7}, steps=9)
    any_store.put_run(plain)
    assert not any(column.endswith("nmi") for column in any_store.runs())
    any_store.put_run(rich)
    runs = any_store.runs().set_index("method")
    assert runs.loc["triplet", ["separated_recall@2", "separated_nmi", "steps"]].tolist() == [0.6, 0.7, 9]
    assert runs.loc["contrastive", ["separated_recall@2", "separated_nmi", "steps"]].isna().all()
    assert "concatenated_nmi" not in runs


def test_class_scores_have_a_row_per_class(any_store):
    kept = ClassScores(queries=(3, 5), separated=(scores(0.1), scores(0.2)), concatenated=(scores(0.3), scores(0.4)))
    any_store.put_run(some_run("contrastive"))
    assert "queries" in any_store.class_scores()
    assert len(any_store.class_scores()) == 0
    any_store.put_run(some_run("triplet", 1, class_scores=kept))
    frame = any_store.class_scores()
    assert frame[["method", "run", "class_rank", "queries"]].to_numpy().tolist() == [
        ["triplet", 1, 0, 3],
        ["triplet", 1, 1, 5],
    ]
    assert frame["separated_precision_at_1"].tolist() == [0.1, 0.2]
    assert frame["concatenated_map_at_r"].tolist() == [0.075, 0.1]


def test_a_clock_that_was_set_back_shows_no_older_experiment_as_the_latest(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 'clock.sqlite'}", tmp_path)
    store.put_experiment("a" * 32, "some", some_summary())
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE experiments SET last_started = '2999-01-01T00:00:00+00:00'")
    store.put_experiment("b" * 32, "some", some_summary())
    assert store.latest_experiments() == {"some": "b" * 32}
