"""SupAP and ROADMAP against the authors' code, and what their equations promise."""

import pytest
import torch
from torch.nn.functional import normalize

from losses import RoadmapLoss
from losses.pair_losses import mean_margin_violations
from tests.support.golden_files import case_name, golden

CASES = golden("roadmap")


def loss_of(case, **settings):
    params = case.params
    names = ("tau", "rho", "delta", "start", "offset", "pos_margin", "neg_margin")
    return RoadmapLoss(**({name: params[name] for name in names} | settings)).to(case.dtype)


def check(case, value, embeddings, name):
    (gradient,) = torch.autograd.grad(value, embeddings)
    case.check(value, case.arrays[f"loss{name}"], f"loss{name}")
    case.check_gradient(gradient, f"grad_embeddings{name}")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_losses_and_gradients(case):
    labels = case.tensor("labels")
    for name, settings in {
        "_supap": {"lam": 0.0},
        "_calibration": {"lam": 1.0},
        "_supap_2021": {"lam": 0.0, "step": "first_release"},
    }.items():
        embeddings = case.leaf("embeddings")
        check(case, loss_of(case, **settings)(embeddings, labels), embeddings, name)
    if "ref_labels" not in case.arrays:
        embeddings = case.leaf("embeddings")
        check(case, 2 * loss_of(case)(embeddings, labels), embeddings, "")


@pytest.mark.parametrize("case", [case for case in CASES if "ref_labels" in case.arrays], ids=case_name)
def test_authors_losses_against_a_memory(case):
    loss, embeddings, references = loss_of(case), case.leaf("embeddings"), normalize(case.tensor("ref_embeddings"))
    same = case.tensor("labels").unsqueeze(1) == case.tensor("ref_labels")
    # Some references are equal. Sums of products keep such ties, which a matrix product may break by rounding.
    similarity = (normalize(embeddings).unsqueeze(1) * references).sum(2)
    check(case, 1 - loss.average_precision(similarity, same).mean(), embeddings, "_supap_ref")
    similarity = (normalize(embeddings).unsqueeze(1) * references).sum(2)
    check(
        case,
        mean_margin_violations(similarity, same, ~same, loss.pos_margin, loss.neg_margin),
        embeddings,
        "_calibration_ref",
    )


def test_the_step_is_continuous_at_delta_unless_an_offset_is_given():
    around = torch.tensor([0.05, 0.05 + 1e-9], dtype=torch.float64)
    below, above = RoadmapLoss().smooth_step(around)
    assert float(above - below) == pytest.approx(0, abs=1e-6)
    below, above = RoadmapLoss(offset=1.44).smooth_step(around)
    assert float(above - below) == pytest.approx(-0.0533, abs=1e-4)
    below, above = RoadmapLoss(step="first_release", offset=1.44).smooth_step(around)
    assert float(above - below) == pytest.approx(6.44 - 1.4933, abs=1e-4)


def test_without_delta_the_line_begins_at_zero():
    step = RoadmapLoss(delta=None, offset=1.0).smooth_step(torch.tensor([-0.01, 0.0, 0.02]))
    torch.testing.assert_close(step, torch.tensor([torch.sigmoid(torch.tensor(-1.0)).item(), 0.5, 100 * 0.02 + 1.0]))
    with pytest.raises(ValueError, match="delta None needs an offset"):
        RoadmapLoss(delta=None)
