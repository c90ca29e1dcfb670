"""Two stores become one: what is new is added, what is equal stays, and what differs is named."""

import pytest
from reproduce.store_care.merge_stores import ConflictError, merge_stores

from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store, storage_paths
from results.records.artifacts import weights_path
from results.store.database import Database
from results.values import fingerprint_of
from tests.support.sample_records import some_result, some_spec
from tests.support.small_stores import EXPERIMENT, IDENTITY, STUDY, checkpoint, store_at, study_at

SPECS = [some_spec(seed=number) for number in range(3)]


def scores_at(where: StoragePaths) -> list[float | None]:
    return [trial.score for trial in open_store(where).searches.trials(STUDY)]


def test_what_is_new_is_added_with_its_files_and_its_places_in_the_table(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4, 1: 0.5}), store_at(tmp_path / "b", {1: 0.5, 2: 0.6}, 99.0)
    open_store(second).put_failure("f" * 32, "worker died")
    merged = merge_stores(first, second)
    assert (merged.trainings, merged.runs, merged.files) == (1, 1, 1)
    store = open_store(first)
    assert [record.run for record in store.experiment_runs(EXPERIMENT)] == [0, 1, 2]
    new = weights_path(store.artifacts, SPECS[2])
    assert new.read_bytes() == weights_path(second.artifacts, SPECS[2]).read_bytes()
    assert store.fold_result(SPECS[1].fingerprint).wall_time == 2.5, "equal but for its duration"
    again = merge_stores(first, second)
    assert (again.trainings, again.runs, again.experiments, again.files) == (0, 0, 0, 0)
    assert len(store.failures()) == 1


def test_different_results_are_named_and_nothing_is_written(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {0: 0.7, 2: 0.6})
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert SPECS[0].fingerprint in caught.value.conflicts[0].name
    assert caught.value.conflicts[0].reason == "different curve"
    store = open_store(first)
    assert store.finished_folds([SPECS[2].fingerprint]) == set()
    merged = merge_stores(first, second, keep_first=True)
    assert (merged.trainings, merged.files) == (1, 1)
    assert store.fold_result(SPECS[0].fingerprint).best_map_at_r == 0.4
    assert b"scores 0.4" in weights_path(store.artifacts, SPECS[0]).read_bytes()


def test_a_test_evaluation_of_trainings_with_other_results_is_left_out(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {0: 0.7})
    open_store(first).put_fold(SPECS[0], some_result(SPECS[0], 0.4))
    merged = merge_stores(first, second, keep_first=True)
    assert (merged.runs, merged.files) == (0, 0)
    assert open_store(first).experiment_runs(EXPERIMENT) == []


def test_a_study_with_more_trials_continues_the_other_one(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(first, [0.1], pending=True)
    study_at(second, [0.1, 0.2, 0.3])
    assert merge_stores(first, second).studies == 1
    assert scores_at(first) == [0.1, 0.2, 0.3]
    assert merge_stores(first, second).studies == 0
    assert merge_stores(second, first).studies == 0


def test_a_new_study_comes_with_its_identity_and_its_experiment(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(second, [0.1], pending=True)
    assert merge_stores(first, second).studies == 1
    (study,) = open_store(first).searches.of_experiment(EXPERIMENT).values()
    assert (study.fingerprint, study.identity) == (STUDY, IDENTITY)
    assert [trial.state for trial in study.trials] == ["complete"]


def test_a_study_with_other_scores_is_a_conflict(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(first, [0.1])
    study_at(second, [0.15, 0.3])
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert any(STUDY in conflict.name for conflict in caught.value.conflicts)
    assert merge_stores(first, second, keep_first=True).studies == 0
    assert scores_at(first) == [0.1]


def test_runs_of_another_search_do_not_join_a_row(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {1: 0.5})
    study_at(first, [0.1])
    other = {**IDENTITY, "seed": 2}
    open_store(second).searches.enlist(EXPERIMENT, {"triplet": [(fingerprint_of(other), other)]})
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert caught.value.conflicts[0].reason == "its search is another one"
    assert merge_stores(first, second, keep_first=True).runs == 1
    with open_store(first).database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM experiment_runs").fetchone()[0] == 1


def damaged_file(where: StoragePaths) -> None:
    path = weights_path(where.artifacts, SPECS[0])
    path.write_bytes(path.read_bytes()[:-10])


def damaged_row(where: StoragePaths) -> None:
    with Database(where.store).writing() as connection:
        connection.execute("UPDATE trainings SET content = replace(content, '0.4', '0.9')")


def missing_row(where: StoragePaths) -> None:
    with Database(where.store).writing() as connection:
        connection.execute("DELETE FROM trainings")


@pytest.mark.parametrize("damage", [damaged_file, damaged_row, missing_row])
def test_a_damaged_store_is_not_merged_and_leaves_nothing(tmp_path, damage):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    damage(second)
    with pytest.raises(InputError, match=r"1 damaged or missing row\(s\) or file\(s\), so nothing was written"):
        merge_stores(target, second)
    assert not target.artifacts.parent.exists()


def test_checkpoints_may_be_missing(tmp_path):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    checkpoint(open_store(second), SPECS[0], "").unlink()
    assert merge_stores(target, second).runs == 1
