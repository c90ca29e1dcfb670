"""Two stores become one: what is new is added, what is equal stays, and what differs is named."""

import os
from pathlib import Path
from typing import Any

import pytest

from reproduce.errors import InputError
from reproduce.outputs.store_files import export_store, import_store, merge_stores
from reproduce.storage import StoragePaths, open_store, storage_paths
from results.records.artifacts import weights_path
from results.store.database import Database
from results.values import fingerprint_of
from tests.support.sample_records import changed_plan, scores, some_plan, some_result, some_run, some_spec
from tests.support.small_stores import EXPERIMENT, IDENTITY, STUDY, checkpoint, store_at, study_at

SPECS = [some_spec(seed=number) for number in range(3)]


def scores_at(where: StoragePaths) -> list[float | None]:
    return [trial.score for trial in open_store(where).searches.trials(STUDY)]


def added(first: StoragePaths, second: StoragePaths) -> list[int]:
    """Numbers of trainings, test evaluations, experiments, trials and files."""
    return list(merge_stores(first, second).values())


def conflicts(first: StoragePaths, second: StoragePaths) -> list[str]:
    """What differs, where nothing is added."""
    with pytest.raises(InputError, match=r"conflicts?, so nothing was imported") as error:
        merge_stores(first, second)
    return str(error.value).partition("different outcomes in ")[2].split("; ")


def test_what_is_new_is_added_with_its_files_and_its_places_in_the_table(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4, 1: 0.5}), store_at(tmp_path / "b", {1: 0.5, 2: 0.6}, 99.0)
    open_store(second).put_failure("f" * 32, "worker died")
    assert added(first, second) == [1, 1, 1, 0, 1]
    store = open_store(first)
    assert [record.run for record in store.experiment_runs(EXPERIMENT)] == [0, 1, 2]
    new = weights_path(store.artifacts, SPECS[2])
    assert new.read_bytes() == weights_path(second.artifacts, SPECS[2]).read_bytes()
    assert store.fold_result(SPECS[1].fingerprint).wall_time == 2.5, "equal but for its duration"
    assert added(first, second) == [0, 0, 0, 0, 0]
    assert len(store.table("failures")) == 1


def test_files_that_a_copy_dated_before_1980_are_exported(tmp_path):
    where = store_at(tmp_path / "a", {0: 0.4})
    for weights in where.artifacts.rglob("*"):
        os.utime(weights, (0, 0))
    export_store(where, tmp_path / "all.zip", checkpoints=True)
    into = storage_paths(str(tmp_path / "b" / "store.sqlite"))
    assert import_store(tmp_path / "all.zip", into)["files"] == 1


def test_different_results_are_named_and_nothing_is_written(tmp_path):
    first, second = store_at(tmp_path / "a", {0: 0.4}), store_at(tmp_path / "b", {0: 0.7, 2: 0.6})
    assert f"{SPECS[0].fingerprint} of trainings" in conflicts(first, second)
    assert open_store(first).finished_folds([SPECS[2].fingerprint]) == set()
    assert not weights_path(first.artifacts, SPECS[2]).exists()


