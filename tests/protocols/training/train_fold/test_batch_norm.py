"""Batch normalisation in a training: what the momentum changes, and what a warm-up leaves alone."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import model_of
from protocols.trunks.trunk_registry import TRUNKS
from results.spec.trunk_spec import TrunkSpec
from results.values import derive_seed
from tests.support.toys import CONTRASTIVE, settings, toy_fold

STATISTICS = ["trunk.1.running_mean", "trunk.1.running_var"]
SCALE_AND_SHIFT = ["trunk.1.weight", "trunk.1.bias"]


class BatchNormTrunk(nn.Sequential):
    """One convolution, batch normalisation and ReLU: grey images (n, 1, h, w) to features (n, 8, h / 2, w / 2)."""

    features = 8

    def __init__(self):
        super().__init__(nn.Conv2d(1, self.features, 3, 2, 1), nn.BatchNorm2d(self.features), nn.ReLU())


@pytest.fixture(autouse=True)
def _trunk_with_batch_norm(monkeypatch):
    monkeypatch.setitem(TRUNKS, "small_conv", replace(TRUNKS["small_conv"], build=BatchNormTrunk))


def trained(dataset, *, batch_norm, momentum=None, warmup_steps=0):
    """A training of one epoch, with the weights that it started from."""
    trunk = TrunkSpec.model_validate(
        {"name": "small_conv", "weights": "random", "batch_norm": batch_norm, "batch_norm_momentum": momentum}
    )
    method = CONTRASTIVE.at({"warmup.steps": warmup_steps})
    spec, data = toy_fold(dataset, method, settings(max_epochs=1, iterations_per_epoch=4), trunk=trunk)
    torch.manual_seed(derive_seed("network", spec.seed))
    return train_fold(spec, data), model_of(spec).state_dict()


def changed(fold, start, keys):
    assert fold.result.best_iteration == 4, "the weights must be those of the last step"
    return [not torch.equal(fold.weights[key], start[key]) for key in keys]


def test_the_momentum_changes_the_running_statistics_and_no_gradient(dataset):
    """In training, batches are normalised by their own statistics; the running ones count in evaluation only."""
    (own, _), (chosen, _) = (trained(dataset, batch_norm="training", momentum=m) for m in (None, 0.9))
    assert [point.loss for point in own.result.curve] == [point.loss for point in chosen.result.curve]
    for key in own.weights:
        assert torch.equal(own.weights[key], chosen.weights[key]) == (key not in STATISTICS), key


@pytest.mark.parametrize("warmup_steps", [2, 4])
@pytest.mark.parametrize("batch_norm", ["training", "statistics_frozen", "frozen"])
def test_a_warm_up_freezes_all_weights_of_the_trunk_but_not_trained_statistics(dataset, batch_norm, warmup_steps):
    """As in Proxy-Anchor's code, whose first epoch updates the running averages on SOP and In-Shop.

    Scale and shift train after it; `frozen` stays frozen, as in CCP's code.
    """
    fold, start = trained(dataset, batch_norm=batch_norm, warmup_steps=warmup_steps)
    is_over = warmup_steps < 4
    assert changed(fold, start, SCALE_AND_SHIFT) == [is_over and batch_norm != "frozen"] * 2
    assert changed(fold, start, STATISTICS) == [batch_norm == "training"] * 2
    assert changed(fold, start, ["trunk.0.weight", "embedder.weight"]) == [is_over, True]
    assert is_over or changed(fold, start, ["trunk.0.bias"]) == [False]
