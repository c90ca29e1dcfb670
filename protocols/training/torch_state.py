"""The state of torch around a training: random numbers, deterministic kernels, and the name of the device."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def device_name(device: torch.device) -> str:
    """`cpu`, or the model name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def isolated_random_numbers(device: str) -> Iterator[None]:
    """Use deterministic kernels inside; restore torch's settings and random numbers afterwards."""
    devices = [torch.device(device)] if device.startswith("cuda") else []
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices):
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
