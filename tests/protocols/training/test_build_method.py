"""A method's description turned into modules."""

from importlib import metadata

import pytest
import torch
from pytorch_metric_learning import distances, miners, regularizers
from pytorch_metric_learning import losses as pml_losses
from torch import nn

import losses
from losses import ProxyAnchorLoss
from protocols.training.build_method import MethodError, build_component, build_method, check_component
from protocols.training.build_method import component_class as class_of
from protocols.training.check_method import with_versions
from protocols.training.optimizer import build_optimizer
from results.spec.component import Component, WeightedComponent
from results.spec.conditions import OptimizerSettings
from results.spec.method import Method

SIZES = {"num_classes": 5, "embedding_size": 3}


def _batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, 3, generator=generator), torch.arange(12) % 5


def _spec(name, arguments=None, **changes):
    return Method(name="toy", loss=Component(name=name, arguments=arguments or {}), **changes)


def test_our_losses_come_first():
    assert class_of("loss", "ProxyAnchorLoss") is losses.ProxyAnchorLoss is not pml_losses.ProxyAnchorLoss
    assert class_of("loss", "TripletMarginLoss") is pml_losses.TripletMarginLoss
    assert class_of("miner", "MultiSimilarityMiner") is losses.MultiSimilarityMiner
    assert class_of("regularizer", "LpRegularizer") is regularizers.LpRegularizer
    assert class_of("distance", "SNRDistance") is distances.SNRDistance


@pytest.mark.parametrize(
    ("kind", "name"),
    [("loss", "NoSuchLoss"), ("miner", "TripletMarginLoss"), ("loss", "greedy_k_center"), ("loss", "")],
)
def test_unknown_classes_are_refused(kind, name):
    with pytest.raises(MethodError, match=f"no {kind} class '{name}'"):
        class_of(kind, name)
    with pytest.raises(MethodError, match=f"no {kind} class '{name}'"):
        check_component(kind, Component(name=name))


def test_sizes_are_filled_in_where_required_and_placeholders_stand_for_them():
    swapped = {"num_classes": "$embedding_size", "embedding_size": "$num_classes"}
    assert build_component("loss", Component(name="CosFaceLoss", arguments=swapped), SIZES).W.shape == (5, 3)
    loss = build_component("loss", Component(name="CosFaceLoss"), SIZES)
    assert loss.W.shape == (3, 5)
    given = build_component("loss", Component(name="CosFaceLoss", arguments={"num_classes": 9}), SIZES)
    assert given.W.shape == (3, 9)


def test_components_nest():
    arguments = {
        "neg_margin": 0.8,
        "distance": {"component": {"kind": "distance", "name": "SNRDistance"}},
        "reducer": {"component": {"kind": "reducer", "name": "ThresholdReducer", "arguments": {"low": 0.1}}},
    }
    method = build_method(_spec("ContrastiveLoss", arguments), [4] * 5, 3, 8)
    assert isinstance(method.loss.distance, distances.SNRDistance)
    assert method.loss.neg_margin == 0.8
    arguments = {
        "loss": {"component": {"name": "MarginLoss", "arguments": {"num_classes": "$num_classes", "beta": 0.4}}},
        "miner": {"component": {"kind": "miner", "name": "MultiSimilarityMiner"}},
    }
    nested = build_component("loss", Component(name="CrossBatchMemory", arguments=arguments), SIZES)
    assert isinstance(nested.miner, miners.MultiSimilarityMiner)
    assert torch.equal(nested.loss.beta, torch.full((5,), 0.4)), "sizes reach nested components"
    assert nested.embedding_memory.shape == (1024, 3)


def test_a_method_with_a_regularizer_is_the_library_s():
    # As MLRC's SNR contrastive: pairs by SNR distance, plus a weighted regularizer of the embeddings.
    spec = _spec(
        "ContrastiveLoss",
        {"pos_margin": 0.1, "neg_margin": 0.9, "distance": {"component": {"kind": "distance", "name": "SNRDistance"}}},
        embedding_regularizer=WeightedComponent(name="ZeroMeanRegularizer", weight=0.3),
    )
    embeddings, labels = _batch()
    ours = build_method(spec, [4] * 5, 3, 8)(embeddings, labels)
    plain = pml_losses.ContrastiveLoss(0.1, 0.9, distance=distances.SNRDistance())
    theirs = pml_losses.ContrastiveLoss(
        0.1,
        0.9,
        distance=distances.SNRDistance(),
        embedding_regularizer=regularizers.ZeroMeanRegularizer(),
        embedding_reg_weight=0.3,
    )
    assert torch.equal(ours, theirs(embeddings, labels))
    assert not torch.equal(ours, plain(embeddings, labels))


