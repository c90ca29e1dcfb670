"""Smooth-AP against a loop over the formula, and against pytorch-metric-learning where its class is right."""

import pytest
import torch
from pytorch_metric_learning import losses as pml_losses
from torch.nn import functional

from losses import SmoothAPLoss
from losses.bridge import THREE


def by_the_formula(embeddings, labels, tau):
    rows = functional.normalize(embeddings)
    s, everyone = rows @ rows.T, range(len(rows))
    precisions = []
    for q in everyone:
        own = [i for i in everyone if labels[i] == labels[q]]

        def rank(i, others, q=q):
            return 1 + sum(torch.sigmoid((s[q, j] - s[q, i]) / tau) for j in others if j != i)

        precisions.append(sum(rank(i, own) / rank(i, everyone) for i in own) / len(own))
    return 1 - torch.stack(precisions).mean()


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (4,) * 8, (2, 5, 1, 3), (6, 6)])
@pytest.mark.parametrize("tau", [0.01, 0.1])
def test_the_loss_and_its_gradient_are_those_of_the_formula(sizes, tau):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))]
    embeddings = torch.randn(len(labels), 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, theirs = embeddings.clone().requires_grad_(), embeddings.clone().requires_grad_()
    loss, expected = SmoothAPLoss(tau)(ours, labels), by_the_formula(theirs, labels, tau)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, ours), torch.autograd.grad(expected, theirs))


def test_pmls_class_agrees_in_version_2_only_class_by_class_with_as_many_classes_as_images_of_each():
    by_class, in_turn = torch.arange(4).repeat_interleave(4), torch.arange(4).repeat(4)
    for labels, right in ((by_class, True), (in_turn, THREE), (torch.arange(8).repeat_interleave(4), THREE)):
        embeddings = torch.randn(len(labels), 16, generator=torch.Generator().manual_seed(0))
        ours, theirs = SmoothAPLoss()(embeddings, labels), pml_losses.SmoothAPLoss()(embeddings, labels)
        assert torch.isclose(ours, theirs, atol=1e-5) == right
