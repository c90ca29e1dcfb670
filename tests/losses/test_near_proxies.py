"""Proxies that are left out change neither a loss nor its gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer

from losses import CCPLoss
from losses.bridge import THREE
from losses.ccp import ball, near_proxies
from losses.pair_losses import BatchSumReducer, EuclideanDistance

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
@pytest.mark.parametrize("length", [0.7, 1.0, 3.0])
def test_the_proxies_that_stay_are_those_within_the_margin_and_hardly_more(base, length):
    """Proxies in all directions around a sample at steps of 0.0015, so that many lie on both sides of the margin."""
    angles = torch.linspace(0, torch.pi, 2000, dtype=torch.float64)
    proxies = length * torch.stack([angles.cos(), angles.sin()], dim=1)
    sample, label = torch.tensor([[0.9, 0.0]], dtype=torch.float64), torch.tensor([600])
    loss = CCPLoss.from_card(num_classes=2000, embedding_size=2, proxies_per_class=1, base=base).base_loss
    distances, products = (sample - ball(proxies)).norm(dim=1), sample[0] @ ball(proxies).t()
    inside = {
        "c1": (-products, -0.5),
        "c2": (distances, 0.3841),
        "triplet": (distances, distances[label] + 0.0961),
    }[base]
    near = near_proxies(loss, sample, label, proxies, 2000).tolist()
    must, may = (inside[0] < inside[1] + slack for slack in (0.009, 0.011))
    assert set(must.nonzero().flatten().tolist()) <= set(near)
    assert set(near) <= {0, 1, 2, 600, *may.nonzero().flatten().tolist()}


@pytest.mark.parametrize("base", BASES)
def test_the_classes_of_the_batch_and_three_proxies_always_stay(base):
    loss = CCPLoss.from_card(num_classes=9, embedding_size=2, proxies_per_class=2, base=base).base_loss
    proxies = torch.tensor([[-1.0, 0.0]]).repeat(18, 1)
    proxies[7] = 0.9
    samples = torch.tensor([[1.0, 0.0]])
    expected = [0, 1, 2, 7, 16] if base != "triplet" else list(range(18))
    assert near_proxies(loss, samples, torch.tensor([7]), proxies, 9).tolist() == expected


EUCLIDEAN = EuclideanDistance(normalize_embeddings=False)
EVERY_PROXY_COUNTS = [
    pml.MultiSimilarityLoss(),
    pml.MarginLoss(distance=EUCLIDEAN, reducer=AvgNonZeroReducer()),
    pml.ContrastiveLoss(distance=LpDistance(normalize_embeddings=True)),
    pml.ContrastiveLoss(distance=LpDistance(normalize_embeddings=False, p=1)),
    pml.ContrastiveLoss(distance=LpDistance(normalize_embeddings=False, power=2)),
    pml.ContrastiveLoss(distance=CosineSimilarity()),
    *([] if THREE else [pml.ContrastiveLoss(distance=EUCLIDEAN, collect_stats=True)]),
    pml.ContrastiveLoss(distance=EUCLIDEAN, reducer=MeanReducer()),
    pml.TripletMarginLoss(distance=EUCLIDEAN, reducer=MeanReducer()),
    pml.TripletMarginLoss(distance=EUCLIDEAN, reducer=BatchSumReducer()),
    pml.TripletMarginLoss(distance=EUCLIDEAN, swap=True),
    pml.TripletMarginLoss(distance=EUCLIDEAN, smooth_loss=True),
    pml.TripletMarginLoss(distance=EUCLIDEAN, triplets_per_anchor=3),
    pml.TripletMarginLoss(distance=DotProductSimilarity(normalize_embeddings=False)),
]


@pytest.mark.parametrize("loss", EVERY_PROXY_COUNTS, ids=range(len(EVERY_PROXY_COUNTS)))
def test_no_proxy_is_left_out_of_a_loss_that_counts_them_all(loss):
    assert near_proxies(loss, torch.eye(2), torch.arange(2), torch.eye(2), 2) is None
