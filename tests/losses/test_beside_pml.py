"""What the table in docs/losses_elsewhere.md says about classes that pytorch-metric-learning has too."""

from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.regularizers import SparseCentersRegularizer
from torch import Tensor, nn

import losses

C, D, B = 6, 8, 18
EMBEDDINGS = 3 * torch.randn(B, D, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(B) % C


def pair(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[Any, Any]:
    """Our loss and PML's of the same name, with the same proxies."""
    torch.manual_seed(0)
    own, other = getattr(losses, name)(C, D, **ours), getattr(pml, name)(num_classes=C, embedding_size=D, **theirs)
    with torch.no_grad():
        for parameter, source in zip(other.parameters(), own.parameters(), strict=True):
            parameter.copy_(source)
    return own, other


def gradients(loss: nn.Module) -> list[Tensor]:
    embeddings = EMBEDDINGS.clone().requires_grad_()
    value = loss(embeddings, LABELS)
    leaves = [embeddings, *loss.parameters()]
    return [value.detach(), *torch.autograd.grad(value, leaves)]


EQUAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ProxyAnchorLoss": ({}, {}),
    "ArcFaceLoss": ({}, {}),
    "CosFaceLoss": ({}, {}),
    "SoftTripleLoss": ({"tau": 0}, {}),
    "ProxyNCALoss": ({"softmax_scale": 1}, {}),
}


@pytest.mark.parametrize("name", EQUAL)
def test_with_these_settings_value_and_gradient_are_those_of_pml(name: str) -> None:
    own, other = pair(name, *EQUAL[name])
    torch.testing.assert_close(gradients(own), gradients(other))


def test_proxy_nca_returns_cosines_where_pml_returns_squared_distances() -> None:
    own, other = pair("ProxyNCALoss", {}, {})
    cosines, distances = own.get_logits(EMBEDDINGS), other.get_logits(EMBEDDINGS)
    torch.testing.assert_close(distances, 2 - 2 * cosines)
    assert (own.softmax_scale, other.softmax_scale) == (9, 1)


@pytest.mark.parametrize("name", ["ProxyAnchorLoss", "SoftTripleLoss"])
def test_other_logits_are_those_of_pml(name: str) -> None:
    own, other = pair(name, {}, {})
    torch.testing.assert_close(own.get_logits(EMBEDDINGS), other.get_logits(EMBEDDINGS))


def test_tau_is_the_regularizer_of_pml_and_refuses_it_beside_itself() -> None:
    regularizer = SparseCentersRegularizer(C, 10)
    with pytest.raises(ValueError, match="set tau=0 to use it alone"):
        losses.SoftTripleLoss(C, D, weight_regularizer=regularizer)
    own, other = pair("SoftTripleLoss", {"tau": 0.3}, {"weight_regularizer": regularizer, "weight_reg_weight": 0.3})
    torch.testing.assert_close(own(EMBEDDINGS, LABELS), other(EMBEDDINGS, LABELS), rtol=1e-4, atol=1e-5)
    own, other = (
        losses.SoftTripleLoss(C, D, tau=0, weight_regularizer=regularizer, weight_reg_weight=0.3),
        losses.SoftTripleLoss(C, D, tau=0.3),
    )
    other.load_state_dict(own.state_dict())
    torch.testing.assert_close(own(EMBEDDINGS, LABELS), other(EMBEDDINGS, LABELS), rtol=1e-4, atol=1e-5)


def test_the_memory_term_is_that_of_pml_s_memory_and_the_batch_s_own_comes_on_top() -> None:
    base = pml.ContrastiveLoss(0.9, 0.2, distance=CosineSimilarity())
    theirs, own = pml.CrossBatchMemory(base, D, 64), losses.XBMLoss(base, D, 64, start_iteration=0)
    for shift in range(3):
        batch = EMBEDDINGS.roll(shift, 1) + shift
        expected = theirs(batch, LABELS) + base(batch, LABELS)
        torch.testing.assert_close(own(batch, LABELS), expected)
