"""Non-isotropy regularisation and its flow against the authors' code, and what the equations promise."""

import numpy as np
import pytest
import torch
from pytorch_metric_learning import losses as pml_losses
from torch import nn
from torch.nn import functional

from losses import CouplingFlow, NIRLoss, ProxyGMLLoss, ProxyISALoss, SoftTripleLoss
from losses.bridge import THREE
from losses.plugin import Needs
from tests.support.golden_files import case_name, golden
from tests.support.linear_trunk import CLOCK, context_without_pool

CASES = golden("nir")


def loss_of(case):
    params = case.params
    loss = NIRLoss.from_card(
        base_loss="proxy_anchor",
        embedding_size=params["embedding_size"],
        omega=params["w_align"],
        num_classes=params["num_classes"],
        n_blocks=params["n_blocks"],
        depth=params["subnet_depth"],
        width=params["subnet_width"],
        clamp=params["clamp"],
        cond=params["cond_mode"],
        alpha=params["proxy_alpha"],
        margin=params["proxy_delta"],
    ).to(case.dtype)
    case.load(loss.base_loss.proxies, "proxies")
    for key, parameter in flow_parameters(loss).items():
        case.load(parameter, f"flow.{key}")
    return loss


def flow_parameters(loss):
    """Parameters under the reference files' names: `b0.s1.w2` is the third linear layer of subnet s1 of block 0."""
    kinds = {"weight": "w", "bias": "bias"}
    named = {}
    for name, parameter in loss.flow.named_parameters():
        _, block, subnet, layer, kind = name.split(".")
        named[f"b{block}.{subnet}.{kinds[kind]}{int(layer) // 2}"] = parameter
    return named


def terms(loss, embeddings, labels):
    return {
        name: part["losses"] for name, part in loss.compute_loss(embeddings, labels, None, embeddings, labels).items()
    }


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_flow(case):
    loss = loss_of(case)
    x = functional.normalize(case.tensor("embeddings"), dim=1)
    condition = loss.condition(x, case.tensor("labels"))
    z, log_det = loss.flow(x, condition)
    case.check(z, case.arrays["z"], "z")
    case.check(log_det, case.arrays["logdet"], "logdet")
    case.check(loss.nll(x, condition), case.arrays["nll"], "nll")
    for k, block in enumerate(loss.flow.blocks):
        np.testing.assert_array_equal(block.permutation, case.arrays["perm"][k])
        assert block.first == case.params["split"]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_generative_direction(case):
    loss = loss_of(case)
    condition = loss.condition(case.tensor("embeddings"), case.tensor("labels"))
    x, log_det = loss.flow.inverse(case.tensor("zeta"), condition)
    case.check(x, case.arrays["x_generated"], "x_generated")
    case.check(log_det, case.arrays["logdet_inverse"], "logdet_inverse")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_regulariser_and_its_gradients(case):
    loss, embeddings = loss_of(case), case.leaf("embeddings")
    term = terms(loss, embeddings, case.tensor("labels"))["nir_loss"]
    assert term.dtype == torch.float64
    term.backward()
    case.check(term, case.arrays["nir_term"], "nir_term")
    case.check_gradient(embeddings.grad, "nirgrad_embeddings")
    case.check_gradient(loss.base_loss.proxies.grad, "nirgrad_proxies")
    gradients = flow_parameters(loss)
    assert {f"nirgrad.{key}" for key in gradients} == {key for key in case.arrays if key.startswith("nirgrad.")}
    for key, parameter in gradients.items():
        case.check_gradient(parameter.grad, f"nirgrad.{key}")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_whole_loss(case):
    """The authors weigh a class by its share of the batch, the paper equally: one loss where the batch is balanced."""
    labels = case.tensor("labels")
    loss, embeddings = loss_of(case), case.leaf("embeddings")
    counts = labels.bincount()
    if (counts[counts > 0] == counts.max()).all():
        value = loss(embeddings, labels)
    else:
        parts = loss.base_loss.compute_loss(embeddings, labels, None, embeddings, labels)
        share = labels.bincount(minlength=case.params["num_classes"]).to(case.dtype) / len(labels)
        proxy_loss = (share * parts["pos_loss"]["losses"]).sum() + parts["neg_loss"]["losses"].mean()
        case.check(proxy_loss, case.arrays["proxy_loss"], "proxy_loss")
        value = loss.omega * proxy_loss + terms(loss, embeddings, labels)["nir_loss"]
    value.backward()
    case.check(value, case.arrays["loss"], "loss")
    case.check_gradient(embeddings.grad, "grad_embeddings")
    case.check_gradient(loss.base_loss.proxies.grad, "grad_proxies")


