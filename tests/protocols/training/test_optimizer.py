"""Parameter groups of an optimizer, learning rates by depth, and schedules of torch by their names."""

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from protocols.training.build_method import build_method
from protocols.training.optimizer import JoinedParameters, LearningRates, build_optimizer, layer_factors
from results.spec.component import Component
from results.spec.conditions import OptimizerSettings, RateSchedule
from results.spec.method import Method

BLOCK = ("norm1.weight", "attn.qkv.weight", "attn.qkv.bias", "ls1.gamma", "mlp.0.weight", "mlp.2.bias")
PROXIES = Method(name="m", loss=Component(name="CosFaceLoss"), loss_lr=0.5, loss_weight_decay=0.25)


def vit(blocks):
    """Names of timm's vision transformers."""
    layers = [f"network.blocks.{block}.{name}" for block in range(blocks) for name in BLOCK]
    first = ["network.cls_token", "network.pos_embed", "network.patch_embed.proj.weight"]
    return [*first, *layers, "network.norm.weight", "network.norm.bias"]


def test_rates_by_depth_of_a_vision_transformer_are_those_of_beit():
    factors = layer_factors(vit(12), 0.75)
    assert list(factors) == vit(12)
    # BEiT's get_layer_id_for_vit of 14 layers: the embeddings are 0, the blocks 1 to 12, all behind them 13.
    layers = [0] * 3 + [block + 1 for block in range(12) for _ in BLOCK] + [13] * 2
    assert list(factors.values()) == [0.75 ** (13 - layer) for layer in layers]


@pytest.mark.parametrize(
    ("names", "depths"),
    [
        # Blocks of torchvision's transformers have their number behind a word, and numbers of their own inside.
        (
            ["conv_proj.weight", "layers.layer_0.ln.weight", "layers.layer_0.mlp.3.bias", "layers.layer_1.ln.bias"],
            [3, 2, 2, 1],
        ),
        (["conv1.weight", "bn1.weight", "layer1.0.conv1.weight", "layer1.1.bn1.bias"], [3, 3, 2, 1]),
        (["blocks.10.weight", "blocks.11.weight", "fc_norm.weight"], [2, 1, 0]),
    ],
)
def test_a_layer_is_what_the_trunk_numbers(names, depths):
    assert list(layer_factors(names, 0.5).values()) == [0.5**depth for depth in depths]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 3))
        self.embedder = nn.Linear(4, 3)


