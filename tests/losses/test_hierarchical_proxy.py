"""The hierarchical proxy loss in our reading: what holds whatever the paper's details, and the clustering under it."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from losses import Clock, HierarchicalProxyLoss, ProxyAnchorLoss, TrainingContext
from losses.hierarchical_proxy import spherical_k_means

C, D = 8, 6


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(12, D, generator=generator), torch.randint(C, (12,), generator=generator)


def clock(epoch: int, passes: int | None = None, warmup: bool = False) -> Clock:
    passes = epoch if passes is None else passes
    return Clock(epoch=epoch, step=epoch * 10, steps_per_epoch=10, passes=passes, warmup=warmup)


def pair(groups: list[int] | None = None, **params: Any) -> tuple[HierarchicalProxyLoss, ProxyAnchorLoss]:
    """A hierarchical loss and Proxy-Anchor with the same class proxies."""
    torch.manual_seed(0)
    loss, plain = HierarchicalProxyLoss(C, D, **params), ProxyAnchorLoss(C, D)
    plain.proxies.data.copy_(loss.proxies.data)
    if groups is not None:
        loss.set_groups(torch.tensor(groups))
    return loss, plain


def value_and_gradients(loss: torch.nn.Module, scale: float = 1.0) -> list[Tensor]:
    embeddings, labels = batch()
    value = scale * loss(embeddings.requires_grad_(), labels)
    return [value, *torch.autograd.grad(value, [embeddings, loss.proxies])]


def test_coarse_term_is_proxy_anchor_on_groups() -> None:
    groups = torch.tensor([0, 0, 1, 1, 2, 2, 2, 0])
    loss, plain = pair(groups.tolist(), num_groups=3, coarse_weight=0.7, margin=0.2, alpha=16.0)
    above, below = ProxyAnchorLoss(3, D, margin=0.2, alpha=16.0), ProxyAnchorLoss(C, D, margin=0.2, alpha=16.0)
    below.proxies.data.copy_(plain.proxies.data)
    unit = functional.normalize(plain.proxies.data, dim=1)
    above.proxies.data.copy_(torch.stack([unit[groups == g].mean(dim=0) for g in range(3)]))
    embeddings, labels = batch()
    expected = below(embeddings, labels) + 0.7 * above(embeddings, groups[labels])
    torch.testing.assert_close(loss(embeddings, labels), expected)


# --- when it clusters ---


def clusterings(clocks: list[Clock], **params: Any) -> list[bool]:
    loss, happened = pair(num_groups=3, **params)[0], []
    for moment in clocks:
        loss.groups.fill_(2 if loss.groups[0] >= 0 else -1)  # one group for all: no clustering leaves it so
        loss.on_epoch_start(moment)
        happened.append(len(loss.groups.unique()) > 1)
    return happened


def test_first_clustering_comes_after_the_warm_up() -> None:
    assert clusterings([clock(0, warmup=True), clock(1), clock(2)]) == [False, True, True]
    assert clusterings([clock(0), clock(1, warmup=True), clock(2)]) == [False, False, True]


def test_period_counts_passes_over_the_data() -> None:
    moments = [clock(epoch, passes) for epoch, passes in enumerate([0, 0, 0, 1, 1, 2, 3, 5])]
    assert clusterings(moments, period=2) == [False, False, False, True, False, False, True, True]


def test_draws_come_from_the_training_generator() -> None:
    def groups(seed: int) -> Tensor:
        loss, _ = pair(num_groups=4)
        generator = torch.Generator().manual_seed(seed)
        loss.bind(TrainingContext([], C, generator, lambda per_class: torch.zeros(C, per_class, D)))
        before = torch.get_rng_state()
        loss.cluster()
        assert torch.equal(torch.get_rng_state(), before)
        return loss.groups

    assert torch.equal(groups(0), groups(0))
    assert any(not torch.equal(groups(0), groups(seed)) for seed in range(1, 6))


# --- k-means ---


def blobs(copies: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(4).repeat(copies)
    points = torch.eye(4, 7)[truth] + 0.05 * torch.randn(len(truth), 7, generator=generator)
    return functional.normalize(points, dim=1), truth


@pytest.mark.parametrize("seed", range(5))
def test_k_means_finds_separated_groups(seed: int) -> None:
    points, truth = blobs()
    found = spherical_k_means(points, 4, generator=torch.Generator().manual_seed(seed))
    together = found[:, None] == found[None, :]
    assert torch.equal(together, truth[:, None] == truth[None, :])


@pytest.mark.parametrize("k", [1, 3, 8, 20])
def test_no_cluster_is_empty(k: int) -> None:
    points, _ = blobs()
    same_start = points[:1].expand(k, -1)
    for start in (None, same_start):
        clusters = spherical_k_means(points, k, start, torch.Generator().manual_seed(0))
        assert clusters.unique().tolist() == list(range(k))


def test_coincident_points_are_split_without_nan() -> None:
    points = functional.normalize(torch.ones(6, 3), dim=1)
    assert spherical_k_means(points, 4, generator=torch.Generator()).unique().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="7 clusters of 6"):
        spherical_k_means(points, 7)
