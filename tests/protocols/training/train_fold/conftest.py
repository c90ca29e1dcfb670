"""What the optimizer of a training sees."""

import pytest
import torch


@pytest.fixture
def sgd_steps(monkeypatch):
    """Learning rates of the groups and gradients of all parameters, the network's first, at every step of SGD."""
    seen = []
    step = torch.optim.SGD.step

    def watched(optimizer, closure=None):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [None if p.grad is None else p.grad.clone() for p in parameters]
        seen.append(([group["lr"] for group in optimizer.param_groups], gradients))
        return step(optimizer, closure)

    monkeypatch.setattr(torch.optim.SGD, "step", watched)
    return seen
