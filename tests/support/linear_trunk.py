"""The smallest model a loss can be bound to, and a moment to call its hooks at."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from losses import Clock, TrainingContext

CLOCK = Clock(epoch=0, step=0, steps_per_epoch=1, passes=0)


class Linear(nn.Module):
    """`f(x) = x w`."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


def context(trunk: nn.Module, classes: int, embed_pool: Callable[[int], Tensor]) -> TrainingContext:
    return TrainingContext(list(trunk.parameters()), classes, torch.Generator(), embed_pool)


def context_without_pool(trunk: nn.Module, classes: int) -> TrainingContext:
    return context(trunk, classes, lambda per_class: torch.zeros(classes, per_class, 1))
