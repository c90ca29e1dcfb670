"""The best checkpoint of a training, and the best epoch for early stopping (specification, section 6)."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


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
