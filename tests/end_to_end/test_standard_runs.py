"""Runs of the protocol `standard`, carried out: the last epoch's score, also after an interruption."""

from functools import partial

import pytest

from protocols.datasets.splits import named_split
from protocols.protocol_registry import PROTOCOLS
from protocols.standard import choices
from protocols.study import RunningSearch
from reproduce.run.tasks import EvaluateTask
from results.store.store import Store
from tests.support.labs import InProcess, run_here
from tests.support.small_setup import COSFACE, UNTRAINED, small_setup, with_changes
from tests.support.studies import study_of

RUNS = 2


class TestsFail(InProcess):
    """Carries out trainings, and fails at every test."""

    __test__ = False

    def submit(self, task):
        if isinstance(task, EvaluateTask):
            raise KeyboardInterrupt
        return super().submit(task)


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    whole = small_setup(tmp_path_factory.mktemp("cache"), split=named_split("conventional", 16, 8), folds=4)
    training = whole.conditions.training.model_copy(update={"max_epochs": 3, "iterations_per_epoch": None})
    return with_changes(whole, training=training)


def given(setup, method):
    return study_of(setup, method, reproductions=RUNS, trials=0)


def open_store(folder):
    return Store(f"sqlite:///{folder}/store.sqlite", folder)


def run(setup, method, store, executor=None):
    work = {method.name: partial(PROTOCOLS["standard"].run, RunningSearch(given(setup, method)))}
    return run_here(setup, store, work, executor, test_curves=True)[method.name]


@pytest.fixture(scope="module")
def finished(setup, tmp_path_factory):
    store = open_store(tmp_path_factory.mktemp("finished"))
    return store, run(setup, COSFACE, store)


def test_every_run_has_the_score_of_the_last_epoch(finished, setup):
    store, records = finished
    assert len(records) == RUNS
    for record in records:
        (name,) = record.fold_fingerprints
        points = store.test_curve(name).points
        assert [point.iteration for point in points] == [0, 4, 8, 12]
        assert record.last_epoch == points[-1].scores
        assert record.separated in [point.scores for point in points[1:]]
        assert record.chosen_by == tuple(spec.fingerprint for spec in choices(given(setup, COSFACE), {})[record.run])
    assert len(store.table("folds")) == RUNS * (4 + 1)


def test_a_run_that_was_stopped_before_its_test_gets_the_same_record(finished, setup, tmp_path):
    _, expected = finished
    store = open_store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(setup, COSFACE, store, TestsFail())
    assert store.count("runs") == 0
    trained = len(store.table("folds"))
    resumed = run(setup, COSFACE, store)
    assert len(store.table("folds")) == trained
    assert [record.last_epoch for record in resumed] == [record.last_epoch for record in expected]
    assert [record.separated for record in resumed] == [record.separated for record in expected]


def test_the_untrained_trunk_has_no_last_epoch(setup, tmp_path):
    records = run(setup, UNTRAINED, open_store(tmp_path))
    assert [record.last_epoch for record in records] == [None] * RUNS