def test_the_miner_chooses_the_pairs():
    spec = _spec("ContrastiveLoss", miner=Component(name="MultiSimilarityMiner", arguments={"epsilon": 0.05}))
    embeddings, labels = _batch()
    method = build_method(spec, [4] * 5, 3, 8)
    pairs = losses.MultiSimilarityMiner(epsilon=0.05)(embeddings, labels)
    assert torch.equal(method(embeddings, labels), pml_losses.ContrastiveLoss()(embeddings, labels, pairs))
    bare = build_method(_spec("ContrastiveLoss"), [4] * 5, 3, 8)
    assert bare.miner is None
    assert not torch.equal(method(embeddings, labels), bare(embeddings, labels))


@pytest.mark.parametrize("name", ["ContrastiveLoss", "NTXentLoss"])
def test_a_librarys_loss_computes_half_precision_in_float32(name):
    """In float16 a sum ends at 65,504. tests/losses/test_contract.py tries the suite's own losses."""
    method, (embeddings, labels) = build_method(_spec(name), [4] * 5, 3, 8), _batch()
    with torch.autocast("cpu", dtype=torch.float16):
        value = method(embeddings.half(), labels)
    assert value.dtype == torch.float32
    assert torch.equal(value, method(embeddings.half().float(), labels))


SETTINGS = OptimizerSettings()
PLUGIN, LIBRARY = ("ProxyAnchorLoss", {}), ("MarginLoss", {"learn_beta": True})


@pytest.mark.parametrize(("name", "arguments"), [PLUGIN, LIBRARY], ids=["plugin", "library"])
@pytest.mark.parametrize(
    ("changes", "lr", "weight_decay"),
    [
        ({}, 1e-6, 1e-4),
        ({"loss_lr": 0.5}, 0.5, 1e-4),
        ({"loss_lr": 0.5, "loss_weight_decay": 0.0}, 0.5, 0.0),
        ({"loss_weight_decay": 0.25}, 1e-6, 0.25),
    ],
)
def test_the_loss_has_an_optimizer_group_of_its_own(name, arguments, changes, lr, weight_decay):
    spec = _spec(name, arguments, **changes)
    method, network = build_method(spec, [4] * 5, 3, 8), nn.Linear(2, 3)
    optimizer = build_optimizer(SETTINGS, network, method, spec)
    assert isinstance(optimizer, torch.optim.RMSprop)
    trunk, own = optimizer.param_groups
    assert {id(p) for p in trunk["params"]} == {id(p) for p in network.parameters()}
    assert (trunk["lr"], trunk["weight_decay"], trunk["momentum"]) == (1e-6, 1e-4, 0.9)
    assert {id(p) for p in own["params"]} == {id(p) for p in method.loss.parameters()}
    assert (own["lr"], own["weight_decay"], own["momentum"]) == (lr, weight_decay, 0.9)


@pytest.mark.parametrize(("loss_lr", "expected"), [(None, 0.25), (0.5, 0.5)])
def test_a_method_can_have_its_own_rate_for_the_network(loss_lr, expected):
    spec = _spec("CosFaceLoss", lr=0.25, loss_lr=loss_lr)
    optimizer = build_optimizer(SETTINGS, nn.Linear(2, 3), build_method(spec, [4] * 5, 3, 8), spec)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, expected]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Adam", {}), ("AdamW", {"betas": [0.8, 0.9]}), ("SGD", {"momentum": 0.9}), ("RMSprop", {"momentum": 0.9})],
)
def test_the_fused_update_is_the_usual_one(name, arguments):
    spec, networks = _spec("ContrastiveLoss"), []
    for choice in ({}, {"foreach": False}):
        settings = OptimizerSettings.model_validate({"name": name, "lr": 0.01, "arguments": {**arguments, **choice}})
        torch.manual_seed(0)
        network = nn.Linear(20, 30)
        optimizer = build_optimizer(settings, network, build_method(spec, [4] * 5, 3, 8), spec)
        assert bool(optimizer.defaults.get("fused")) == (not choice and name != "RMSprop")
        for _ in range(20):
            optimizer.zero_grad()
            (network(torch.randn(8, 20)) ** 2).sum().backward()
            optimizer.step()
        networks.append(network.weight.detach())
    torch.testing.assert_close(*networks, rtol=1e-5, atol=1e-6)


NESTED = {"base_loss": {"component": {"name": "ProxyAnchorLoss", "arguments": {"alpha": 16}}}}
METHOD = Method(
    name="wrapped",
    loss=Component(name="XBMLoss", arguments=NESTED),
    miner=Component(name="MultiSimilarityMiner"),
    embedding_regularizer=WeightedComponent(name="LpRegularizer", weight=0.1),
)


def test_every_class_of_a_method_has_its_version(monkeypatch):
    release = f"pytorch-metric-learning {metadata.version('pytorch-metric-learning')}"
    versions = {
        "LpRegularizer": release,
        "MultiSimilarityMiner": "version 2",
        "ProxyAnchorLoss": "version 1",
        "XBMLoss": "version 1",
    }
    assert with_versions(METHOD).versions == versions
    monkeypatch.setattr(ProxyAnchorLoss, "VERSION", 2, raising=False)
    assert with_versions(METHOD).versions == {**versions, "ProxyAnchorLoss": "version 2"}
