"""What papers ask of a training beyond MLRC: rates in steps, clipped gradients, epochs and switches by passes."""

import math

import pytest
import torch
from pydantic import ValidationError

import losses
from losses import ProxyISALoss
from protocols.training.train_fold import train_fold
from results.spec.component import Component
from results.spec.conditions import OptimizerSettings, RateSchedule
from results.spec.method import Method
from results.spec.training_spec import FoldSpec
from tests.support.toys import CONTRASTIVE, PROXIES, same_weights, settings, toy_fold

SGD = OptimizerSettings(name="SGD", lr=0.01, weight_decay=0.0, arguments={})


def test_a_warm_up_and_a_cosine_move_after_every_epoch_or_step(dataset, sgd_steps):
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
        networks, own = zip(*(rates for rates, _ in sgd_steps), strict=True)
        assert networks == pytest.approx([0.01 * part for part in expected for _ in range(per_rate)])
        assert own == pytest.approx([10 * rate for rate in networks])
        sgd_steps.clear()


def together(steps):
    """The gradients of each step in one vector, and none for the next training."""
    joined = [torch.cat([grad.flatten() for grad in grads if grad is not None]) for _, grads in steps]
    steps.clear()
    return joined


def test_gradients_of_network_and_loss_are_clipped_by_value(dataset, sgd_steps):
    free = train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD)))
    unclipped = together(sgd_steps)
    bound = 2.0**-8  # A float32 as well.
    clipped = train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_value=bound)))
    assert max(step.abs().max() for step in together(sgd_steps)) <= bound < min(step.abs().max() for step in unclipped)
    assert not same_weights(free.weights, clipped.weights)


def test_gradients_are_scaled_down_by_the_norm_of_all_together(dataset, sgd_steps):
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD)))
    unclipped = [float(step.norm()) for step in together(sgd_steps)]
    bound = min(unclipped) / 2
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_norm=bound)))
    assert [float(step.norm()) for step in together(sgd_steps)] == pytest.approx([bound] * len(unclipped), rel=1e-4)
    train_fold(*toy_fold(dataset, PROXIES, settings(optimizer=SGD, clip_norm=2 * max(unclipped))))
    assert [float(step.norm()) for step in together(sgd_steps)] == unclipped


@pytest.mark.parametrize("steps", [0, 3])
def test_a_warm_up_can_be_counted_in_steps(dataset, sgd_steps, steps):
    """With a frozen trunk the optimizer sees gradients of embedder and loss only."""
    method = PROXIES.at({"warmup.passes": 9, "warmup.steps": steps})
    train_fold(*toy_fold(dataset, method, settings(optimizer=SGD)))
    assert [grads[0] is None for _, grads in sgd_steps] == [number < steps for number in range(len(sgd_steps))]
    assert len(sgd_steps) > 3


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


def test_proxy_isas_memory_and_filter_start_after_two_and_three_passes(dataset, monkeypatch):
    """In a training whose "epoch" is a number of iterations and not a pass."""
    seen = []

    class Observed(ProxyISALoss):
        def on_step_start(self, clock):
            super().on_step_start(clock)
            seen.append((clock.passes, *self.switches()))

    monkeypatch.setattr(losses, "ProxyISALoss", Observed)
    loss = Component(name="ProxyISALoss", arguments={"memory_size": "$training_images"})
    method = Method(name="m", loss=loss, samples_per_class=1, loss_lr=0.01)
    spec, data = toy_fold(dataset, method, settings(max_epochs=4, iterations_per_epoch=7))
    assert train_fold(spec, data).result.status == "ok"
    passes = [step * 8 // len(data.train) for step in range(4 * 7)]
    assert seen == [(done, done >= 2, done >= 3) for done in passes]
    assert (passes.index(2), passes.index(3)) == (6, 9) != (2 * 7, 3 * 7)
