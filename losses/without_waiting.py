"""Reducers of pytorch-metric-learning that do not make the host wait for a GPU.

pytorch-metric-learning (PML) reads on the host how many losses are above 0, or whether a divisor is 0. On a CPU that
costs nothing, and these classes then do as PML does, to the bit.
"""

from collections.abc import Callable
from typing import Any

import torch
from pytorch_metric_learning.reducers import AvgNonZeroReducer, DivisorReducer
from torch import Tensor, nn


class KnownOnHost:
    """Values of buffers, as the host last read or wrote them.

    A buffer stays the truth: if anybody else changes or replaces it, it is read again. Copies and pickles of the loss
    begin without known values.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Tensor, int, Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "KnownOnHost":
        return KnownOnHost()

    def __reduce__(self) -> tuple[type["KnownOnHost"], tuple[()]]:
        return KnownOnHost, ()

    def read(self, name: str, buffer: Tensor, value_of: Callable[[Tensor], Tensor] | None = None) -> Any:
        """The value of a buffer; the host waits for the device only if the buffer has changed since the last call.

        Args:
            name: Name of the value.
            buffer: The buffer, with one element unless there is `value_of`.
            value_of: Computes the value, a tensor with one element, from the buffer; None takes the buffer itself.

        Returns:
            The value, a Python number or bool.
        """
        known = self._known.get(name)
        if known is not None and known[0] is buffer and known[1] == buffer._version:
            return known[2]
        return self._keep(name, buffer, (value_of(buffer) if value_of else buffer).item())

    def write(self, name: str, buffer: Tensor, value: Any) -> None:
        """Set a buffer to a value.

        Args:
            name: Name of the value.
            buffer: The buffer, with one element.
            value: The value; a buffer that is known to have it is not written.
        """
        known = self._known.get(name)
        if known is None or known[0] is not buffer or known[1] != buffer._version or known[2] != value:
            buffer.fill_(value)
            self._keep(name, buffer, value)

    def _keep(self, name: str, buffer: Tensor, value: Any) -> Any:
        self._known[name] = (buffer, buffer._version, value)
        return value


class WaitlessMeanAboveZero(AvgNonZeroReducer):
    """PML's `AvgNonZeroReducer`: the mean of the losses above 0, or 0 if there are none."""

    def element_reduction_helper(self, losses: Tensor, embeddings: Tensor) -> Tensor:
        """Mean of the losses (n,) above 0; embeddings (B, d) give the zero its gradient."""
        if losses.device.type == "cpu" or self.collect_stats:
            mean: Tensor = super().element_reduction_helper(losses, embeddings)
            return mean
        above = losses > 0
        return torch.where(above, losses, 0.0).sum() / above.sum().clamp(min=1)


class WaitlessDivisor(DivisorReducer):
    """PML's `DivisorReducer`: the sum of the losses divided by a number that comes with them, 0 if that is 0.

    The divisor may be a tensor.
    """

    def sum_and_divide(self, losses: Tensor, embeddings: Tensor, divisor: Any) -> Tensor:
        """Sum of the losses (n,) divided by `divisor`; embeddings (B, d) give the zero its gradient."""
        if not isinstance(divisor, Tensor):
            if divisor == 0:
                zero: Tensor = self.zero_loss(embeddings)
                return zero
            quotient: Tensor = losses.sum() / divisor
            return quotient
        empty = divisor == 0
        # A divisor of 0 must not reach the gradient.
        return torch.where(empty, 0.0, losses.sum() / torch.where(empty, 1, divisor))


_WAITLESS: dict[type, type] = {AvgNonZeroReducer: WaitlessMeanAboveZero, DivisorReducer: WaitlessDivisor}


def use_waitless_reducers(loss: nn.Module) -> None:
    """Replace PML's reducers in a loss, and in the losses inside it, by those of this module.

    Args:
        loss: A loss. Reducers of other classes, and those that keep statistics, stay as they are.
    """
    for module in list(loss.modules()):
        for name, child in list(module.named_children()):
            replacement = _WAITLESS.get(type(child))
            if replacement is not None and not child.collect_stats:
                setattr(module, name, replacement(collect_stats=False))
