"""The reducers give what pytorch-metric-learning's give."""

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.reducers import AvgNonZeroReducer, DivisorReducer, MeanReducer

from losses.without_waiting import WaitlessDivisor, WaitlessMeanAboveZero, use_waitless_reducers
from tests.support.pretended_device import DEVICE, pretended_device

EMBEDDINGS = torch.ones(3, 2)
SOME = torch.tensor([0.5, 0.0, -1.0, 2.0, 0.25])


def reduced(reducer, losses, divisor=None):
    losses = losses.detach().clone().requires_grad_()
    indices = torch.arange(len(losses), device=losses.device)
    term = {"losses": losses, "indices": indices, "reduction_type": "element", "divisor": divisor}
    embeddings = EMBEDDINGS.to(losses.device).requires_grad_()
    value = reducer({"loss": term}, embeddings, None)
    value.backward()
    gradient = torch.zeros_like(losses) if losses.grad is None else losses.grad
    return value.detach().cpu(), gradient.cpu()


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("losses", [SOME, -SOME.abs()], ids=["some above 0", "none above 0"])
def test_mean_above_zero(losses):
    expected = reduced(AvgNonZeroReducer(), losses)
    assert same(reduced(WaitlessMeanAboveZero(), losses), expected)
    with pretended_device() as mode:
        there = losses.to(DEVICE)
        mode.waits.clear()
        losses_there = there.requires_grad_()
        value = WaitlessMeanAboveZero().element_reduction_helper(losses_there, None)
        value.backward()
        assert mode.waits.total() == 0
        torch.testing.assert_close((value.detach().cpu(), there.grad.cpu()), expected)


@pytest.mark.parametrize("divisor", [0, 3, 2.5])
def test_divisor(divisor):
    expected = reduced(DivisorReducer(), SOME, divisor)
    assert same(reduced(WaitlessDivisor(), SOME, divisor), expected)
    assert same(reduced(WaitlessDivisor(), SOME, torch.tensor(divisor)), expected)


def test_usual_reducers_are_replaced_inside_a_loss():
    loss = pml.ContrastiveLoss()
    use_waitless_reducers(loss)
    assert {type(reducer) for reducer in loss.reducer.reducers.values()} == {WaitlessMeanAboveZero}
    other = pml.ContrastiveLoss(reducer=MeanReducer())
    use_waitless_reducers(other)
    assert {type(reducer) for reducer in other.reducer.reducers.values()} == {MeanReducer}


def test_reducers_with_statistics_stay():
    loss = pml.TripletMarginLoss(reducer=AvgNonZeroReducer(collect_stats=True))
    use_waitless_reducers(loss)
    assert type(loss.reducer) is AvgNonZeroReducer
