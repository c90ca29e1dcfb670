"""`reproduce status` prints the counts, the experiments, the trainings and the last failures of a store."""

from io import StringIO

import pytest
from rich.console import Console

from reproduce.commands.status import show_status
from results.store.store import Store
from tests.support.sample_records import some_result, some_spec, some_summary


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path / 'store.sqlite'}", tmp_path / "artifacts")


def shown(store):
    """What `status` prints of a store."""
    written = StringIO()
    show_status(store, Console(file=written, width=140))
    return written.getvalue()


def test_an_empty_store_has_no_tables(store):
    assert shown(store).splitlines() == [
        f"{store.url}: 0 experiment(s), 0 training(s), 0 test evaluation(s), 0 failure(s)"
    ]


def test_trainings_are_summed_by_method(store):
    for seed, status in enumerate(["ok", "nan"]):
        spec = some_spec(seed=seed)
        store.put_fold(spec, some_result(spec, map_at_r=0.25 + seed, status=status, wall_time=3600.0))
    cells = [cell.strip() for cell in shown(store).splitlines()[-2].split("│")[1:-1]]
    assert cells == ["glyphs", "triplet", "2", "1", "1.2500", "2.00"]


def test_trainings_without_validation_classes_have_no_best_score(store):
    spec = some_spec()
    store.put_fold(spec, some_result(spec, best_map_at_r=None))
    assert "│ nan " in shown(store)


def test_the_last_five_failures_are_shown_in_order(store):
    store.put_experiment("a" * 32, "some", some_summary())
    for number in range(7):
        store.put_failure("f" * 32, f"reason {number}")
    lines = [line for line in shown(store).splitlines() if line.startswith("failure at")]
    assert [line[-8:] for line in lines] == [f"reason {number}" for number in range(2, 7)]


def test_an_experiment_has_its_identity_methods_and_trials(store):
    methods = {"triplet": "Triplet", "contrastive": "Contrastive"}
    store.put_experiment("ab" * 16, "some", some_summary(methods=methods, trials=7))
    store.put_experiment("cd" * 16, "some", some_summary(methods={"triplet": "Triplet"}, trials=9))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown(store).splitlines() if "some" in line]
    assert [row[:4] for row in rows] == [
        ["some", "cdcdcdcdcdcd", "triplet", "1 x 9"],
        ["some", "abababababab", "triplet, contrastive", "1 x 7"],
    ]
