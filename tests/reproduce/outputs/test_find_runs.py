"""Finds stored experiments by NAME, NAME/PANEL, path, and file with panels."""

import pytest

from reproduce.errors import InputError
from reproduce.outputs.find_runs import find_experiment, find_experiments, find_runs, later_starts
from results.store.store import Store
from tests.support.command_line import one_line
from tests.support.sample_records import put_experiment, some_plan, some_run

NAMES = ("quickstart", "both/wide", "both/small", "proxy_gml_table2/cub", "quickstart_too")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    for name in NAMES:
        store.put_experiment(f"id of {name}", name, some_plan())
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


def test_an_unknown_experiment_gives_one_line_with_the_nearest(store):
    for look_up in (lambda: find_experiments(store, ["quickstart", "quick"]), lambda: find_experiment(store, "quick")):
        with one_line(f"no experiment 'quick' in {store.url}; did you mean quickstart? `reproduce status` lists all"):
            look_up()
    with pytest.raises(InputError, match=r"lists all; try another$"):
        find_experiments(store, ["both/none"], "; try another")


def test_one_experiment_must_be_named_with_its_panel(store):
    assert find_experiment(store, "both/wide").fingerprint == "id of both/wide"
    with pytest.raises(InputError, match=r"^both has several panels; use one of both/small, both/wide$"):
        find_experiment(store, "both")
    put_experiment(store, "id of both/wide", "both/wide", some_plan(), [some_run()])
    assert find_experiment(store, "both").name == "both/wide", "the only one with runs"
    with pytest.raises(InputError, match=r"there is no tested run in .* yet; continue with `reproduce run both/small`"):
        find_runs(store, "both/small", "contrastive")


def test_a_run_of_a_repeated_search_is_found_by_both_numbers(store):
    runs = [some_run(run=0, search=search, fingerprint="another") for search in range(2)]
    put_experiment(store, "id of quickstart", "quickstart", some_plan(), runs)
    assert find_runs(store, "quickstart", "triplet", 1, 1)[0].record == runs[0]
    second = find_runs(store, "quickstart", "triplet", 2, 1)[0]
    assert (second.record, second.called) == (runs[1], "quickstart, triplet, run 1 of search 2")
    with pytest.raises(
        InputError, match=r"no tested run 1 of search 3 of 'triplet'; there are .*triplet \(search 2, run 1\)"
    ):
        find_runs(store, "quickstart", "triplet", 3)


IDENTITIES = ("abcd1234" + "0" * 24, "abcd5678" + "0" * 24, "e" * 32)


@pytest.fixture
def of_one_name(tmp_path):
    """A store with three experiments of one name, which differ in methods; the last one is the latest."""
    store = Store(tmp_path / "one.sqlite", tmp_path)
    for number, fingerprint in enumerate(IDENTITIES, start=1):
        runs = [some_run(method, fingerprint=f"{fingerprint[:8]}-{method}") for method in "abc"[:number]]
        methods = {run.method: "" for run in runs}
        put_experiment(store, fingerprint, "mine", some_plan(methods=methods, runs=dict.fromkeys(methods, 1)), runs)
    return store


def test_an_identity_or_its_beginning_names_one_experiment(of_one_name):
    for asked, expected in (("mine", 2), (IDENTITIES[0], 0), (IDENTITIES[1][:12], 1), ("abcd5", 1), ("eeee", 2)):
        assert find_experiment(of_one_name, asked).fingerprint == IDENTITIES[expected]
    for unclear in ("abcd", "eee"):
        with pytest.raises(InputError, match=f"no experiment '{unclear}'"):
            find_experiments(of_one_name, [unclear])
    both = find_experiments(of_one_name, ["abcd1", "mine", "eeeee"])
    assert [one.fingerprint for one in both] == [IDENTITIES[0], IDENTITIES[2]]
    assert find_runs(of_one_name, "abcd5", "b")[0].record == some_run("b", fingerprint="abcd5678-b")
    of_one_name.put_experiment("f" * 32, "eeee", some_plan())
    assert find_experiment(of_one_name, "eeee").fingerprint == "f" * 32, "a name comes first"


def test_an_interrupted_run_does_not_hide_the_finished_one(of_one_name):
    interrupted = "1" * 32
    planned = {"methods": dict.fromkeys("abcd", ""), "runs": dict.fromkeys("abcd", 1)}
    put_experiment(of_one_name, interrupted, "mine", some_plan(**planned), [some_run("a", fingerprint="1-a")])
    shown = find_experiments(of_one_name, ["mine"])
    assert [one.fingerprint for one in shown] == [IDENTITIES[2]]
    assert of_one_name.latest_experiments() == {"mine": IDENTITIES[2]}
    (said,) = later_starts(of_one_name, shown)
    assert f"the finished experiment {IDENTITIES[2][:12]}; {interrupted[:12]} was started later" in said
    assert said.endswith(f"has 1 of 4 runs; to see it, give {interrupted[:12]} in place of mine")
    (unfinished,) = find_experiments(of_one_name, [interrupted])
    assert later_starts(of_one_name, [unfinished]) == []
    for method in "bcd":
        of_one_name.put_run(run := some_run(method, fingerprint=f"1-{method}"))
        of_one_name.enlist(interrupted, method, run)
    assert find_experiment(of_one_name, "mine").fingerprint == interrupted