def test_a_search_with_more_trials_continues_the_other_one(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(first, [0.1], pending=True)
    study_at(second, [0.1, 0.2, 0.3])
    assert added(first, second)[3] == 2
    assert scores_at(first) == [0.1, 0.2, 0.3]
    assert added(first, second)[3] == added(second, first)[3] == 0
    third = store_at(tmp_path / "c", {})
    assert added(third, first)[3] == 3
    (study,) = open_store(third).searches.of_experiment(EXPERIMENT).values()
    assert (study.fingerprint, study.identity) == (STUDY, IDENTITY)


def test_a_search_with_other_scores_is_a_conflict(tmp_path):
    first, second = store_at(tmp_path / "a", {}), store_at(tmp_path / "b", {})
    study_at(first, [0.1])
    study_at(second, [0.15, 0.3])
    assert f"{STUDY} 0 of trials" in conflicts(first, second)
    assert scores_at(first) == [0.1]


def searched_at(folder: Path, runs: list[int], seeds: tuple[int, ...] = (0, 1), **plan: Any) -> StoragePaths:
    """A store of an experiment with a search for each seed, and runs of them: the tens of a number are its search."""
    where = store_at(folder, {})
    store = open_store(where)
    store.put_experiment(EXPERIMENT, "some", changed_plan(some_plan(methods={"triplet": "Triplet"}), **plan))
    studies = [(fingerprint_of(identity), identity) for identity in ({**IDENTITY, "seed": seed} for seed in seeds)]
    store.searches.enlist(EXPERIMENT, {"triplet": studies})
    for run in runs:
        spec = some_spec(seed=run)
        store.put_fold(some_result(spec, 0.4))
        store.put_run(record := some_run(search=run // 10, run=run % 10, specs=(spec,), fold_scores=(scores(0.4),)))
        store.enlist(EXPERIMENT, "triplet", record, studies[run // 10][0])
    return where


def listed_in(*stores: StoragePaths) -> list[int]:
    """The runs that are listed where the first store gets the rows of the others."""
    for other in stores[1:]:
        merge_stores(stores[0], other)
    return [10 * run.search + run.run for run in open_store(stores[0]).experiment_runs(EXPERIMENT)]


def both_ways(tmp_path: Path, first: StoragePaths, second: StoragePaths) -> list[list[int]]:
    """The runs that are listed where stores become one in either order."""
    empty = [storage_paths(str(tmp_path / name / "store.sqlite")) for name in ("there", "back")]
    return [listed_in(empty[0], first, second), listed_in(empty[1], second, first)]


def test_runs_of_one_search_from_two_machines_are_listed_together(tmp_path):
    first, second = searched_at(tmp_path / "a", [0, 1]), searched_at(tmp_path / "b", [1, 2, 10])
    assert both_ways(tmp_path, first, second) == [[0, 1, 2, 10]] * 2


def test_runs_of_another_search_do_not_join_a_row(tmp_path):
    first, second = searched_at(tmp_path / "a", [0, 1, 10, 11]), searched_at(tmp_path / "b", [2, 10], seeds=(2, 1))
    assert both_ways(tmp_path, first, second) == [[2, 10, 11]] * 2


@pytest.mark.parametrize(
    "before",
    [
        {"trials": {"triplet": 5}},
        {"ranges": {"triplet": {"loss.margin": {"scale": "linear", "low": 0.0, "high": 1.0}}}},
    ],
)
def test_runs_of_an_earlier_round_do_not_come_back(tmp_path, before):
    first, second = searched_at(tmp_path / "a", [0, 1, 10, 11], **before), searched_at(tmp_path / "b", [0])
    assert both_ways(tmp_path, first, second) == [[0]] * 2


def test_runs_of_a_changed_card_without_a_search_do_not_join_those_of_before(tmp_path):
    first = store_at(tmp_path / "a", {0: 0.4, 1: 0.5})
    second = store_at(tmp_path / "b", {})
    record = some_run(fingerprint="of the changed card", specs=(some_spec(seed=9),))
    open_store(second).put_fold(some_result(some_spec(seed=9)))
    open_store(second).put_run(record)
    open_store(second).enlist(EXPERIMENT, "triplet", record)
    assert both_ways(tmp_path, first, second) == [[0]] * 2


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
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"))
    damage(second)
    with pytest.raises(InputError, match=r"1 fault, so nothing was written"):
        merge_stores(target, second)
    assert not target.artifacts.parent.exists()


def test_checkpoints_may_be_missing(tmp_path):
    second, target = store_at(tmp_path / "b", {0: 0.4}), storage_paths(str(tmp_path / "new/s.sqlite"))
    checkpoint(open_store(second), SPECS[0], "").unlink()
    assert added(target, second)[1] == 1