def small(base="proxy_anchor", **params):
    torch.manual_seed(0)
    sizes = {"n_blocks": 2, "depth": 2, "width": 8}
    classes = {"num_classes": 3} if isinstance(base, str) else {}
    return NIRLoss.from_card(base_loss=base, embedding_size=4, **{**sizes, **classes, **params})


def batch():
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 3


def has_gradient(parameters):
    return any(p.grad is not None and p.grad.abs().max() > 0 for p in parameters)


@pytest.mark.parametrize("omega", [0.3, 0.0])
@pytest.mark.parametrize("base", ["proxy_anchor", "proxy_nca", "soft_triple"])
def test_loss_is_omega_times_the_base_plus_the_mean_of_exponentials(base, omega):
    """With omega = 0, NIR remains without the proxy loss, as in the ablation of the paper's Table 4."""
    loss, (embeddings, labels) = small(base, omega=omega), batch()
    nll = loss.nll(embeddings, loss.condition(embeddings, labels))
    expected = omega * loss.base_loss(embeddings, labels) + nll.exp().mean()
    torch.testing.assert_close(loss(embeddings, labels), expected)


@pytest.mark.parametrize(("preset", "sizes"), [("paper", (8, 3, 128)), ("code", (5, 8, 128))])
def test_a_preset_has_the_sizes_of_its_source(preset, sizes):
    loss = NIRLoss.from_card(base_loss="proxy_anchor", num_classes=9000, embedding_size=4, preset=preset)
    layers = [layer for layer in loss.flow.blocks[0].s1 if isinstance(layer, nn.Linear)]
    assert (len(loss.flow.blocks), len(layers), layers[0].out_features) == sizes
    assert loss.base_loss.proxies.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_the_needs_of_the_base_count_too():
    base = ProxyISALoss(3, 4, memory_size=8)
    base.needs = Needs(warmup_epochs=5)
    assert small(base).needs == base.needs
    assert small().needs == Needs(warmup_epochs=1)


def test_condition_of_soft_triple_is_constant_in_the_embeddings():
    """With one, log |det df/dx| would not be the density's: the class vector is chosen by the sample."""
    loss, (embeddings, labels) = small("soft_triple", centers_per_class=3), batch()
    embeddings.requires_grad_()
    condition = loss.condition(embeddings, labels)
    condition.sum().backward()
    assert embeddings.grad is None
    assert has_gradient([loss.base_loss.fc])
    assert isinstance(loss.base_loss, SoftTripleLoss)
    torch.testing.assert_close(condition.norm(dim=1), torch.ones(6))


def test_proxy_backprop_off_keeps_the_proxies_out_of_the_flow():
    loss, (embeddings, labels) = small(proxy_backprop=False), batch()
    terms(loss, embeddings, labels)["nir_loss"].backward()
    assert not has_gradient(loss.base_loss.parameters())
    assert has_gradient(loss.flow.parameters())


