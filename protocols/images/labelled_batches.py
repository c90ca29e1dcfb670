"""Batches of crops with their labels; on a GPU the next batch is copied while the network trains on the present one."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.batch_source import Rows, page_locked


def labelled_batches(
    batches: Iterable[tuple[Rows, Tensor]], targets: NDArray[np.int64], device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Add the labels to batches of crops, without a wait for the device.

    Args:
        batches: Positions of the images of each batch and their crops, as `BatchSource.training_batches` gives them.
        targets: Class of every training image, (n,).
        device: The device of the training.

    Yields:
        Crops and classes (batch,) of the next batch, on the device.
    """
    pairs = ((crops, _sent(targets[rows], device)) for rows, crops in batches)
    yield from _one_ahead(pairs, device) if device.type == "cuda" else pairs


def _sent(labels: NDArray[np.int64], device: torch.device) -> Tensor:
    return page_locked(torch.from_numpy(labels), device).to(device, non_blocking=True)


def _one_ahead(pairs: Iterator[tuple[Tensor, Tensor]], device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Make the next pair on a stream of its own, so that its copies run beside the work on the present pair."""
    stream = torch.cuda.Stream(device)

    def made_on_stream() -> tuple[Tensor, Tensor] | None:
        with torch.cuda.stream(stream):
            return next(pairs, None)

    following = made_on_stream()
    while following is not None:
        working = torch.cuda.current_stream(device)
        working.wait_stream(stream)
        pair = following
        for tensor in pair:
            # The memory was taken on the copying stream; it must not be given out again while this stream reads it.
            tensor.record_stream(working)
        following = made_on_stream()
        yield pair
