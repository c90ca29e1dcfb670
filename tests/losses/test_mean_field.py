"""The mean field losses against the authors' code, and where that code overflows."""

import pytest
import torch

from losses import MeanFieldClassWiseMultiSimilarityLoss, MeanFieldContrastiveLoss
from tests.support.golden_files import case_name, golden

CASES = golden("mean_field_contrastive") + golden("mean_field_cwms")


def loss_of(case, **changes):
    params = {"reg_weight": case.params["mf_reg"], "power": case.params["mf_power"], **case.params, **changes}
    of_contrastive = case.name.startswith("mean_field_contrastive")
    made = MeanFieldContrastiveLoss if of_contrastive else MeanFieldClassWiseMultiSimilarityLoss
    loss = made(**{name: value for name, value in params.items() if not name.startswith("mf_")}).to(case.dtype)
    case.load(loss.proxies, "class_vectors")
    return loss


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_loss_gradients_and_parts(case):
    loss = loss_of(case)
    case.check_loss(loss, class_vectors=loss.proxies)
    terms = loss.compute_loss(case.tensor("embeddings"), case.tensor("labels"), None)
    parts = {name: part["losses"] for name, part in terms.items()}
    regularizer = parts.pop("reg_loss", torch.zeros((), dtype=case.dtype))
    case.check(regularizer, case.arrays["reg"], "reg")
    if "pos_loss" in parts:
        case.check(parts["pos_loss"], case.arrays["positive_part"], "positive_part")
        case.check(parts["neg_loss"], case.arrays["negative_part"], "negative_part")
    else:
        case.check(parts["loss"].mean(), case.arrays["main_loss"], "main_loss")


@pytest.mark.parametrize("case", golden("mean_field_contrastive"), ids=case_name)
def test_the_mean_over_classes(case):
    loss = loss_of(case, averaging="classes")
    case.check_loss(loss, "_class_mean", class_vectors=loss.proxies)


def test_sharp_settings_stay_finite_in_float32():
    """The authors' code is NaN here: exp(beta (1 - base)) overflows for a sample at its own mean field."""
    loss = MeanFieldClassWiseMultiSimilarityLoss(4, 3, beta=500.0, reg_weight=1.0)
    embeddings = loss.proxies.detach()[[0, 0, 1, 2]].clone().requires_grad_()
    value = loss(embeddings, torch.tensor([0, 0, 1, 2]))
    value.backward()
    expected = loss.double()(embeddings.detach().double(), torch.tensor([0, 0, 1, 2]))
    torch.testing.assert_close(value, expected.float())
    assert embeddings.grad.isfinite().all()
