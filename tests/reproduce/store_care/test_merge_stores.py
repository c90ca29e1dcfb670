"""Two stores become one: what is new is added, what is equal stays, and what differs is named."""

import pytest
import sqlalchemy as sa

from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store, storage_paths
from reproduce.store_care.merge_stores import ConflictError, merge_stores
from results.records.artifacts import weights_path
from results.store.database import Database
from results.store.schema import FOLD_RESULTS
from results.values import fingerprint_of
from tests.support.sound_store import (
    EXPERIMENT,
    IDENTITY,
    STUDY,
    score_of_checkpoint,
    sound_result,
    sound_run,
    sound_spec,
    store_at,
    study_at,
)

SPECS = [sound_spec(number) for number in range(3)]


def scores_at(where: StoragePaths) -> list[float | None]:
    return [trial.score for trial in open_store(where).searches.trials(STUDY)]


def test_what_is_new_is_added_with_its_files_and_its_places_in_the_table(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4, 1: 0.5}), store_at(tmp_path / "b", {1: 0.5, 2: 0.6}, 99.0)
    merged = merge_stores(first, second)
    assert (merged.trainings, merged.runs, merged.experiments, merged.files) == (1, 1, 0, 1)
    store = open_store(first)
    assert [record.run for record in store.experiment_runs(EXPERIMENT)] == [0, 1, 2]
    assert score_of_checkpoint(store, SPECS[2]) == 0.6
    assert store.fold_result(SPECS[1].fingerprint).wall_time == 2.5
    again = merge_stores(first, second)
    assert (again.trainings, again.runs, again.files) == (0, 0, 0)


def test_different_results_are_named_and_nothing_is_written(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {0: 0.7, 2: 0.6})
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert SPECS[0].fingerprint in caught.value.conflicts[0].name
    assert "best_map_at_r" in caught.value.conflicts[0].reason
    assert open_store(first).finished_folds([SPECS[2].fingerprint]) == set()


def test_the_first_stores_version_can_be_kept(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {0: 0.7, 2: 0.6})
    merged = merge_stores(first, second, keep_first=True)
    store = open_store(first)
    assert merged.trainings == 1
    assert store.fold_result(SPECS[0].fingerprint).best_map_at_r == 0.4
    assert score_of_checkpoint(store, SPECS[0]) == 0.4


def test_a_test_evaluation_of_trainings_with_other_results_is_left_out(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {0: 0.7})
    open_store(first).put_fold(SPECS[0], sound_result(SPECS[0], 0.4))
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
    other = {**IDENTITY, "version": 2}
    open_store(second).searches.enlist(EXPERIMENT, {"triplet": [(fingerprint_of(other), other)]})
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert caught.value.conflicts[0].reason == "its search is another one"


def test_a_damaged_store_is_not_merged(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {0: 0.4})
    with Database(second.store).writing() as connection:
        connection.execute(sa.update(FOLD_RESULTS).values(best_map_at_r=0.9))
    with pytest.raises(InputError, match="1 damaged or missing record"):
        merge_stores(first, second)


def without_a_trace(where: StoragePaths) -> None:
    """Nothing was made at these paths, not even a folder."""
    assert not where.artifacts.parent.exists()


def test_a_refused_merge_makes_no_store(tmp_path):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    whole = weights_path(second.artifacts, SPECS[0]).read_bytes()
    weights_path(second.artifacts, SPECS[0]).write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"1 damaged or missing record.*cannot be loaded"):
        merge_stores(target, second)
    without_a_trace(target)
    weights_path(second.artifacts, SPECS[0]).write_bytes(whole)
    assert merge_stores(target, second).files == 1


def test_a_store_that_lacks_a_training_is_not_merged(tmp_path):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    with Database(second.store).writing() as connection:
        connection.execute(sa.delete(FOLD_RESULTS))
    with pytest.raises(InputError, match="missing record"):
        merge_stores(target, second)
    without_a_trace(target)


def test_a_conflict_inside_of_the_other_store_makes_no_store(tmp_path):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    # The same trainings of a method without a search, whose card has changed between two runs.
    spec, store = sound_spec(1, margin=0.3), open_store(second)
    run = sound_run(1, 0.5, spec=spec, hyperparameters={"loss.margin": 0.3})
    store.put_fold(spec, sound_result(spec, 0.5))
    store.put_run(run)
    store.enlist(EXPERIMENT, "triplet", run)
    with pytest.raises(ConflictError):
        merge_stores(target, second)
    without_a_trace(target)
