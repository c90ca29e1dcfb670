"""The Recall@k surrogate against the authors' code, and what its equations promise."""

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from losses import RecallAtKLoss
from tests.support.golden_files import case_name, golden
from tests.support.linear_trunk import context_without_pool

CASES = golden("recall_at_k") + golden("recall_at_k_ext")


def loss_of(case, **settings):
    params = case.params
    sizes = params["k_values"], params["k_temperatures"], params["rank_temperature"]
    return RecallAtKLoss(*sizes, simix=params["simix"], **settings).to(case.dtype)


def with_authors_shares(case, loss):
    """Mixtures with the coefficients of the case: a pair of offsets in a class block has a number there."""
    alpha, per_class = case.tensor("mix_alpha"), case.params["samples_per_class"]
    number = {tuple(sorted(pair)): n for n, pair in enumerate(case.arrays["mix_pairs"].tolist())}
    turned = {tuple(sorted(pair)) for pair in case.arrays["mix_pairs"].tolist() if pair[0] > pair[1]}
    shares = [
        1 - alpha[block, n] if pair in turned else alpha[block, n]
        for block in range(len(alpha))
        for pair, n in sorted(number.items())
    ]
    assert per_class * (per_class - 1) // 2 == len(number)
    mix = loss.with_mixtures
    loss.with_mixtures = lambda rows, labels: mix(rows, labels, torch.stack(shares))


@pytest.mark.parametrize("excluded", [False, True], ids=["as released", "query left out"])
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_loss_and_gradient(case, excluded):
    loss = loss_of(case, count_query=not excluded)
    if case.params["simix"]:
        with_authors_shares(case, loss)
    case.check_loss(loss, "_query_excluded" if excluded else "")


def test_without_a_positive_pair_the_loss_is_zero():
    embeddings = torch.randn(4, 3, requires_grad=True)
    for simix in (False, True):
        value = RecallAtKLoss(simix=simix)(embeddings, torch.arange(4))
        value.backward()
        assert value == 0


def test_mixtures_are_drawn_from_the_training_s_generator_and_in_training_only():
    embeddings, labels = torch.randn(8, 4), torch.arange(8) // 4
    values = []
    for _ in range(2):
        loss = RecallAtKLoss(simix=True)
        loss.bind(context_without_pool(nn.Linear(2, 2), 2))
        with torch.device("meta"):
            values.append([float(loss(embeddings, labels)) for _ in range(2)])
        plain = RecallAtKLoss()(embeddings, labels)
        with torch.no_grad(), torch.device("meta"):
            assert loss(embeddings, labels) == plain
        assert loss.eval()(embeddings, labels) == plain
    assert values[0] == values[1]
    assert values[0][0] != values[0][1]
    rows, sources = RecallAtKLoss(simix=True).with_mixtures(normalize(embeddings), labels)
    assert rows.shape == (8 + 2 * 6, 4)
    assert torch.equal(labels[sources].bincount(), torch.tensor([10, 10]))
