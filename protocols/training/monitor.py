"""What is kept of a training under way: the losses of its steps, whether all numbers are finite, the best weights.

On a GPU the host is several steps ahead. Reading a number there makes it wait until the GPU has caught up. So each step
leaves two numbers on the device, and the host reads all of them at once, at the next validation.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


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

    def mean_loss(self) -> float | None:
        """Check all steps since the last call, and forget them; the host waits for the device.

        Returns:
            The mean loss of these steps; None if no step has a loss.
        """
        losses = self.require_finite()
        self._sums, self._losses = [], []
        return math.fsum(losses) / len(losses) if losses else None

    def require_finite(self) -> list[float]:
        """Check all steps since the last `mean_loss`, and return their losses; the host waits for the device."""
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


@dataclass
class BestCheckpoint:
    """The weights after the best validation of a training.

    Epoch 0, the network before training, counts for early stopping, but is never the checkpoint of a trained method
    (specification, 11.22). So there are two best epochs.

    Attributes:
        best_epoch: Epoch of the best score, epoch 0 included; early stopping counts from here.
        epoch: Epoch of the checkpoint.
        weights: State dict of its model, on the CPU.
    """

    best_epoch: int = 0
    best_score: float = -math.inf
    epoch: int = 0
    score: float = -math.inf
    weights: dict[str, Tensor] = field(default_factory=dict)

    def update(self, epoch: int, score: float, model: nn.Module, *, eligible: bool) -> None:
        """Take a validation into account. Only a strictly higher score is an improvement."""
        if score > self.best_score:
            self.best_epoch, self.best_score = epoch, score
        if eligible and score > self.score:
            self.score = score
            self.save(epoch, model)

    def save(self, epoch: int, model: nn.Module) -> None:
        """Make the present model the checkpoint."""
        self.epoch = epoch
        self.weights = weights_on_cpu(model)


def weights_on_cpu(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the model's state dict on the CPU."""
    # In the contiguous layout, so that checkpoints do not depend on the device.
    layout = torch.contiguous_format
    return {key: value.detach().cpu().clone(memory_format=layout) for key, value in model.state_dict().items()}
