"""Anti-collapse against the authors' code, in all its forms and readings."""

import pytest
import torch
from pytorch_metric_learning import losses as pml

from losses import AntiCollapseLoss, ProxyAnchorLoss
from tests.support.golden_files import case_name, golden

CASES = golden("anti_collapse")


def loss_of(case, **changes):
    params = case.params
    settings = {
        "num_classes": params["num_classes"],
        "embedding_size": params["embedding_size"],
        "alpha": params["pos_alpha"],
        "margin": params["pos_delta"],
        "form": params["form"],
        "eps": params["eps"],
        "gamma1": params["gam1"],
        "gamma2": params["gam2"],
        "weight": params["w"],
        "base_weight": params["w_align"],
        "normalize_rows": False,
        **changes,
    }
    if settings.get("base", "sample_anchor") == "sample_anchor":
        settings |= {"neg_alpha": params["neg_alpha"], "neg_margin": -params["neg_delta"]}
    loss = AntiCollapseLoss.from_card(**settings).to(case.dtype)
    case.load(loss.base_loss.proxies, "proxies")
    return loss


READINGS = {
    "": {},
    "_distinct": {"base": "proxy_anchor"},
    "_definition": {"ratio": "textbook"},
    "_unit": {"normalize_rows": True},
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_loss_and_gradients(case, reading):
    if f"loss{reading}" not in case.arrays:
        return
    loss, embeddings = loss_of(case, **READINGS[reading]), case.leaf("embeddings")
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    case.check(value, case.arrays[f"loss{reading}"], "loss")
    for name, leaf in (("embeddings", embeddings), ("proxies", loss.base_loss.proxies)):
        if f"grad_{name}{reading}" in case.arrays:
            case.check_gradient(leaf.grad, f"grad_{name}{reading}")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_rate_and_the_two_terms(case):
    loss, embeddings, labels = loss_of(case), case.tensor("embeddings"), case.tensor("labels")
    case.check(loss.rate(embeddings, labels), case.arrays["rate_used"], "rate")
    parts = loss.compute_loss(embeddings, labels, None)
    case.check(parts["rate_loss"]["losses"] / loss.weight, case.arrays["anti_collapse_term"], "term")
    case.check(parts["base_loss"]["losses"] / loss.base_weight, case.arrays["align_loss"], "align_loss")


def test_any_base_loss_serves_the_pair_form_only():
    embeddings, labels = torch.randn(6, 4), torch.arange(6) % 3
    loss = AntiCollapseLoss(pml.TripletMarginLoss(), 4, "pair", base_weight=1.0, weight=2.0)
    term = 2 * torch.exp(-loss.rate(embeddings, labels))
    torch.testing.assert_close(loss(embeddings, labels), pml.TripletMarginLoss()(embeddings, labels) + term)
    with pytest.raises(ValueError, match=r"needs a base loss with one proxy per class, .*; TripletMarginLoss has none"):
        AntiCollapseLoss(pml.TripletMarginLoss(), 4)
    with pytest.raises(ValueError, match="form must be one of batch_proxy, all_proxy, pair"):
        AntiCollapseLoss(ProxyAnchorLoss(3, 4), 4, "proxy")
