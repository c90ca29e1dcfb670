"""Proxy-NCA in its three forms against the authors' code, and what the equations promise."""

import pytest
import torch

from losses import ProxyNCALoss
from tests.support.golden_files import case_name, golden

FAMILIES = [case for family in ("proxynca_pp", "proxynca_classic") for case in golden(family)]
EQUATION_6 = [case for case in golden("nir_oproxy") if case.params["mode"] == "nca"]


def loss_of(case, **params):
    loss = ProxyNCALoss(**params).to(case.dtype)
    case.load(loss.proxies, "proxies")
    return loss


def own_parameters(case):
    params = case.params
    params.pop("temperature", None)  # the sidecars note 1 / scale**2 beside the scale
    if "scale" in params:
        params["softmax_scale"] = params.pop("scale") ** 2
    return params


@pytest.mark.parametrize("case", FAMILIES, ids=case_name)
def test_authors_loss_and_gradients_and_losses_of_single_samples(case):
    loss = loss_of(case, **own_parameters(case))
    case.check_loss(loss, proxies=loss.proxies)
    embeddings, labels = case.tensor("embeddings"), case.tensor("labels")
    per_sample = loss.compute_loss(embeddings, labels, None, embeddings, labels)["loss"]["losses"]
    case.check(per_sample, case.arrays["per_sample"], "per_sample")


@pytest.mark.parametrize("case", EQUATION_6, ids=case_name)
def test_equation_6_as_printed(case):
    params = case.params
    assert params["neg_delta"] == -params["pos_delta"]
    loss = loss_of(
        case,
        num_classes=params["num_classes"],
        embedding_size=params["embedding_size"],
        variant="anchor_form",
        alpha=params["alpha"],
        margin=params["pos_delta"],
    )
    embeddings = case.leaf("embeddings")
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    case.check(value, case.arrays["loss_distinct"], "loss")
    case.check_gradient(embeddings.grad, "grad_distinct_embeddings")
    case.check_gradient(loss.proxies.grad, "grad_distinct_proxies")


def test_a_hopeless_sample_keeps_its_loss_and_its_gradient():
    loss = ProxyNCALoss(2, 2, softmax_scale=100.0)
    with torch.no_grad():
        loss.proxies.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    embeddings = torch.tensor([[-1.0, 1e-3]], requires_grad=True)
    value = loss(embeddings, torch.tensor([0]))
    value.backward()
    assert value.item() == pytest.approx(4 * 100, rel=1e-4)  # softmax_scale (4 - 0); softmax(-400) is 0 in float32
    assert embeddings.grad.abs().max() > 1e-2
