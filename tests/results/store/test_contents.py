"""The counts that the database makes equal those of the parsed records."""

import pytest

from results.records.records import RunRecord
from results.store.contents import StoreContents
from results.store.store import Store
from tests.support.sample_records import some_result, some_run, some_spec, some_summary


@pytest.fixture
def store(tmp_path):
    """Two experiments, of which one has runs; trainings of three groups, of which one has no validation classes."""
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}", tmp_path / "artifacts")
    store.put_experiment("a" * 32, "proxy_gml_table1", some_summary())
    store.put_experiment("b" * 32, "second", some_summary())
    for seed, (dataset, score, status) in enumerate(
        [("glyphs", 0.5, "ok"), ("glyphs", 0.7, "nan"), ("cub200", 0.2, "ok"), ("Zoo", None, "ok")]
    ):
        spec = some_spec(seed=seed, dataset=dataset)
        changes = {"best_map_at_r": score, "status": status, "wall_time": 100.0 * (seed + 1)}
        store.put_fold(spec, some_result(spec, **changes))
    for number in range(3):
        run = some_run("triplet", number)
        store.put_run(run)
        store.enlist("a" * 32, run.method, run)
    store.put_run(some_run("margin", 0))
    for number in range(7):
        store.put_failure("f" * 32, f"reason {number}")
    return store


def test_counts_equal_those_of_the_parsed_records(store):
    contents, folds = store.contents(), store.folds()
    assert contents.test_evaluations == len(store.runs()) == 4
    assert contents.failures == len(store.failures()) == 7
    assert [failure.reason for failure in contents.latest_failures] == list(store.failures().tail(5)["reason"])
    for group, (key, rows) in zip(contents.trainings, folds.groupby(["dataset", "method"]), strict=True):
        assert (group.dataset, group.method) == key
        assert (group.trainings, group.diverged) == (len(rows), (rows["status"] == "nan").sum())
        assert group.seconds == pytest.approx(rows["wall_time"].sum())
        assert group.best_map_at_r == pytest.approx(rows["best_map_at_r"].max()) or rows["best_map_at_r"].isna().all()
    assert contents.trainings[0].best_map_at_r is None


def test_experiments_are_listed_as_by_the_parsed_records(store):
    experiments = store.experiments()
    listed = [(started.name, started.fingerprint, started.last_started) for started in store.contents().experiments]
    assert listed == list(experiments[["name", "fingerprint", "last_started"]].itertuples(index=False, name=None))
    for started in store.contents().experiments:
        assert started.runs == len(store.experiment_runs(started.fingerprint))


def test_an_empty_store_holds_nothing(tmp_path):
    empty = Store(f"sqlite:///{tmp_path / 'store.sqlite'}", tmp_path)
    assert empty.contents() == StoreContents((), (), 0, 0, ())


def test_counting_parses_no_record(store, monkeypatch):
    monkeypatch.setattr(RunRecord, "model_validate_json", lambda *_: pytest.fail("a record was parsed"))
    assert store.contents().test_evaluations == 4
