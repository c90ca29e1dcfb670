"""Proxy-NCA in its four forms against the authors' code, and what the equations promise."""

from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml_losses

from losses import ProxyAnchorLoss, ProxyNCALoss
from tests.support.golden_files import Case, case_name, golden

FAMILIES = [case for family in ("proxynca_pp", "proxynca_classic", "proxynca_port") for case in golden(family)]
EQUATION_5 = [case for case in golden("nir_oproxy") if case.params["mode"] == "anchor"]
EQUATION_6 = [case for case in golden("nir_oproxy") if case.params["mode"] == "nca"]


def loss_of(case: Case, **params: Any) -> ProxyNCALoss:
    loss = ProxyNCALoss(**params).to(case.dtype)
    case.load(loss.proxies, "proxies")
    return loss


def own_parameters(case: Case) -> dict[str, Any]:
    params = case.params
    params.pop("temperature", None)  # the sidecars note 1 / scale**2 beside the scale
    if "scale" in params:
        params["softmax_scale"] = params.pop("scale") ** 2
    return params


@pytest.mark.parametrize("case", FAMILIES, ids=case_name)
def test_authors_loss_and_gradients(case: Case) -> None:
    loss, embeddings = loss_of(case, **own_parameters(case)), case.leaf("embeddings")
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    case.check(value, case.arrays["loss"], "loss")
    case.check_gradient(embeddings.grad, "grad_embeddings")
    case.check_gradient(loss.proxies.grad, "grad_proxies")


@pytest.mark.parametrize("case", FAMILIES, ids=case_name)
def test_authors_losses_of_single_samples(case: Case) -> None:
    loss = loss_of(case, **own_parameters(case))
    embeddings, labels = case.tensor("embeddings"), case.tensor("labels")
    per_sample = loss.compute_loss(embeddings, labels, None, embeddings, labels)["loss"]["losses"]
    case.check(per_sample, case.arrays["per_sample"], "per_sample")


@pytest.mark.parametrize("enumeration", ["proxies", "batch"])
@pytest.mark.parametrize("case", EQUATION_6, ids=case_name)
def test_equation_6_as_printed_and_as_coded(case: Case, enumeration: str) -> None:
    params = case.params
    assert params["neg_delta"] == -params["pos_delta"]
    loss = loss_of(
        case,
        num_classes=params["num_classes"],
        embedding_size=params["embedding_size"],
        variant="anchor_form",
        alpha=params["alpha"],
        margin=params["pos_delta"],
        positive_enumeration=enumeration,
    )
    embeddings = case.leaf("embeddings")
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    suffix, infix = ("", "") if enumeration == "batch" else ("_distinct", "distinct_")
    case.check(value, case.arrays[f"loss{suffix}"], "loss")
    case.check_gradient(embeddings.grad, f"grad_{infix}embeddings")
    case.check_gradient(loss.proxies.grad, f"grad_{infix}proxies")


@pytest.mark.parametrize("case", EQUATION_5, ids=case_name)
def test_equation_5_as_printed(case: Case) -> None:
    params = case.params
    sizes = params["num_classes"], params["embedding_size"]
    loss = ProxyAnchorLoss(*sizes, margin=params["pos_delta"], alpha=params["alpha"]).to(case.dtype)
    case.load(loss.proxies, "proxies")
    embeddings = case.leaf("embeddings")
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    case.check(value, case.arrays["loss_distinct"], "loss")
    case.check_gradient(embeddings.grad, "grad_distinct_embeddings")
    case.check_gradient(loss.proxies.grad, "grad_distinct_proxies")


def test_prob_equals_the_library_where_nothing_underflows() -> None:
    torch.manual_seed(0)
    embeddings, labels = torch.randn(12, 6, dtype=torch.float64), torch.arange(12) % 5
    ours = ProxyNCALoss(5, 6, softmax_scale=5.0).double()
    library = pml_losses.ProxyNCALoss(5, 6, softmax_scale=5.0).double()
    library.proxies.data.copy_(ours.proxies.data)
    torch.testing.assert_close(ours(embeddings, labels), library(embeddings, labels))


def test_a_hopeless_sample_keeps_its_loss_and_its_gradient() -> None:
    loss = ProxyNCALoss(2, 2, softmax_scale=100.0)
    with torch.no_grad():
        loss.proxies.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    embeddings = torch.tensor([[-1.0, 1e-3]], requires_grad=True)
    value = loss(embeddings, torch.tensor([0]))
    value.backward()
    assert value.item() == pytest.approx(4 * 100, rel=1e-4)  # softmax_scale (4 - 0); softmax(-400) is 0 in float32
    assert embeddings.grad is not None
    assert embeddings.grad.abs().max() > 1e-2


def test_classic_lacks_the_own_proxy_and_port_without_smoothing_is_prob() -> None:
    torch.manual_seed(0)
    embeddings, labels = torch.randn(7, 4), torch.tensor([0, 1, 2, 0, 1, 2, 2])
    prob, classic = ProxyNCALoss(3, 4, softmax_scale=4.0), ProxyNCALoss(3, 4, "classic", softmax_scale=4.0)
    port = ProxyNCALoss(3, 4, "port", smoothing_const=0.0, scaling_x=4.0, scaling_p=1.0)
    for other in (classic, port):
        other.proxies.data.copy_(prob.proxies.data)
    torch.testing.assert_close(port(embeddings, labels), prob(embeddings, labels))
    logits = 8 * prob.get_logits(embeddings)
    odds = [(row.exp().sum() - row[y].exp()) / row[y].exp() for row, y in zip(logits, labels, strict=True)]
    torch.testing.assert_close(classic(embeddings, labels), torch.stack(odds).log().mean())


@pytest.mark.parametrize("variant", ["prob", "classic", "port", "anchor_form"])
def test_two_classes(variant: Any) -> None:
    """The authors' label binariser fails for two classes; swapping both classes must change nothing."""
    torch.manual_seed(0)
    loss, embeddings, labels = ProxyNCALoss(2, 4, variant), torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 0])
    value = loss(embeddings, labels)
    loss.proxies.data.copy_(loss.proxies.data.flip(0).clone())
    torch.testing.assert_close(loss(embeddings, 1 - labels), value)


@pytest.mark.parametrize(
    ("variant", "settings", "message"),
    [
        ("prob", {"smoothing_const": 0.1}, "smoothing_const"),
        ("port", {"softmax_scale": 2.0}, "softmax_scale"),
        ("anchor_form", {"softmax_scale": 2.0}, "softmax_scale"),
        ("anchor_form", {"positive_enumeration": "all"}, "positive_enumeration"),
        ("probability", {}, "variant"),
    ],
)
def test_settings_of_another_form_are_refused(variant: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProxyNCALoss(3, 4, variant, **settings)


def test_one_class_is_refused_where_another_is_needed() -> None:
    with pytest.raises(ValueError, match="two classes"):
        ProxyNCALoss(1, 4, "classic")
    assert ProxyNCALoss(1, 4)(torch.randn(3, 4), torch.zeros(3, dtype=torch.long)).item() == 0


@pytest.mark.parametrize("variant", ["prob", "classic", "port", "anchor_form"])
def test_settings_are_recorded_as_the_librarys_are(variant: Any) -> None:
    loss = ProxyNCALoss(3, 4, variant)
    assert set(loss.settings) <= set(loss._record_these)
    assert {name: getattr(loss, name) for name in loss.settings} == loss.settings
