"""The contextual loss against the authors' code, and where that code fails."""

import pytest
import torch
from torch.nn.functional import normalize

from losses import ContextualLoss
from tests.support.golden_files import case_name, golden

CASES = golden("contextual")


def loss_of(case, **settings):
    """The loss of a case and the factor between them."""
    params, factor = case.params, 1.0
    if params["combination"].startswith("lam*contrastive"):
        context, gamma = 1 - params["lam"], params["gamma"]
    else:  # the authors' code for 256 pixels
        factor = 1 - params["gamma"]
        context, gamma = params["lam"] / factor, params["gamma"] / factor
    values = {
        **{name: params[name] for name in ("k", "eps", "pos_margin", "neg_margin")},
        **{"context_weight": context, "gamma": gamma, "reg_similarity": params["reg_sim"]},
    }
    return ContextualLoss(**(values | settings)), factor


@pytest.mark.parametrize("part", ["", "_context", "_contrastive", "_reg"])
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_losses_and_gradients(case, part):
    alone = {
        "": {},
        "_context": {"context_weight": 1.0, "gamma": 0.0},
        "_contrastive": {"context_weight": 0.0, "gamma": 0.0},
        "_reg": {"context_weight": 0.0, "gamma": 1.0, "pos_margin": -1.0, "neg_margin": 1.0},
    }
    loss, factor = loss_of(case, **alone[part])
    case.check_loss(loss, part, 1.0 if part else factor)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_contextual_similarity(case):
    rows = normalize(case.tensor("embeddings"))
    case.check(loss_of(case)[0].contextual_similarity(rows @ rows.T), case.arrays["contextual_similarity"], "J")


@pytest.mark.parametrize("k", [4, 12, 30])
@pytest.mark.parametrize("spread", [1.0, 0.01], ids=["apart", "all within eps"])
def test_a_batch_in_which_all_rows_are_neighbours_has_a_loss_and_a_gradient(k, spread):
    noise = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))
    embeddings = (1 + spread * noise).requires_grad_()
    loss = ContextualLoss(k)
    value = loss(embeddings, torch.arange(12) % 3)
    value.backward()
    assert value.isfinite()
    assert embeddings.grad.isfinite().all()
    assert embeddings.grad.any()
    if k >= 12 or spread == 0.01:
        # W has only its first half, because nobody is far from anybody.
        rows = normalize(embeddings.detach())
        assert loss.contextual_similarity(rows @ rows.T).max() <= 0.5 + 1e-6


def test_the_head_stands_between_unit_embeddings_and_the_loss():
    embeddings, labels = torch.randn(12, 8), torch.arange(12) // 4
    loss = ContextualLoss(head_size=20, embedding_size=8)
    # An isometry changes no cosine.
    torch.nn.init.orthogonal_(loss.head.weight)
    torch.testing.assert_close(loss(7 * embeddings, labels), ContextualLoss()(embeddings, labels))
    (group,) = loss.param_groups(1e-4, 0.1)
    assert (group["params"], group["lr"], group["weight_decay"]) == ([loss.head.weight], 2e-4, 0.1)
    assert ContextualLoss().param_groups(1e-4, 0.1) == []
