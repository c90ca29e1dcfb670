"""The vectors that stand for classes, found in every loss that has some."""

import pytest
import torch
from pytorch_metric_learning import losses as pml

import losses
from protocols.training.best_checkpoint import class_vectors

C, D = 5, 4


@pytest.mark.parametrize(
    ("loss", "per_class"),
    [
        (losses.ProxyAnchorLoss(C, D), 1),
        (losses.ProxyISALoss(C, D, memory_size=8), 1),
        (losses.ProxyGMLLoss(C, D, proxies_per_class=3, r=0.4), 3),
        (pml.NormalizedSoftmaxLoss(C, D), 1),
        (pml.ArcFaceLoss(C, D), 1),
        (pml.SoftTripleLoss(C, D, centers_per_class=2), 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else str(value),
)
def test_every_class_has_its_vectors_in_order(loss, per_class):
    vectors, labels = class_vectors(loss)
    assert vectors.shape == (C * per_class, D)
    assert labels.tolist() == [c for c in range(C) for _ in range(per_class)]
    parameter = next(iter(loss.parameters()))
    assert torch.equal(vectors, parameter.detach() if parameter.shape == vectors.shape else parameter.detach().t())


def test_a_wrapped_loss_is_asked():
    loss = losses.NIRLoss(losses.ProxyAnchorLoss(C, D), D)
    vectors, labels = class_vectors(loss)
    assert vectors.shape == (C, D)
    assert labels.tolist() == list(range(C))


def test_pair_losses_have_none():
    assert class_vectors(pml.ContrastiveLoss()) is None
