"""Sub-losses in the form in which pytorch-metric-learning's `compute_loss` hands them to reducers."""

from typing import Any

import torch
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor


def elements(losses: Tensor) -> dict[str, Any]:
    """Losses (n,) for a reducer, with their positions."""
    indices = torch.arange(len(losses), device=losses.device)
    return {"losses": losses, "indices": indices, "reduction_type": "element"}


def of_samples(losses: Tensor, labels: Tensor, indices_tuple: Any) -> dict[str, Any]:
    """Losses (B,) of the samples of a batch, weighted by what a miner found."""
    weights = lmu.convert_to_weights(indices_tuple, labels, dtype=losses.dtype)
    return elements(losses * weights)


def of_classes(losses: Tensor, divisor: Tensor | int) -> dict[str, Any]:
    """Losses (C,) of classes, whose sum is to be divided by `divisor`."""
    return {**elements(losses), "divisor": divisor}


def already_reduced(**losses: Tensor | float) -> dict[str, dict[str, Any]]:
    """Losses by name that are numbers already."""
    return {name: {"losses": v, "indices": None, "reduction_type": "already_reduced"} for name, v in losses.items()}
