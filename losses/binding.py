"""What a loss keeps of the training it is bound to."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from losses.plugin import TrainingContext


class Binding:
    """The context lent by the loop, not owned: a copy or a pickle of the loss leaves trunk, pool and generator behind.

    A loss that was copied or unpickled is bound anew before it trains on.
    """

    def __init__(self, context: TrainingContext | None = None) -> None:
        self.context = context

    def __deepcopy__(self, memo: dict[int, Any]) -> "Binding":
        return Binding()

    def __reduce__(self) -> tuple[type["Binding"], tuple[()]]:
        return Binding, ()

    @property
    def parameters(self) -> Sequence[nn.Parameter]:
        """The trunk's parameters; none while unbound."""
        return self.context.trunk_parameters if self.context else ()

    @property
    def generator(self) -> torch.Generator | None:
        """For the loss's own draws; None, torch's global generator, while unbound."""
        return self.context.generator if self.context else None

    def weights(self) -> Tensor:
        """A copy of all trunk parameters in one vector (P,)."""
        return torch.cat([p.detach().flatten() for p in self.parameters])

    def pull_gradients(self, center: Tensor, strength: float) -> None:
        """Add `strength (theta - center)` to the trunk's gradients that exist; `center` (P,) as in `weights()`."""
        parts = center.split([p.numel() for p in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - part.view_as(parameter), alpha=strength)


def gradients_are_finite(parameters: Sequence[nn.Parameter]) -> bool:
    """Whether no gradient among those present holds a NaN or an infinity; asks the device once."""
    finite = [p.grad.isfinite().all() for p in parameters if p.grad is not None]
    return not finite or bool(torch.stack(finite).all())
