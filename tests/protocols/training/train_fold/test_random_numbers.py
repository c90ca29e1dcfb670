"""A training draws batches and crops of its own, else intervals are too narrow, and reads only memory that it wrote."""

from contextlib import contextmanager
from itertools import chain, pairwise

import numpy as np
import pytest

from protocols.images.samples import BatchSource
from protocols.machine.torch_state import isolated_random_numbers
from protocols.training import train_fold as training
from protocols.training.train_fold import train_fold
from results.spec.conditions import OptimizerSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import CONTRASTIVE, IMAGES, pattern_dataset, same_weights, settings, toy_fold

SEEDS = (1, 2, 3)


@pytest.fixture
def batches(monkeypatch):
    """The rows and crops of every batch that a training takes."""
    taken = []
    original = BatchSource.training_batch

    def keep(self, rows, generator):
        crops = original(self, rows, generator)
        taken.append((rows.copy(), crops.clone()))
        return crops

    monkeypatch.setattr(BatchSource, "training_batch", keep)
    return taken


def rows_of_all_batches(taken):
    return list(chain.from_iterable(rows.tolist() for rows, _ in taken))


def test_another_seed_cuts_other_crops_from_the_same_batches(dataset, batches, monkeypatch):
    original = training.batches
    monkeypatch.setattr(training, "batches", lambda labels, size, m, seed, **how: original(labels, size, m, 0, **how))
    rows, crops = [], []
    for seed in (*SEEDS, SEEDS[0]):
        batches.clear()
        train_fold(*toy_fold(dataset, seed=seed))
        rows.append(rows_of_all_batches(batches))
        crops.append(np.concatenate([images.numpy() for _, images in batches]))
    assert all(one == other for one, other in pairwise(rows))
    assert not any((one == other).all() for one, other in pairwise(crops[:-1]))
    assert (crops[0] != crops[2]).any()
    assert (crops[-1] == crops[0]).all()


@pytest.mark.parametrize(
    ("trunk", "side"), [("small_conv", 8), ("small_conv", 32), ("bn_inception", 32), ("efficientnet_lite0", 32)]
)
def test_filled_memory_changes_nothing(tmp_path, trunk, side, monkeypatch):
    """A kernel that leaves a part of its result unset would give NaN where the memory is filled."""
    dataset = pattern_dataset(tmp_path, side=side)
    short = settings(lr=1e-4, max_epochs=1, optimizer=OptimizerSettings(name="Adam", lr=1e-4, arguments={}))
    images = IMAGES.model_copy(update={"crop": side})
    spec, data = toy_fold(dataset, CONTRASTIVE, short, images=images, trunk=TrunkSpec(name=trunk, weights="random"))

    @contextmanager
    def filled(device, *, fill_memory=False):
        with isolated_random_numbers(device, fill_memory=True):
            yield

    plain = train_fold(spec, data)
    monkeypatch.setattr(training, "isolated_random_numbers", filled)
    again = train_fold(spec, data)
    assert plain.result.curve == again.result.curve
    assert same_weights(plain.weights, again.weights)
    assert plain.result.status == "ok"