@pytest.mark.parametrize(
    ("mode", "moves_proxies", "moves_flow"),
    [("generate", True, False), ("reverse_match", False, True), ("generate_and_match", True, True)],
)
def test_self_regularisation_moves_what_its_name_says(mode, moves_proxies, moves_flow):
    loss, (embeddings, labels) = small(self_regularization=mode), batch()
    embeddings.requires_grad_()
    torch.manual_seed(1)
    value = terms(loss, embeddings, labels)["self_loss"]
    torch.manual_seed(1)
    samples = loss.generate(loss.condition(embeddings, labels))
    torch.testing.assert_close(samples.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(value, loss.omega * loss.base_loss(samples, labels))
    value.backward()
    assert has_gradient(loss.base_loss.parameters()) == moves_proxies
    assert has_gradient(loss.flow.parameters()) == moves_flow
    assert not has_gradient([embeddings])


def test_exponential_is_taken_in_float64():
    loss, (embeddings, labels) = small().eval(), batch()
    with torch.no_grad():
        for block in loss.flow.blocks:
            block.s1[-1].bias[2:].fill_(9.0)  # shifts of 9: nll near 100, where float32 has no exponential left
    term = terms(loss, embeddings, labels)["nir_loss"]
    assert term > torch.finfo(torch.float32).max
    assert term.isfinite()


def test_sigma_and_temperature():
    embeddings, labels = batch()
    soft = terms(small(sigma="softplus", temperature=2.0), embeddings, labels)["nir_loss"]
    plain = small()
    nll = plain.nll(embeddings, plain.condition(embeddings, labels)).double()
    torch.testing.assert_close(soft, functional.softplus(nll / 2).mean())


def of_the_library():
    """In version 3 the library's losses have no `proxies`."""
    return pml_losses.ProxyAnchorLoss(3, 4) if not THREE else Foreign()


class Foreign(nn.Module):
    def __init__(self):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(3, 4))

    def forward(self, embeddings, labels, indices_tuple=None):
        return functional.cross_entropy(embeddings @ self.proxies.t(), labels)


@pytest.mark.parametrize("base", ["soft_triple", of_the_library()])
def test_groups_have_their_rates_and_never_decay(base):
    loss = small(base)
    proxies, flow = loss.param_groups(lr=0.04, weight_decay=0.5)
    assert [id(p) for p in proxies["params"]] == [id(p) for p in loss.base_loss.parameters()]
    assert {id(p) for p in flow["params"]} == {id(p) for p in loss.flow.parameters()}
    assert (proxies["lr"], flow["lr"]) == (0.04, pytest.approx(5e-4))
    assert proxies["weight_decay"] == flow["weight_decay"] == 0


@pytest.mark.parametrize("where", ["nowhere", "flow", "proxies", "trunk"])
def test_steps_with_a_gradient_that_is_not_finite_are_skipped(where):
    trunk, loss = nn.Linear(4, 4), small()
    loss.bind(context_without_pool(trunk, 3))
    embeddings, labels = batch()
    loss(trunk(embeddings), labels).backward()
    spoilt = {"flow": loss.flow.blocks[0].s1[0].weight, "proxies": loss.base_loss.proxies, "trunk": trunk.bias}
    if where in spoilt:
        spoilt[where].grad.view(-1)[1] = torch.inf
    assert loss.on_gradients(CLOCK) == (where == "nowhere")


def test_a_base_with_one_row_per_class_is_accepted_whatever_its_class():
    embeddings, labels = batch()
    for base in (
        ProxyGMLLoss(3, 4, proxies_per_class=1, r=0.9),
        ProxyISALoss(3, 4, memory_size=8),
        of_the_library(),
        SoftTripleLoss(3, 4, centers_per_class=5),
    ):
        assert small(base)(embeddings, labels).isfinite()


@pytest.mark.parametrize(("condition", "seeing"), [("dense", {0, 1, 2, 3}), ("start", {0}), ("mid", {2}), ("end", {3})])
def test_only_the_chosen_blocks_see_the_condition(condition, seeing):
    flow = CouplingFlow(4, 3, n_blocks=4, depth=2, width=8, condition=condition)
    x, c = torch.randn(2, 4), torch.randn(2, 3)
    moved = {k for k, block in enumerate(flow.blocks) if not torch.equal(block(x, c)[0], block(x, c + 1)[0])}
    assert moved == seeing
