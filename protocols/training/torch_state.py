"""The state of torch around a training: random numbers, deterministic kernels, and the name of the device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def device_name(device: torch.device) -> str:
    """`cpu`, or the model name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def isolated_random_numbers(device: str, *, fill_memory: bool = False) -> Iterator[None]:
    """Use deterministic kernels inside; restore torch's settings and random numbers afterwards.

    Args:
        device: `cpu`, `cuda` or `cuda:N`.
        fill_memory: Whether torch fills every new tensor with NaN. This costs a pass over the memory of each tensor. It
            only helps against kernels that leave a part of their result unset.
    """
    devices = [torch.device(device)] if device.startswith("cuda") else []
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    # torch's type hints do not know this setting.
    memory: Any = torch.utils.deterministic
    filled_before = memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices):
        torch.use_deterministic_algorithms(True, warn_only=True)
        memory.fill_uninitialized_memory = fill_memory
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            memory.fill_uninitialized_memory = filled_before
