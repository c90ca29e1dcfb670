"""The facility location loss against loops over its definition, with scikit-learn's mutual information."""

import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from losses import ClusteringLoss


def batch(samples: int, classes: int, spread: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(samples) % classes
    centers = torch.randn(classes, 6, generator=generator, dtype=torch.float64)
    noise = torch.randn(samples, 6, generator=generator, dtype=torch.float64)
    return centers[labels] + spread * noise, labels


def distances_of(embeddings: Tensor) -> Tensor:
    unit = normalize(embeddings, dim=1)
    return (unit.unsqueeze(1) - unit.unsqueeze(0)).norm(dim=2)


def clusters_of(distances: Tensor, medoids: list[int]) -> Tensor:
    clusters = distances[medoids].argmin(0)
    clusters[medoids] = torch.arange(len(medoids))
    return clusters


def margin_of(distances: Tensor, labels: Tensor, medoids: list[int], gamma: float) -> float:
    clusters = clusters_of(distances, medoids)
    return gamma * (1 - normalized_mutual_info_score(labels, clusters, average_method="geometric"))


def score_of(distances: Tensor, labels: Tensor, medoids: list[int], gamma: float) -> float:
    return margin_of(distances, labels, medoids, gamma) - distances[medoids].min(0).values.sum().item()


def searched(distances: Tensor, labels: Tensor, gamma: float, sweeps: int) -> list[int]:
    """The two algorithms, one candidate after the other."""
    everything = range(len(labels))
    medoids: list[int] = []
    for _ in labels.unique():
        free = [j for j in everything if j not in medoids]
        medoids.append(max(free, key=lambda j: score_of(distances, labels, [*medoids, j], gamma)))
    for _ in range(sweeps):
        clusters = clusters_of(distances, medoids)
        for cluster in range(len(medoids)):
            members = (clusters == cluster).nonzero().flatten().tolist()

            def score(j: int, cluster: int = cluster, members: list[int] = members) -> float:
                others = [*medoids[:cluster], j, *medoids[cluster + 1 :]]
                return margin_of(distances, labels, others, gamma) - distances[j, members].sum().item()

            medoids[cluster] = max(members, key=score)
    return medoids


@pytest.mark.parametrize("spread", [0.3, 3.0])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("sweeps", [0, 2])
def test_value_medoids_and_gradient_are_those_of_the_loops(spread: float, gamma: float, sweeps: int) -> None:
    embeddings, labels = batch(14, 4, spread)
    ours, theirs = embeddings.clone().requires_grad_(), embeddings.clone().requires_grad_()
    loss = ClusteringLoss(gamma, sweeps)
    distances = distances_of(theirs)
    medoids = searched(distances.detach(), labels, gamma, sweeps)
    assert loss.medoids(distances.detach(), one_hot(labels).double()).tolist() == medoids

    of_classes = sum(distances[labels == c][:, labels == c].sum(0).min() for c in labels.unique())
    expected = (of_classes - distances[medoids].min(0).values.sum()).add(
        margin_of(distances.detach(), labels, medoids, gamma)
    )
    value = loss(ours, labels)
    torch.testing.assert_close(value, expected.clamp(min=0))
    if value > 0:
        value.backward()
        # The loops' norm has no gradient at 0, the distance of a sample to itself.
        (gradient,) = torch.autograd.grad(expected, theirs)
        torch.testing.assert_close(ours.grad, gradient.nan_to_num())


def test_separate_classes_and_one_class_have_no_loss() -> None:
    embeddings, labels = batch(12, 3, 0.001)
    assert ClusteringLoss(1.0)(embeddings, labels) == 0
    scattered, _ = batch(12, 3, 1.0)
    assert ClusteringLoss()(scattered, torch.zeros_like(labels)) == 0
