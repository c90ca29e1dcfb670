"""HIST against the authors' code, and what float32 must not do to it."""

import copy

import pytest
import torch
from torch.nn.functional import normalize

from losses import HISTLoss
from tests.support.golden_files import case_name, golden

CASES = golden("hist")
PARAMETERS = {
    "proxies": "means",
    "log_variances": "log_vars",
    "network.first.weight": "theta1_weight",
    "network.first.bias": "theta1_bias",
    "network.norm.weight": "bn1_weight",
    "network.norm.bias": "bn1_bias",
    "network.second.weight": "theta2_weight",
    "network.second.bias": "theta2_bias",
}


def loss_of(case, lam=None):
    params = case.params
    loss = HISTLoss(
        params["num_classes"],
        params["embedding_size"],
        params["tau"],
        params["alpha"],
        params["lambda_s"] if lam is None else lam,
        hidden=params["hidden"],
    ).to(case.dtype)
    for name, parameter in loss.named_parameters():
        case.load(parameter, PARAMETERS[name])
    return loss


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_loss_and_all_gradients(case):
    loss = loss_of(case)
    case.check_loss(loss, **{PARAMETERS[name]: parameter for name, parameter in loss.named_parameters()})
    state = {"rtol": case.sidecar["tolerance"]["state_rtol"], "atol": 1e-12}
    for name in ("running_mean", "running_var"):
        expected = case.tensor(f"{name}_after")
        torch.testing.assert_close(getattr(loss.network.norm, name), expected, **state)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_parts(case):
    loss, embeddings, labels = loss_of(case), case.tensor("embeddings"), case.tensor("labels")
    distances = loss.class_distances(embeddings)
    case.check(distances, case.arrays["distance"], "distance")
    hypergraph, classes = loss.hypergraph(distances, labels), case.tensor("classes_in_batch")
    case.check(hypergraph[:, classes], case.arrays["hypergraph"], "hypergraph")
    assert hypergraph.any(0).nonzero().squeeze(1).equal(classes)
    case.check(loss.network(embeddings, hypergraph), case.arrays["logits"], "logits")
    case.check(loss_of(case, lam=0.0)(embeddings, labels), case.arrays["distribution_loss"], "distribution_loss")
    both = loss_of(case, lam=1.0)(embeddings, labels)
    case.check(both, case.arrays["distribution_loss"] + case.arrays["ce_loss"], "ce_loss")


def wrong_samples(tau):
    """Every sample of classes 0 to 3 lies at the mean of another class, and those of class 4 at their own."""
    torch.manual_seed(0)
    loss = HISTLoss(5, 6, tau=tau, hidden=8, lam=0.0)
    labels = torch.arange(10) % 5
    placed = torch.where(labels < 4, (labels + 1) % 4, labels)
    return loss, loss.proxies.detach()[placed] + 0.01 * torch.randn(10, 6), labels


@pytest.mark.parametrize("tau", [8.0, 64.0, 1000.0])
def test_the_worst_samples_count_in_float32(tau):
    """In the released code a probability below e^-103 is 0 in float32, and its sample leaves the loss."""
    loss, embeddings, labels = wrong_samples(tau)
    single, double = embeddings.clone().requires_grad_(), embeddings.double().requires_grad_()
    value, expected = loss(single, labels), copy.deepcopy(loss).double()(double, labels)
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=0.0)
    (gradient,) = torch.autograd.grad(value, single)
    (right,) = torch.autograd.grad(expected, double)
    assert (gradient[labels < 4].norm(dim=1) > 0).all()
    torch.testing.assert_close(gradient.double(), right, rtol=1e-3, atol=1e-3 * right.abs().max().item())


def test_two_classes_and_one_sample():
    loss = HISTLoss(2, 4, hidden=8, lam=0.0)
    embeddings, labels = torch.randn(6, 4), torch.tensor([0, 1, 1, 0, 1, 1])
    means = normalize(loss.proxies)
    variances = loss.log_variances.clamp(0, 6).exp()
    distances = ((normalize(embeddings).unsqueeze(1) - means).square() / variances).sum(2)
    expected = -(-32 * distances).log_softmax(1).gather(1, labels.unsqueeze(1)).mean()
    torch.testing.assert_close(loss(embeddings, labels), expected)
    # One sample is normalised as in evaluation, and moves no running statistics.
    loss = HISTLoss(2, 4, hidden=8)
    before = copy.deepcopy(loss.state_dict())
    assert loss(embeddings[:1], labels[:1]) == loss.eval()(embeddings[:1], labels[:1])
    torch.testing.assert_close(loss.state_dict(), before, rtol=0, atol=0)


def test_groups_of_the_optimizer():
    loss = HISTLoss(5, 6, hidden=8, network_lr_factor=0.006)
    means, network = loss.param_groups(0.1, 5e-5)
    assert [parameter.shape for parameter in means["params"]] == [(5, 6), (5, 6)]
    assert (means["lr"], network["lr"]) == pytest.approx((0.1, 6e-4))
    assert means["weight_decay"] == network["weight_decay"] == 5e-5
    assert len(means["params"]) + len(network["params"]) == len(list(loss.parameters()))
