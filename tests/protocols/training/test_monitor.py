"""The monitor gives the mean loss and the first step that is not finite, on a CPU at once, on a device later."""

import math

import pytest
import torch

from protocols.training.monitor import NotFiniteError, StepMonitor
from tests.support.pretended_device import DEVICE, pretended_device

LOSSES = [0.1, 0.7, 1e-8, 3.0, 0.3]


def steps(monitor, losses, device="cpu", first=0):
    for number, loss in enumerate(losses, first):
        monitor.add_embeddings(torch.ones(4, 2, device=device), number)
        if loss is not None:
            monitor.add_loss(torch.full((), loss, device=device), number)


def expected_mean(losses):
    values = [float(torch.tensor(loss)) for loss in losses]
    return sum(values) / len(values)


def test_the_mean_is_that_of_the_single_losses():
    monitor = StepMonitor(torch.device("cpu"))
    assert monitor.mean_loss() is None
    steps(monitor, LOSSES)
    assert monitor.mean_loss() == expected_mean(LOSSES)
    steps(monitor, [None, 2.0, None], first=5)
    assert monitor.mean_loss() == 2.0
    steps(monitor, [None])
    assert monitor.mean_loss() is None


def test_a_device_is_read_once():
    with pretended_device() as mode:
        monitor = StepMonitor(torch.device(DEVICE))
        steps(monitor, LOSSES, DEVICE)
        assert mode.reads == 0
        assert monitor.mean_loss() == expected_mean(LOSSES)
        assert mode.reads == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_cpu_stops_at_once(bad):
    monitor = StepMonitor(torch.device("cpu"))
    steps(monitor, LOSSES)
    with pytest.raises(NotFiniteError, match="loss not finite at iteration 5"):
        steps(monitor, [bad], first=5)
    with pytest.raises(NotFiniteError, match="embeddings not finite at iteration 6"):
        monitor.add_embeddings(torch.tensor([[0.0, bad]]), 6)


def test_a_device_names_the_same_step_later():
    with pretended_device():
        monitor = StepMonitor(torch.device(DEVICE))
        steps(monitor, [1.0, 2.0, math.nan, math.nan], DEVICE, first=10)
        for read in (monitor.require_finite, monitor.mean_loss):
            with pytest.raises(NotFiniteError, match="loss not finite at iteration 12") as caught:
                read()
            assert caught.value.iteration == 12


def test_an_error_after_a_bad_step_is_explained_by_it():
    with pretended_device():
        monitor = StepMonitor(torch.device(DEVICE))
        steps(monitor, [1.0], DEVICE)
        with pytest.raises(ValueError, match="an error of the loss"), monitor.explained_errors():
            raise ValueError("an error of the loss")
        steps(monitor, [math.nan], DEVICE, first=1)
        with pytest.raises(NotFiniteError, match="loss not finite at iteration 1"), monitor.explained_errors():
            raise ValueError("an error of the loss")
