"""Finds stored experiments by NAME, NAME/PANEL, path, and file with panels."""

import pytest

from reproduce.errors import InputError
from reproduce.outputs.find_runs import find_experiment, find_experiments, find_run, latest_experiment, stored_names
from results.store.store import Store
from tests.support.sample_records import some_run, some_summary

NAMES = ("quickstart", "both/wide", "both/small", "proxy_gml_table2/cub", "quickstart_too")


@pytest.fixture
def store(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    for name in NAMES:
        store.put_experiment(f"id of {name}", name, some_summary())
    return store


def names(experiments):
    return [experiment.name for experiment in experiments]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["quickstart"], ["quickstart"]),
        (["folder/quickstart.yaml"], ["quickstart"]),
        (["both"], ["both/small", "both/wide"]),
        (["both.yaml"], ["both/small", "both/wide"]),
        (["both/wide"], ["both/wide"]),
        (["folder/both.yml/wide"], ["both/wide"]),
        (["both/wide", "both", "quickstart"], ["both/wide", "both/small", "quickstart"]),
        (["proxy_gml_table2/cub"], ["proxy_gml_table2/cub"]),
    ],
)
def test_names_panels_and_paths_are_found(store, asked, expected):
    assert names(find_experiments(store, asked)) == expected


def test_the_latest_experiment_of_a_name_is_found(store):
    assert find_experiment(store, "quickstart").fingerprint == "id of quickstart"
    store.put_experiment("newer", "quickstart", some_summary())
    assert find_experiment(store, "quickstart").fingerprint == "newer"
    assert latest_experiment(store).name == "quickstart"


def test_an_unknown_experiment_gives_one_line_with_the_stored_names(store):
    held = "both/small, both/wide, proxy_gml_table2/cub, quickstart, quickstart_too"
    for look_up in (lambda: find_experiments(store, ["quickstart", "quick"]), lambda: find_experiment(store, "quick")):
        with pytest.raises(InputError) as error:
            look_up()
        assert str(error.value) == f"no experiment 'quick' in {store.url}; it holds: {held}"
    with pytest.raises(InputError, match=r"quickstart_too; try another$"):
        find_experiments(store, ["both/none"], "; try another")
    assert stored_names(store) == held.split(", ")


def test_one_experiment_must_be_named_with_its_panel(store):
    assert find_experiment(store, "both/wide").fingerprint == "id of both/wide"
    with pytest.raises(InputError, match=r"^both has several panels; use one of both/small, both/wide$"):
        find_experiment(store, "both")


def test_an_empty_store_gives_one_line(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/empty.sqlite", tmp_path)
    with pytest.raises(InputError, match=r"holds no experiment yet; make one with `reproduce run`"):
        latest_experiment(store)
    with pytest.raises(InputError, match=r"it holds: none$"):
        find_experiments(store, ["quickstart"])


def test_a_run_of_a_repeated_search_is_found_by_both_numbers(store):
    for search in range(2):
        run = some_run(run=0, search=search, fingerprint=f"of search {search}")
        store.put_run(run)
        store.enlist("id of quickstart", "triplet", run)
    assert find_run(store, "quickstart", "triplet", 0).record.fingerprint == "of search 0"
    second = find_run(store, "quickstart", "triplet", 0, 1)
    assert (second.record.fingerprint, second.called) == ("of search 1", "quickstart, triplet, run 0 of search 1")
    with pytest.raises(InputError, match="triplet: there is no search 2; there are 2, counted from 0"):
        find_run(store, "quickstart", "triplet", 0, 2)
