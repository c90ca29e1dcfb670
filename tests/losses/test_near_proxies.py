"""Proxies that are left out change neither a loss nor its gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from losses import CCPLoss
from losses.ccp import ball, near_proxies

BASES = ("c1", "c2", "triplet")


def drawn(base, seed, num_classes, per_class, batch, spread):
    torch.manual_seed(seed)
    loss = CCPLoss.from_card(num_classes=num_classes, embedding_size=4, proxies_per_class=per_class, base=base).double()
    loss.proxies.data.copy_(spread * torch.randn(num_classes * per_class, 4, dtype=torch.float64))
    embeddings = spread * torch.randn(batch, 4, dtype=torch.float64)
    return loss, embeddings.requires_grad_(), torch.randint(num_classes, (batch,))


def over_all_proxies(loss, embeddings, labels):
    samples = ball(embeddings)
    pairs = loss.base_loss(samples, labels, None, ball(loss.proxies), loss.proxy_labels)
    return pairs + loss.w_sample * loss.base_loss(samples, labels)


def gradients(value, loss, embeddings):
    return torch.autograd.grad(value, (embeddings, loss.proxies), allow_unused=True, materialize_grads=True)


@settings(max_examples=100, deadline=None)
@given(
    base=st.sampled_from(BASES),
    seed=st.integers(0, 99),
    num_classes=st.integers(1, 30),
    per_class=st.integers(1, 3),
    batch=st.integers(1, 6),
    spread=st.sampled_from([0.05, 0.3, 1.0]),
)
def test_values_and_gradients_are_those_over_all_proxies(base, seed, num_classes, per_class, batch, spread):
    loss, embeddings, labels = drawn(base, seed, num_classes, per_class, batch, spread)
    value, expected = loss(embeddings, labels), over_all_proxies(loss, embeddings, labels)
    torch.testing.assert_close(value, expected)
    for got, wanted in zip(gradients(value, loss, embeddings), gradients(expected, loss, embeddings), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("base", BASES)
def test_most_proxies_of_many_classes_are_left_out(base):
    loss, embeddings, labels = drawn(base, 0, 500, 2, 4, 1.0)
    loss.proxies.data[500:] = loss.proxies.data[:500] + 0.01
    embeddings = loss.proxies.detach()[labels] + 0.01
    near = near_proxies(loss.base_loss, ball(embeddings), labels, loss.proxies, 500)
    assert len(near) < 500
