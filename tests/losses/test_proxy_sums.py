"""Proxy-AN, NTCE, NONL and center contrastive against values computed twice from their equations, and at extremes."""

import pytest
import torch

from losses import CenterContrastiveLoss, CosFaceLoss, NONLLoss, NTCELoss, ProxyAnchorLoss, ProxyANLoss
from tests.support.golden_files import case_name, golden

LOSSES = {
    "proxy_an": ProxyANLoss,
    "ntce": NTCELoss,
    "nonl": NONLLoss,
    "center_contrastive": CenterContrastiveLoss,
}
CASES = [(loss, case) for name, loss in LOSSES.items() for case in golden(name)]


def with_proxies(loss, proxies):
    with torch.no_grad():
        loss.proxies.copy_(proxies)
    return loss


def value_and_gradients(loss, embeddings, labels):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, labels)
    value.backward()
    return value.detach(), embeddings.grad, loss.proxies.grad


@pytest.mark.parametrize(
    ("dtype", "of_loss", "of_gradients"), [(torch.float64, 1e-9, 1e-8), (torch.float32, 1e-4, 1e-3)]
)
@pytest.mark.parametrize(("loss_class", "case"), CASES, ids=[case_name(case) for _, case in CASES])
def test_published_equations(loss_class, case, dtype, of_loss, of_gradients):
    loss = with_proxies(loss_class(**case.params).to(dtype), case.tensor("proxies"))
    value, *gradients = value_and_gradients(loss, case.tensor("embeddings").to(dtype), case.tensor("labels"))
    torch.testing.assert_close(value.double(), case.tensor("loss"), rtol=of_loss, atol=0.0)
    for gradient, name in zip(gradients, ("grad_embeddings", "grad_proxies"), strict=True):
        expected = case.tensor(name)
        largest = expected.abs().max().item()
        torch.testing.assert_close(gradient.double(), expected, rtol=0.0, atol=of_gradients * largest)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        # Each image coincides with the proxy of the other class and is opposite to its own.
        (ProxyANLoss(2, 2, alpha=128.0, delta=0.1), 2 * 128 * 1.1),
        (NTCELoss(2, 2, temperature=0.01), 200.0),
        (NONLLoss(2, 2, temperature=0.01), 200.0),
        (NONLLoss(2, 2, temperature=0.01, negatives="proxies"), 200.0),
        (NONLLoss(2, 2, temperature=0.01, negatives="both"), 200.0 + torch.log(torch.tensor(2.0)).item()),
        (CenterContrastiveLoss(2, 2, scale=200.0, margin=0.2, center_weight=30.0), 200 * 2.2 + 60),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_values_where_exp_overflows_in_float32(loss, expected):
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    with_proxies(loss, points)
    value, *gradients = value_and_gradients(loss, points.flip(0), torch.tensor([0, 1]))
    assert value == pytest.approx(expected, rel=1e-5)
    assert all(gradient.isfinite().all() for gradient in gradients)
    # Near the proxies, where a unit vector can move.
    value, *gradients = value_and_gradients(loss, points.flip(0) + 0.1, torch.tensor([0, 1]))
    assert value.isfinite()
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_center_contrastive_without_its_center_term_is_cosface(dtype):
    ours, theirs = CenterContrastiveLoss(6, 8, center_weight=0.0).to(dtype), CosFaceLoss(6, 8, margin=0.2).to(dtype)
    theirs.W.data = ours.proxies.data.t().clone()
    x, labels = torch.randn(24, 8, dtype=dtype), torch.arange(24) % 5
    value, gradient, of_proxies = value_and_gradients(ours, x, labels)
    x.requires_grad_()
    expected = theirs(x, labels)
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, x.grad)
    torch.testing.assert_close(of_proxies, theirs.W.grad.t())


def test_proxy_an_pulls_as_proxy_anchor():
    ours, theirs = ProxyANLoss(6, 8, 16.0, 0.2), ProxyAnchorLoss(6, 8, margin=0.2, alpha=16.0)
    with_proxies(theirs, ours.proxies)
    x, labels = torch.randn(24, 8), torch.arange(24) % 5
    pulls = [loss.compute_loss(x, labels, None)["pos_loss"] for loss in (ours, theirs)]
    torch.testing.assert_close(pulls[0]["losses"], pulls[1]["losses"])


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("negatives", ["images", "proxies", "both"])
def test_nonl_of_one_class_has_proxies_as_its_only_negatives(negatives, size):
    """With images alone nothing is left, so that the loss and all gradients are zero."""
    loss, x, labels = NONLLoss(3, 5, negatives=negatives), torch.randn(size, 5), torch.ones(size, dtype=torch.long)
    value, *gradients = value_and_gradients(loss, x, labels)
    of_proxies = value_and_gradients(with_proxies(NONLLoss(3, 5, negatives="proxies"), loss.proxies), x, labels)
    expected = [torch.zeros_like(one) for one in of_proxies] if negatives == "images" else of_proxies
    torch.testing.assert_close([value, *gradients], list(expected))
