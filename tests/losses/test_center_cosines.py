"""The written-out gradient of SoftTriple's cosines and spread, against automatic differentiation."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from losses.center_cosines import cosines_and_spread
from losses.soft_triple import center_spread

CLASSES, PER_CLASS, D = 5, 4, 6


def plain(embeddings: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    unit = normalize(centers, dim=0)
    return embeddings @ unit, center_spread(unit.t().reshape(CLASSES, PER_CLASS, D))


def value_and_gradients(function, embeddings: Tensor, centers: Tensor) -> list[Tensor]:
    inputs = [embeddings.clone().requires_grad_(), centers.clone().requires_grad_()]
    cosines, spread = function(*inputs)
    total = (cosines**3).sum() + 2 * spread
    return [total.detach(), *torch.autograd.grad(total, inputs)]


@pytest.mark.parametrize("special", ["none", "equal centres", "a centre of norm 0"])
def test_value_and_gradients_are_those_of_unit_centres(special: str) -> None:
    torch.manual_seed(0)
    embeddings, centers = (
        normalize(torch.randn(7, D, dtype=torch.float64)),
        torch.randn(D, CLASSES * PER_CLASS).double(),
    )
    if special == "equal centres":
        centers[:, 1] = 2 * centers[:, 0]
    if special == "a centre of norm 0":
        centers[:, 3] = 0

    def ours(x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return cosines_and_spread(x, c, PER_CLASS, with_spread=True)

    for value, expected in zip(
        value_and_gradients(ours, embeddings, centers), value_and_gradients(plain, embeddings, centers), strict=True
    ):
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)


def test_an_unwanted_spread_is_zero_and_pulls_nothing() -> None:
    torch.manual_seed(0)
    centers = torch.randn(D, CLASSES, requires_grad=True)
    _, spread = cosines_and_spread(normalize(torch.randn(7, D)), centers, 1, with_spread=False)
    assert spread.item() == 0
    (gradient,) = torch.autograd.grad(spread, centers)
    assert (gradient == 0).all()
