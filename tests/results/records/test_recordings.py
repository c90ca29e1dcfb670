"""Recordings of embeddings during a training, and their files."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from results.records.artifacts import Recording, Snapshot, recording_path
from results.spec.data_choice import DataChoice
from results.spec.experiment_spec import Experiment, RecordingSettings
from results.spec.trunk_spec import TrunkSpec

TRUNK = TrunkSpec(name="small_conv", weights="random")


def snapshot(epoch: int, problem: int = -1) -> Snapshot:
    vectors = np.full((3, 2), epoch, np.float32)
    none = np.empty((0, 2), np.float32)
    return Snapshot(epoch, problem, vectors, np.arange(3), vectors[:1], np.arange(1), none, 0.5, 0.1, 0.9)


def experiment(**changes: object) -> Experiment:
    fields = {"title": "T", "dataset": DataChoice(name="glyphs"), "methods": ("triplet",), "trunk": TRUNK, **changes}
    return Experiment.model_validate(fields)


def test_a_recording_is_read_as_it_was_saved(tmp_path: Path) -> None:
    path = recording_path(tmp_path / "weights.pt")
    saved = Recording(tuple(snapshot(epoch) for epoch in range(11)))
    saved.save(path)
    loaded = Recording.load(path)
    assert [shot.epoch for shot in loaded.snapshots] == list(range(11))
    for before, after in zip(saved.snapshots, loaded.snapshots, strict=True):
        for field in fields(Snapshot):
            np.testing.assert_array_equal(getattr(before, field.name), getattr(after, field.name))
            assert type(getattr(before, field.name)) is type(getattr(after, field.name))


def test_an_empty_recording_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "empty.npz"
    Recording(()).save(path)
    assert Recording.load(path) == Recording(())


def test_snapshots_are_asked_for_by_epoch_or_by_problem() -> None:
    recording = Recording((snapshot(0), snapshot(4, problem=1), snapshot(2, problem=0), snapshot(5)))
    asked = recording.at_epoch(5)
    assert asked is not None
    assert asked.epoch == 5
    # Epoch 2 has the solution of a problem only.
    assert recording.at_epoch(2) is None
    assert [(shot.problem, shot.epoch) for shot in recording.problems] == [(0, 2), (1, 4)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recordings": {"images": "training"}}, "needs epochs"),
        (
            {"protocol": "standard", "recordings": {"images": "validation", "epochs": [1]}},
            "no validation images",
        ),
    ],
)
def test_recordings_that_cannot_be_made_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        experiment(**settings)


def test_recordings_are_part_of_the_experiments_fingerprint() -> None:
    recorded = experiment(recordings=RecordingSettings(epochs=(1,)))
    assert Experiment.model_validate_json(recorded.model_dump_json()) == recorded
    assert recorded.fingerprint("some", "d" * 32) != experiment().fingerprint("some", "d" * 32)
