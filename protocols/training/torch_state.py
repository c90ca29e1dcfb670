"""What torch does for a training: random numbers, deterministic kernels, chunks, the device's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def device_name(device: torch.device) -> str:
    """`cpu`, or the model name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def isolated_random_numbers(device: str, *, fill_memory: bool = False) -> Iterator[None]:
    """Use deterministic kernels inside; restore torch's settings and random numbers afterwards.

    `fill_memory` makes torch fill every new tensor with NaN, which shows kernels that leave a part of it unset.
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


def embed_in_chunks(model: nn.Module, images: Tensor, size: int | None) -> Tensor:
    """Embed a batch, and keep of the network no more than the embeddings.

    This is the gradient cache of Gao et al. (Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup,
    RepL4NLP 2021), as torch's checkpoints compute it.

    The backward of a loss on the whole batch then computes one chunk after another a second time, with the random
    numbers of the first time, so that dropout falls on the same values. It needs the memory of one chunk. Gradients
    are those of one pass, apart from rounding, if the network treats the images of a batch independently.

    Args:
        images: The batch (n, ...).
        size: Images of a chunk. None, or a size of at least n, embeds the batch in one pass.

    Returns:
        The embeddings (n, d).
    """
    if size is None or size >= len(images):
        embeddings: Tensor = model(images)
        return embeddings
    return torch.cat([checkpoint(model, chunk, use_reentrant=False) for chunk in images.split(size)])
