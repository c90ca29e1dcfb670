"""In a plain loop with a `Schedule` a loss is the method that the suite runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from losses import CCPLoss, ProxyISALoss, Schedule
from losses.plugin import Clock, Needs, TrainingPlugin
from protocols.training.train_fold import train_fold
from results.spec.training_spec import Component
from tests.support.documentation import ROOT, blocks
from tests.support.plain_loop import five_epochs, losses_of_plain_loop

METHODS = {
    "ProxyISALoss": {"memory_size": 24, "memory_start_pass": 1, "filter_start_pass": 2},
    "CCPLoss": {"proxies_per_class": 2, "pool_size": 3, "patience": 1},
    "NIRLoss": {"base_loss": "proxy_anchor", "n_blocks": 2, "num_classes": "$num_classes"},
}


@pytest.mark.parametrize("name", METHODS)
def test_the_values_are_those_of_the_suite_s_loop(name: str, tmp_path: Path) -> None:
    spec, data = five_epochs(Component(name=name, arguments=METHODS[name]), tmp_path)
    suite = train_fold(spec, data).result
    values = losses_of_plain_loop(spec, data, suite)
    assert len(values) == 5
    assert values == [point.loss for point in suite.curve[1:]]


class Recorder(nn.Module, TrainingPlugin):
    """A loss that records its hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def on_epoch_start(self, clock: Clock) -> None:
        self.calls.append(("epoch", clock.epoch, clock.step))

    def on_step_start(self, clock: Clock) -> None:
        self.calls.append(("step", clock.step, clock.passes))

    def on_gradients(self, clock: Clock) -> bool:
        self.calls.append(("gradients", clock.step))
        return clock.step != 1


def test_hooks_are_called_in_order_and_once_per_step() -> None:
    loss = Recorder()
    schedule = Schedule(loss, nn.Linear(2, 2), [0, 0, 1, 1, 1], batch_size=2)
    may_step = []
    for _ in range(3):
        schedule.start_step()
        schedule.start_step()
        may_step.append(schedule.gradients_ready())
    assert may_step == [True, False, True]
    assert loss.calls == [
        *(("epoch", 0, 0), ("step", 0, 0), ("gradients", 0), ("step", 1, 0), ("gradients", 1)),
        *(("epoch", 1, 2), ("step", 2, 0), ("gradients", 2)),
    ]


def test_the_trunk_is_frozen_during_the_warm_up() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    loss = Recorder()
    loss.needs = Needs(warmup_epochs=1)
    with pytest.raises(ValueError, match=r"frozen trunk for 1 pass\(es\); give trunk="):
        Schedule(loss, model, [0, 1], batch_size=1)
    schedule = Schedule(loss, model, [0, 1], batch_size=1, trunk=model[0])
    frozen = []
    for _ in range(3):
        schedule.start_step()
        frozen.append(not model[0].weight.requires_grad)
        assert model[1].weight.requires_grad
        schedule.gradients_ready()
    assert frozen == [True, True, False]


def test_a_loss_that_picks_samples_asks_for_images() -> None:
    loss = CCPLoss.from_card(num_classes=2, embedding_size=4)
    with pytest.raises(ValueError, match="CCPLoss picks its proxies among embeddings of training images; give images="):
        Schedule(loss, nn.Linear(2, 4), [0, 1], batch_size=2)


def test_the_examples_of_the_docs_call_the_hooks() -> None:
    names: dict[str, Any] = {}
    for code in (one for one in blocks(ROOT / "docs" / "losses_elsewhere.md", "python") if "Schedule(" in one):
        exec(code, names)
    # The second, in a trainer of pytorch-metric-learning: CCP has picked its proxies.
    assert names["loss"].started


# --- the reminder ---

WAITING: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "ProxyISALoss": (lambda: ProxyISALoss(4, 3, memory_size=50), "memory or filter off"),
    "CCPLoss": (lambda: CCPLoss.from_card(num_classes=4, embedding_size=3), "random proxies"),
}


@pytest.mark.parametrize("name", WAITING)
def test_a_loss_that_waits_for_hooks_says_so_with_the_remedy(name: str) -> None:
    make, missing = WAITING[name]
    with pytest.warns(UserWarning, match=f"the hooks of {name} are not called: {missing}.*losses.Schedule"):
        make()(torch.randn(8, 3, requires_grad=True), torch.arange(8) % 4)
