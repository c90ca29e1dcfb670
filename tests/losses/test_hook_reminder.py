"""A loss that waits for hooks says so once if nobody calls them."""

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn

from losses import CCPLoss, HierarchicalProxyLoss, ProxyISALoss, Schedule
from losses.schedule import CALLS

WAITING: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "ProxyISALoss": (lambda: ProxyISALoss(4, 3, memory_size=50), "memory and filter off"),
    "CCPLoss": (lambda: CCPLoss.from_card(num_classes=4, embedding_size=3), "random proxies"),
    "HierarchicalProxyLoss": (lambda: HierarchicalProxyLoss(4, 3), "no groups of classes"),
}


def warnings_of(loss: nn.Module, calls: int) -> list[str]:
    embeddings, labels = torch.randn(8, 3, requires_grad=True), torch.arange(8) % 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(calls):
            loss(embeddings, labels)
    return [str(warning.message) for warning in caught if "hooks" in str(warning.message)]


@pytest.mark.parametrize("name", WAITING)
def test_it_warns_once_with_the_remedy(name: str) -> None:
    make, missing = WAITING[name]
    loss = make()
    assert warnings_of(copy.deepcopy(loss), CALLS - 1) == []
    (message,) = warnings_of(loss, 3 * CALLS)
    assert message.startswith(f"{name} was called {CALLS} times in training and its hooks were not: {missing}")
    assert "losses.schedule(loss, trainer)" in message
    assert "losses.Schedule" in message


@pytest.mark.parametrize("name", WAITING)
def test_it_is_silent_with_a_schedule(name: str) -> None:
    make, _ = WAITING[name]
    loss, model = make(), nn.Linear(2, 3)
    schedule = Schedule(
        loss,
        model,
        torch.arange(12) % 4,
        batch_size=4,
        trunk=model,
        images=lambda rows: torch.randn(len(rows), 2),
    )
    schedule.start_step()
    assert warnings_of(loss, CALLS) == []


def test_start_steps_and_evaluation_need_no_hook() -> None:
    assert warnings_of(ProxyISALoss(4, 3, memory_size=50, memory_start_step=10, filter_start_step=200), CALLS) == []
    assert warnings_of(ProxyISALoss(4, 3, memory_size=50).eval(), CALLS) == []
