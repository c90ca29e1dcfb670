"""What papers ask of a training beyond MLRC: learning rates in steps, clipped gradients, epochs that are passes."""

import math

import pytest
import torch
from pydantic import ValidationError

from protocols.training.train_fold import train_fold
from results.spec.conditions import OptimizerSettings, RateSchedule
from results.spec.training_spec import FoldSpec
from tests.support.toys import CONTRASTIVE, PROXIES, same_weights, settings, toy_fold


@pytest.fixture
def rates(monkeypatch):
    """Learning rates of all groups at every optimizer step."""
    seen = []
    step = torch.optim.SGD.step

    def watched(self, closure=None):
        seen.append(tuple(group["lr"] for group in self.param_groups))
        return step(self, closure)

    monkeypatch.setattr(torch.optim.SGD, "step", watched)
    return seen


Gradients = list[list[torch.Tensor | None]]
SGD = OptimizerSettings(name="SGD", lr=0.01, weight_decay=0.0, arguments={})


def test_a_warm_up_and_a_cosine_move_after_every_epoch_or_step(dataset, rates):
    parts = (
        RateSchedule(name="LinearLR", arguments={"start_factor": 0.5, "total_iters": 2}),
        RateSchedule(name="CosineAnnealingLR", arguments={"T_max": 4}),
    )
    expected = [0.5, 0.75, *((1 + math.cos(math.pi * step / 4)) / 2 for step in range(4))]
    sequence = RateSchedule(name="SequentialLR", arguments={"milestones": [2]}, schedulers=parts)
    for every, per_rate in (("step", 1), ("epoch", 2)):
        schedule = sequence.model_copy(update={"every": every})
        training = settings(max_epochs=3 * per_rate, iterations_per_epoch=2, optimizer=SGD, schedule=schedule)
        train_fold(*toy_fold(dataset, PROXIES, training))
        assert [rate[0] for rate in rates] == pytest.approx([0.01 * part for part in expected for _ in range(per_rate)])
        assert [rate[1] for rate in rates] == pytest.approx([10 * rate[0] for rate in rates])
        rates.clear()


@pytest.fixture
def gradients(monkeypatch):
    """Gradients of all parameters at every optimizer step, the network's first."""
    seen = []
    step = torch.optim.SGD.step

    def watched(self, closure=None):
        all_of_them = [p.grad for group in self.param_groups for p in group["params"]]
        seen.append([None if grad is None else grad.flatten().clone() for grad in all_of_them])
        return step(self, closure)

    monkeypatch.setattr(torch.optim.SGD, "step", watched)
    return seen


def together(gradients):
    """Those of a step in one vector, and none for the next training."""
    joined = [torch.cat([grad for grad in step if grad is not None]) for step in gradients]
    gradients.clear()
    return joined


def test_gradients_of_network_and_loss_are_clipped_by_value(dataset, gradients):
    free = train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD)))
    unclipped = together(gradients)
    bound = 2.0**-8  # A float32 as well.
    clipped = train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_value=bound)))
    assert max(step.abs().max() for step in together(gradients)) <= bound < min(step.abs().max() for step in unclipped)
    assert not same_weights(free.weights, clipped.weights)


def test_gradients_are_scaled_down_by_the_norm_of_all_together(dataset, gradients):
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD)))
    unclipped = [float(step.norm()) for step in together(gradients)]
    bound = min(unclipped) / 2
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_norm=bound)))
    assert [float(step.norm()) for step in together(gradients)] == pytest.approx([bound] * len(unclipped), rel=1e-4)
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_norm=2 * max(unclipped))))
    assert [float(step.norm()) for step in together(gradients)] == unclipped


@pytest.mark.parametrize("steps", [0, 3])
def test_a_warm_up_can_be_counted_in_steps(dataset, gradients, steps):
    """With a frozen trunk the optimizer sees gradients of embedder and loss only."""
    method = PROXIES.model_copy(update={"warmup_passes": 9, "warmup_steps": steps})
    train_fold(*toy_fold(dataset, method, settings(optimizer=SGD)))
    assert [step[0] is None for step in gradients] == [number < steps for number in range(len(gradients))]
    assert len(gradients) > 3


def test_an_epoch_without_a_number_of_iterations_is_a_pass(dataset):
    spec, data = toy_fold(dataset, CONTRASTIVE, settings(iterations_per_epoch=None, max_epochs=3))
    result = train_fold(spec, data).result
    assert len(data.train) == 24
    assert result.iterations == 3 * (24 // 8)
    assert [point.iteration for point in result.curve] == [0, 3, 6, 9]


def test_a_training_is_validated_or_settled_and_not_both(dataset):
    spec, _ = toy_fold(dataset)
    for change in ({"checkpoint_epoch": 1}, {"validation_classes": ()}):
        with pytest.raises(ValidationError, match="either validation classes or a checkpoint_epoch"):
            FoldSpec.model_validate({**spec.model_dump(), **change})
