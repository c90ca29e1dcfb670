"""Gradients of all groups are clipped as the settings say."""

import pytest
import torch
from torch import nn

from protocols.training.train_fold import clip_gradients
from results.spec.conditions import TrainingSettings


def trained():
    """Two linear layers with gradients, a group each, and their optimizer."""
    layers = [nn.Linear(3, 2) for _ in range(2)]
    for number, layer in enumerate(layers, 1):
        (number * layer(torch.ones(4, 3))).sum().backward()
    return layers, torch.optim.Adam([{"params": list(layer.parameters())} for layer in layers])


@pytest.mark.parametrize(
    ("settings", "norm", "largest"), [({"clip_norm": 1.0}, 1.0, 1.0), ({"clip_value": 0.5}, None, 0.5)]
)
def test_all_groups_are_clipped_together(settings, norm, largest):
    layers, optimizer = trained()
    clip_gradients(optimizer, TrainingSettings(**settings))
    gradients = torch.cat([parameter.grad.flatten() for layer in layers for parameter in layer.parameters()])
    assert norm is None or gradients.norm().item() == pytest.approx(norm, rel=1e-4)
    assert gradients.abs().max() <= largest
    layers, optimizer = trained()
    before = [parameter.grad.clone() for layer in layers for parameter in layer.parameters()]
    clip_gradients(optimizer, TrainingSettings())
    after = [parameter.grad for layer in layers for parameter in layer.parameters()]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
