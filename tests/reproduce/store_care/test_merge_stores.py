"""Two stores become one: what is new is added, what is equal stays, and what differs is named."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from reproduce.errors import InputError
from reproduce.storage import StoragePaths, open_store, storage_paths
from reproduce.store_care.merge_stores import ConflictError, merge_stores
from results.records.artifacts import weights_path
from results.records.records import run_fingerprint
from results.records.trials import Trial
from results.store.database import Database
from results.store.schema import FOLD_RESULTS, TRIALS
from results.values import fingerprint_of
from results.whole_files import write_whole
from tests.support.sample_records import some_result, some_run, some_spec, some_summary

SPECS = [some_spec(seed=seed) for seed in range(3)]


def store_at(folder: Path, scores: dict[int, float], wall_time: float = 2.5) -> StoragePaths:
    """A store with a training, a checkpoint and a tested run for each seed, with these validation scores."""
    where = storage_paths(str(folder / "store.sqlite"), None, None, None)
    store = open_store(where)
    store.put_experiment("e" * 32, "some", some_summary(methods={"triplet": "Triplet"}))
    for seed, score in scores.items():
        spec = SPECS[seed]
        store.put_fold(spec, some_result(spec, score, wall_time=wall_time))
        write_whole(weights_path(store.artifacts, spec), f"weights {score}")
        name = run_fingerprint((spec.fingerprint,))
        run = some_run("triplet", seed, score, fingerprint=name, fold_fingerprints=(spec.fingerprint,))
        store.put_run(run)
        store.enlist("e" * 32, "triplet", run)
    return where


IDENTITY = {"method": {"name": "triplet"}, "space": [{"target": "loss.margin"}]}
STUDY = fingerprint_of(IDENTITY)


def study_at(where: StoragePaths, values: list[float], *, pending: bool = False) -> None:
    """A search of the experiment with these scores; the folds of its trials are in the store."""
    store = open_store(where)
    store.searches.enlist("e" * 32, {"triplet": [(STUDY, IDENTITY)]})
    for number, value in enumerate(values):
        spec = some_spec(seed=100 + number)
        store.put_fold(spec, some_result(spec, value))
        trial = Trial(
            number=number,
            setting={"loss.margin": number / 10},
            state="complete",
            score=value,
            fold_scores=(value,),
            trainings=(spec.fingerprint,),
        )
        store.searches.put_trial(STUDY, trial)
    if pending:
        store.searches.put_trial(STUDY, Trial(number=len(values), setting={"loss.margin": 0.9}))


def scores_at(where: StoragePaths) -> list[float | None]:
    return [trial.score for trial in open_store(where).searches.trials(STUDY)]


def test_what_is_new_is_added_with_its_files_and_its_places_in_the_table(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4, 1: 0.5}), store_at(tmp_path / "b", {1: 0.5, 2: 0.6}, 99.0)
    merged = merge_stores(first, second)
    assert (merged.trainings, merged.runs, merged.experiments, merged.files) == (1, 1, 0, 1)
    store = open_store(first)
    assert [record.run for record in store.experiment_runs("e" * 32)] == [0, 1, 2]
    assert weights_path(store.artifacts, SPECS[2]).read_text() == "weights 0.6"
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
    assert weights_path(store.artifacts, SPECS[0]).read_text() == "weights 0.4"


def test_a_test_evaluation_of_trainings_with_other_results_is_left_out(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {0: 0.7})
    open_store(first).put_fold(SPECS[0], some_result(SPECS[0], 0.4))
    merged = merge_stores(first, second, keep_first=True)
    assert (merged.runs, merged.files) == (0, 0)
    assert open_store(first).experiment_runs("e" * 32) == []


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
    (study,) = open_store(first).searches.of_experiment("e" * 32).values()
    assert (study.fingerprint, study.identity) == (STUDY, IDENTITY)
    assert [trial.state for trial in study.trials] == ["complete"]


def test_a_study_with_other_scores_is_a_conflict(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(first, [0.1])
    study_at(second, [0.1, 0.3])
    with Database(second.store).writing() as connection:
        changed = sa.func.replace(TRIALS.c.trial, '"loss.margin":0.0', '"loss.margin":0.5')
        connection.execute(sa.update(TRIALS).values(trial=changed))
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert STUDY in caught.value.conflicts[0].name
    assert merge_stores(first, second, keep_first=True).studies == 0
    assert scores_at(first) == [0.1]


def test_runs_of_another_search_do_not_join_a_row(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {1: 0.5})
    study_at(first, [0.1])
    other = {**IDENTITY, "seed": 1}
    open_store(second).searches.enlist("e" * 32, {"triplet": [(fingerprint_of(other), other)]})
    with pytest.raises(ConflictError) as caught:
        merge_stores(first, second)
    assert caught.value.conflicts[0].reason == "its search is another one"


def test_a_damaged_store_is_not_merged(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {0: 0.4})
    with Database(second.store).writing() as connection:
        connection.execute(sa.update(FOLD_RESULTS).values(best_map_at_r=0.9))
    with pytest.raises(InputError, match="1 damaged record"):
        merge_stores(first, second)
