"""Losses on whole matrices are those of pytorch-metric-learning on lists, in value and gradient."""

import copy

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.reducers import MeanReducer
from pytorch_metric_learning.regularizers import ZeroMeanRegularizer

from losses.dense_pairs import pair_loss
from losses.pair_losses import (
    BatchSumReducer,
    CosineContrastiveLoss,
    EuclideanDistance,
    SignalToNoiseRatioContrastiveLoss,
)
from tests.support.pretended_device import DEVICE, pretended_device

DOT = DotProductSimilarity(normalize_embeddings=False)
LOSSES = {
    "contrastive": lambda: pml.ContrastiveLoss(0.1, 0.9),
    "contrastive without active pairs": lambda: pml.ContrastiveLoss(9.0, -9.0),
    "sum over the batch": lambda: pml.ContrastiveLoss(1, 0.2, distance=DOT, reducer=BatchSumReducer()),
    "cosine contrastive": lambda: CosineContrastiveLoss(0.1),
    "euclidean": lambda: pml.ContrastiveLoss(0.0, 0.7, distance=EuclideanDistance()),
    "signal to noise": lambda: SignalToNoiseRatioContrastiveLoss(
        pos_margin=0.1, neg_margin=2.0, embedding_regularizer=ZeroMeanRegularizer(), embedding_reg_weight=0.1
    ),
    "triplet": lambda: pml.TripletMarginLoss(0.3),
    "triplet without active triplets": lambda: pml.TripletMarginLoss(-9.0),
    "multi-similarity": lambda: pml.MultiSimilarityLoss(2, 10, 0.5),
    "margin": lambda: pml.MarginLoss(beta=0.9, learn_beta=True, nu=0.2),
    "margin without active triplets": lambda: pml.MarginLoss(margin=-9.0, learn_beta=True, nu=0.2, num_classes=9),
    "margin per class": lambda: pml.MarginLoss(beta=0.9, learn_beta=True, nu=0.2, num_classes=9),
    "ntxent": lambda: pml.NTXentLoss(0.2),
}
LABELS = {
    "pairs of classes": torch.tensor([0, 1, 2, 0, 1, 2, 3, 3]),
    "a sample alone": torch.tensor([0, 1, 1, 1, 2, 2, 0, 8]),
    "one class": torch.zeros(8, dtype=torch.long),
    "all different": torch.arange(8),
}


def value_and_gradients(loss, rows, others, compute):
    rows = rows.detach().clone().requires_grad_()
    others = None if others is None else others.detach().clone().requires_grad_()
    value = compute(loss, rows, others)
    value.sum().backward()
    leaves = [rows, *([] if others is None else [others]), *loss.parameters()]
    return value.detach().sum(), [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]


def compare(make, labels, others=None, other_labels=None):
    torch.manual_seed(0)
    rows = torch.randn(len(labels), 6)
    loss = make()
    expected, gradients = value_and_gradients(
        copy.deepcopy(loss), rows, others, lambda loss, x, y: loss(x, labels, None, y, other_labels)
    )
    with pretended_device() as mode:
        there = copy.deepcopy(loss).to(DEVICE)
        on_device = [None if x is None else x.to(DEVICE) for x in (rows, labels, others, other_labels)]
        mode.waits.clear()
        value, device_gradients = value_and_gradients(
            there, on_device[0], on_device[2], lambda loss, x, y: pair_loss(loss, x, on_device[1], y, on_device[3])
        )
        assert mode.waits.total() == 0, mode.waits
        torch.testing.assert_close(value.cpu(), expected.reshape(()))
        for ours, theirs in zip(device_gradients, gradients, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", LOSSES)
def test_within_a_batch(name, labels):
    compare(LOSSES[name], LABELS[labels])


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"signal to noise"}))
def test_against_other_rows(name):
    generator = torch.Generator().manual_seed(1)
    compare(LOSSES[name], LABELS["a sample alone"], torch.randn(11, 6, generator=generator), torch.arange(11) % 5)


def test_ignored_pairs_add_nothing():
    torch.manual_seed(0)
    rows, others = torch.randn(6, 4), torch.randn(5, 4)
    labels, other_labels = torch.arange(6) % 2, torch.arange(5) % 2
    ignored = torch.zeros(6, 5, dtype=torch.bool)
    ignored[:, 3:] = True
    loss = pml.ContrastiveLoss(0.1, 0.9)
    expected = loss(rows, labels, None, others[:3], other_labels[:3])
    with pretended_device():
        arguments = [x.to(DEVICE) for x in (rows, labels, others, other_labels, ignored)]
        torch.testing.assert_close(pair_loss(loss, *arguments).cpu(), expected)


def test_a_cpu_keeps_the_lists():
    assert pair_loss(pml.ContrastiveLoss(), torch.randn(8, 4), LABELS["all different"]) is None


@pytest.mark.parametrize(
    "loss",
    [
        pml.ContrastiveLoss(reducer=MeanReducer()),
        pml.TripletMarginLoss(swap=True),
        pml.TripletMarginLoss(smooth_loss=True),
        pml.TripletMarginLoss(triplets_per_anchor=3),
        pml.MarginLoss(beta=0.9),
        pml.FastAPLoss(),
        pml.SupConLoss(),
    ],
)
def test_other_losses_have_no_dense_form(loss):
    with pretended_device():
        assert pair_loss(loss, torch.randn(8, 4, device=DEVICE), LABELS["one class"].to(DEVICE)) is None


def test_too_many_triplets_are_listed(monkeypatch):
    monkeypatch.setattr("losses.dense_pairs._TRIPLETS", 8**3 - 1)
    with pretended_device():
        rows, labels = torch.randn(8, 4, device=DEVICE), LABELS["one class"].to(DEVICE)
        assert pair_loss(pml.TripletMarginLoss(), rows, labels) is None
        assert pair_loss(pml.TripletMarginLoss(), rows[:7], labels[:7]) is not None
