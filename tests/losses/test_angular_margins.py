"""ArcFace and CosFace are those of pytorch-metric-learning, to the bit."""

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.regularizers import RegularFaceRegularizer

import losses


@pytest.mark.parametrize("regularizer", [None, RegularFaceRegularizer()])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["ArcFaceLoss", "CosFaceLoss"])
def test_values_and_gradients_are_those_of_pml(name, weighted, regularizer):
    results = []
    for module in (losses, pml):
        torch.manual_seed(0)
        loss = getattr(module, name)(5, 8, weight_regularizer=regularizer)
        rows, labels = torch.randn(12, 8, requires_grad=True), torch.randint(5, (12,))
        chosen = (torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4]), torch.tensor([5, 6, 7])) if weighted else None
        value = loss(rows, labels, chosen)
        value.backward()
        results.append((value.detach(), rows.grad, loss.W.grad))
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours, theirs)
