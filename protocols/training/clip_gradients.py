"""Clip the gradients of a training."""

import torch
from torch import nn

from results.training_spec import TrainingSettings


def clip_gradients(optimizer: torch.optim.Optimizer, settings: TrainingSettings) -> None:
    """Clip the norm of all gradients together, then each value (CCP's code does both, in this order).

    Args:
        optimizer: The optimizer, with the parameters of network and loss.
        settings: The training's settings; by default nothing is clipped.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if settings.clip_norm is not None:
        nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
    if settings.clip_value is not None:
        nn.utils.clip_grad_value_(parameters, settings.clip_value)
