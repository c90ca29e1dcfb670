"""The large store of the benchmark has records that the store's own readers accept."""

from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.benchmarks.big_store import enlarge
from tests.support.sample_records import some_result, some_run, some_spec, some_summary


def test_copies_have_fingerprints_of_their_own_and_the_run_stays_the_latest(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    specs = [some_spec(fold=fold, seed=fold) for fold in range(4)]
    for spec in specs:
        store.put_fold(spec, some_result(spec))
    record = some_run(fold_fingerprints=tuple(spec.fingerprint for spec in specs))
    store.put_run(record)
    store.put_experiment("f", "some", some_summary(methods={"triplet": "Triplet"}))
    store.enlist("f", "triplet", record)
    enlarge(store, trainings=100, runs=400)
    contents = store.contents()
    assert contents.test_evaluations == 400
    assert sum(group.trainings for group in contents.trainings) == 4 + 4 * 399
    assert next(iter(store.latest_experiments())) == "some"
    copied = MeasuredExperiment.from_store(store, store.latest_experiments()["copy_0"], trainings=True)
    assert len(copied.records) == 310
    assert len(copied.trainings) == 4 * 310
    assert all(spec.fingerprint == name == result.fingerprint for name, (spec, result) in copied.trainings.items())
