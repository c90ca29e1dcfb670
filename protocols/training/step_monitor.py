"""The losses of a training's steps, and the check that all numbers stay finite, without a wait for the device.

On a GPU the host is several steps ahead. Reading a number there makes it wait until the GPU has caught up. So each step
leaves two numbers on the device, and the host reads all of them at once, at the next validation.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class NotFiniteError(Exception):
    """The loss or an embedding is infinite or NaN."""

    def __init__(self, name: str, iteration: int) -> None:
        super().__init__(f"{name} not finite at iteration {iteration}")
        self.iteration = iteration


class StepMonitor:
    """Keeps the losses of the steps since the last reading, and notices numbers that are not finite.

    On a CPU a number that is not finite raises at once. On a GPU it raises at the next reading, with the same message:
    the numbers of each step are kept, so that the first bad step is known.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._first = 0
        self._sums: list[Tensor] = []
        self._losses: list[Tensor | None] = []

    def add_embeddings(self, embeddings: Tensor, iteration: int) -> None:
        """Begin a step: take note whether its embeddings are finite.

        Args:
            embeddings: Embeddings of the batch, (n, d).
        """
        if not self._sums:
            self._first = iteration
        # A sum in float64 cannot overflow, so it is finite if all embeddings are.
        self._sums.append(embeddings.detach().sum(dtype=torch.float64))
        self._losses.append(None)
        if self._device.type == "cpu":
            self._require(self._sums[-1].item(), "embeddings", iteration)

    def add_loss(self, loss: Tensor, iteration: int) -> None:
        """Add the loss of the step that `add_embeddings` began. A step without this call is not part of the mean."""
        self._losses[-1] = loss.detach().reshape(())
        if self._device.type == "cpu":
            self._require(loss.item(), "loss", iteration)

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        """For the computation of a loss: after a step that was not finite, that step is the reason for any error."""
        try:
            yield
        except (ArithmeticError, IndexError, RuntimeError, ValueError):
            self.require_finite()
            raise

    def require_finite(self) -> None:
        """Check all steps since the last `mean_loss`; the host waits for the device."""
        self._read()

    def mean_loss(self) -> float | None:
        """Check all steps since the last call, and forget them; the host waits for the device.

        Returns:
            The mean loss of these steps; None if no step has a loss.
        """
        losses = self._read()
        self._sums, self._losses = [], []
        return sum(losses) / len(losses) if losses else None

    def _read(self) -> list[float]:
        if not self._sums:
            return []
        # One transfer for all steps. A step without a loss has a 0 there.
        nothing = torch.zeros((), device=self._device)
        steps = torch.stack([nothing if loss is None else loss for loss in self._losses]).double()
        sums, losses = torch.stack([torch.stack(self._sums), steps]).cpu().tolist()
        for step, (embeddings, loss) in enumerate(zip(sums, losses, strict=True)):
            self._require(embeddings, "embeddings", self._first + step)
            self._require(loss, "loss", self._first + step)
        return [loss for loss, kept in zip(losses, self._losses, strict=True) if kept is not None]

    def _require(self, value: float, name: str, iteration: int) -> None:
        if not math.isfinite(value):
            raise NotFiniteError(name, iteration)
