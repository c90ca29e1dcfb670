"""`gradient_cache`: the loss sees the whole batch, the network computes it in chunks, and the gradients stay."""

import pytest
import torch
from torch import nn

from protocols.machine.torch_state import embed_in_chunks
from protocols.training.train_fold import train_fold
from results.spec.component import Component
from results.spec.conditions import OptimizerSettings
from results.spec.method import Method
from tests.support.toys import CONTRASTIVE, PROXIES, pattern_dataset, settings, toy_fold

SGD = OptimizerSettings(name="SGD", lr=0.01, weight_decay=0.0, arguments={})
NIR = Method(
    name="nir_proxy_anchor",
    loss=Component(name="NIRLoss", arguments={"base_loss": "proxy_anchor", "num_classes": "$num_classes"}),
    samples_per_class=2,
    loss_lr=0.01,
)
CCP = Method(
    name="c1_ccp", loss=Component(name="CCPLoss", arguments={"base_loss": "c1"}), samples_per_class=2, loss_lr=0.01
)
XBM = Method(
    name="c1_xbm",
    loss=Component(name="XBMLoss", arguments={"base_loss": "c1", "memory_size": 16, "weight": 1.0}),
    samples_per_class=2,
)
WARMED_UP = PROXIES.at({"warmup.steps": 3})


@pytest.fixture
def dataset(tmp_path):
    return pattern_dataset(tmp_path, side=16)


CLIPPED = {"clip_norm": 0.01, "clip_value": 0.001}


@pytest.mark.parametrize(
    ("method", "chunk", "changes"),
    [
        (CONTRASTIVE, 1, {}),
        (CONTRASTIVE, 3, CLIPPED),
        (PROXIES, 4, {}),
        (PROXIES, 3, CLIPPED),
        *((method, 3, {}) for method in (WARMED_UP, XBM, NIR, CCP)),
    ],
)
def test_gradients_are_those_of_one_pass(dataset, sgd_steps, method, chunk, changes):
    whole = train_fold(*toy_fold(dataset, method, settings(optimizer=SGD, **changes)))
    expected = sgd_steps.copy()
    again = train_fold(*toy_fold(dataset, method, settings(optimizer=SGD, gradient_cache=chunk, **changes)))
    assert again.result.status == whole.result.status == "ok"
    steps = zip(sgd_steps[len(expected) :], expected, strict=True)
    errors = [distance(ours, theirs) for (_, ours), (_, theirs) in steps]
    assert len(errors) > 3
    assert errors[0] < 1e-6
    # Later steps start from weights that differ by the rounding of the steps before.
    assert max(errors) < 1e-3


def distance(ours, theirs):
    """How far two gradients of all parameters lie apart, as a part of their length."""
    ours, theirs = ([one for one in each if one is not None] for each in (ours, theirs))
    assert [one.shape for one in ours] == [one.shape for one in theirs]
    flat, expected = (torch.cat([one.flatten().double() for one in each]) for each in (ours, theirs))
    assert expected.norm() > 0
    return float((flat - expected).norm() / expected.norm())


class Wide(nn.Module):
    """Images to 4 features with large activations on the way, and dropout that falls on other values every time."""

    features = 4

    def __init__(self, p):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(48, 4096), nn.Dropout(p), nn.Tanh(), nn.Linear(4096, 4))

    def forward(self, images):
        embeddings = self.layers(images.flatten(1))
        return embeddings


def _gradients(model, embeddings):
    # A loss that ties all images of the batch together.
    loss = (embeddings @ embeddings.T).logsumexp(1).sum()
    return list(torch.autograd.grad(loss, list(model.parameters())))


def test_the_second_pass_has_the_random_numbers_of_the_first():
    torch.manual_seed(0)
    model, images = Wide(0.5).double(), torch.rand(10, 3, 4, 4, dtype=torch.float64)
    torch.manual_seed(1)
    expected = _gradients(model, torch.cat([model(chunk) for chunk in images.split(4)]))
    after = torch.random.get_rng_state()
    torch.manual_seed(1)
    cached = _gradients(model, embed_in_chunks(model, images, 4))
    assert torch.equal(torch.random.get_rng_state(), after), "the second pass must not use up random numbers"
    for ours, theirs in zip(cached, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
    other = _gradients(model, embed_in_chunks(model, images, 4))
    assert not torch.allclose(other[0], expected[0])
