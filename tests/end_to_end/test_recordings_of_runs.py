"""Recordings that an experiment asks for: which trainings make them."""

import pytest

from reproduce.storage import open_store, storage_paths
from results.records.artifacts import Recording, recording_path, weights_path
from results.spec.experiment_spec import RecordingSettings
from tests.support.labs import reproduction, run_here
from tests.support.sample_records import some_summary
from tests.support.small_setup import COSFACE, small_setup

ASKED = RecordingSettings(epochs=(0, 1), classes=3)


@pytest.fixture
def setup(tmp_path):
    return small_setup(tmp_path / "cache")


@pytest.fixture
def where(tmp_path):
    return storage_paths(str(tmp_path / "store.sqlite"), tmp_path / "artifacts", None, None)


def run(setup, store, recordings, work):
    return run_here(setup, store, {"cosface": work}, experiment="experiment", recordings=recordings)


def test_the_trainings_of_reproductions_are_recorded(setup, where):
    store = open_store(where)
    store.put_experiment("experiment", "some", some_summary(methods={"cosface": "CosFace"}))
    run(setup, store, ASKED, reproduction(setup, COSFACE))
    for spec in setup.fold_specs(COSFACE, "reproduction", 0):
        recording = Recording.load(recording_path(weights_path(store.artifacts, spec)))
        assert [shot.epoch for shot in recording.snapshots] == [0, 1]
        assert recording.snapshots[1].proxies.shape == (3, 8)


def test_a_training_in_the_store_is_not_repeated_for_a_recording(setup, where):
    store = open_store(where)
    store.put_experiment("experiment", "some", some_summary(methods={"cosface": "CosFace"}))
    (before,) = run(setup, store, None, reproduction(setup, COSFACE))["cosface"]
    (after,) = run(setup, store, ASKED, reproduction(setup, COSFACE))["cosface"]
    assert before == after
    assert not list(where.artifacts.rglob("*recording*"))
