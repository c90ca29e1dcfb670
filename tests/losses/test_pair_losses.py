"""What pytorch-metric-learning lacked for pair losses."""

import pytest
import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.distances import DotProductSimilarity
from torch.nn import functional

from losses.pair_losses import BatchSumReducer, CosineContrastiveLoss, EuclideanDistance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [8, 128, 2048])
def test_distance_and_gradient_are_zero_between_equal_vectors_and_right_elsewhere(size, dtype):
    generator = torch.Generator().manual_seed(size)
    rows = functional.normalize(torch.randn(60, size, generator=generator, dtype=dtype), dim=1)
    queries = rows[:30].clone().requires_grad_()
    distance = EuclideanDistance(normalize_embeddings=False)(queries, rows)
    differences = (queries.detach()[:, None].double() - rows[None].double()).norm(dim=2)
    torch.testing.assert_close(distance.detach().double(), differences, rtol=1e-5, atol=0)
    assert (distance.diagonal() == 0).all()
    distance.diagonal().sum().backward()
    assert queries.grad is not None
    assert (queries.grad == 0).all()


def test_gradient_of_the_distance():
    rows = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    distance = EuclideanDistance(normalize_embeddings=False)
    assert torch.autograd.gradcheck(distance, (rows[:3].clone().requires_grad_(), rows[3:].clone().requires_grad_()))


def test_cosine_contrastive_has_the_gradient_of_the_hinge_and_its_jump_in_value():
    embeddings = functional.normalize(torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    labels = torch.arange(10) % 3
    dot = DotProductSimilarity(normalize_embeddings=False)
    hinge = pml_losses.ContrastiveLoss(1.0, 0.5, distance=dot, reducer=BatchSumReducer())
    ours = CosineContrastiveLoss(distance=dot)
    x = embeddings.requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(ours(x, labels), x), torch.autograd.grad(hinge(x, labels), x))
    cosine = x.detach() @ x.detach().T
    active = (cosine > 0.5) & (labels[:, None] != labels[None])
    torch.testing.assert_close(ours(x, labels), hinge(x, labels) + 0.5 * active.sum() / 10)
    assert active.any()


def test_a_copy_of_a_sample_is_ignored():
    embeddings, labels = torch.eye(3).repeat(2, 1), torch.zeros(6, dtype=torch.long)
    # Three pairs of copies at cosine 1, twelve of the fifteen pairs at cosine 0; every pair counts in both directions.
    assert CosineContrastiveLoss()(embeddings, labels) == 2 * 12 / 6