def groups(**changes):
    """Rate and weight decay of each parameter of `Network`, and of the proxies, by name."""
    network, method = Network(), build_method(PROXIES, [4] * 5, 3, 8)
    settings = OptimizerSettings(name="AdamW", lr=1.0, weight_decay=0.1, arguments={}, **changes)
    named = {parameter: name for name, parameter in [*network.named_parameters(), *method.loss.named_parameters()]}
    optimizer = build_optimizer(settings, network, method, PROXIES)
    found = {
        named[parameter]: (group["lr"], group["weight_decay"])
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert set(found) == set(named.values())
    return found


def test_norms_and_biases_can_be_left_out_of_the_weight_decay():
    decays = {name: decay for name, (_, decay) in groups(weight_decay_of="matrices").items()}
    assert {name for name, decay in decays.items() if decay == 0.1} == {
        *("trunk.0.weight", "trunk.2.weight", "embedder.weight")
    }
    assert {decay for name, decay in decays.items() if name.endswith("bias") or name == "trunk.1.weight"} == {0.0}
    assert decays["W"] == 0.25, "the loss keeps its own decay"
    assert {decay for name, (_, decay) in groups().items() if name != "W"} == {0.1}


def test_each_layer_has_a_part_of_the_rate_behind_it():
    rates = {name: rate for name, (rate, _) in groups(layer_decay=0.5, weight_decay_of="matrices").items()}
    assert rates.pop("W") == 0.5, "the loss keeps its own rate"
    parts = {"trunk.0": 0.125, "trunk.1": 0.25, "trunk.2": 0.5, "embedder": 1.0}
    assert rates == {name: parts[name.rpartition(".")[0]] for name in rates}
    assert len(rates) == 8


WARM_UP = {"name": "LinearLR", "arguments": {"start_factor": 0.25, "total_iters": 3}}
COSINE = {"name": "CosineAnnealingLR", "arguments": {"T_max": 6}}
BOTH = {"name": "SequentialLR", "arguments": {"milestones": [3]}, "schedulers": [WARM_UP, COSINE]}


def _by_hand(optimizer):
    parts = [lr_scheduler.LinearLR(optimizer, 0.25, total_iters=3)]
    parts.append(lr_scheduler.CosineAnnealingLR(optimizer, 6))
    return lr_scheduler.SequentialLR(optimizer, parts, [3])


@pytest.mark.parametrize(
    ("schedule", "by_hand"),
    [
        (COSINE, lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 6)),
        ({"name": "ExponentialLR", "arguments": {"gamma": 0.9}}, lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
        ({"milestones": [2, 4], "factor": 0.5}, lambda o: lr_scheduler.MultiStepLR(o, [2, 4], 0.5)),
        (BOTH, _by_hand),
        (
            {"name": "ChainedScheduler", "schedulers": [WARM_UP, {"name": "StepLR", "arguments": {"step_size": 2}}]},
            lambda o: lr_scheduler.ChainedScheduler(
                [lr_scheduler.LinearLR(o, 0.25, total_iters=3), lr_scheduler.StepLR(o, 2)]
            ),
        ),
    ],
    ids=["cosine", "exponential", "milestones", "sequential", "chained"],
)
@pytest.mark.filterwarnings("ignore:.*epoch parameter:UserWarning", "ignore:Detected call:UserWarning")
def test_a_schedule_of_torch_by_its_name_is_torchs(schedule, by_hand):
    def optimizer():
        two = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in (0.1, 3.0)]
        return torch.optim.AdamW(two)

    ours, theirs = optimizer(), optimizer()
    rates = LearningRates(RateSchedule.model_validate({**schedule, "every": "step"}), ours)
    scheduler = by_hand(theirs)
    seen = []
    for _ in range(9):
        assert [group["lr"] for group in ours.param_groups] == [group["lr"] for group in theirs.param_groups]
        seen.append(ours.param_groups[0]["lr"])
        rates.after("epoch")
        rates.after("step")
        scheduler.step()
    assert len(set(seen)) > 2


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        # Layers that were frozen for a step have made fewer steps than the others; SGD does not count steps.
        ("RMSprop", {"momentum": 0.9}, 3),
        ("SGD", {}, 2),
        ("SGD", {"momentum": 0.9}, 2),
        ("Adam", {}, 3),
        ("Rprop", {}, 3),
        ("Adafactor", {}, 7),
    ],
)
def test_joined_parameters_are_trained_to_the_same_numbers(name, arguments, left):
    def trained(joins):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 1), nn.Flatten(), nn.Linear(80, 6))
        network.to(memory_format=torch.channels_last)
        unused = nn.Parameter(torch.ones(2))
        optimizer = getattr(torch.optim, name)([*network.parameters(), unused], lr=0.01, **arguments)
        joined = JoinedParameters(optimizer)
        rates = LearningRates(RateSchedule(name="StepLR", arguments={"step_size": 2}, every="step"), optimizer)
        for step in range(6):
            # The first layers are frozen at first, as in a warm-up.
            network[:2].requires_grad_(step > 0)
            optimizer.zero_grad(set_to_none=True)
            joined.clear_gradients()
            network(torch.randn(2, 3, 6, 6)).square().sum().backward()
            joined.gather_gradients()
            nn.utils.clip_grad_value_([p for group in optimizer.param_groups for p in group["params"]], 0.5)
            optimizer.step()
            rates.after("step")
            if joins and step == 2:
                joined.join(network.parameters())
        assert len(optimizer.param_groups[0]["params"]) == (left if joins else 7)
        return [*network.parameters(), unused]

    for one, other in zip(trained(True), trained(False), strict=True):
        assert torch.equal(one, other)
