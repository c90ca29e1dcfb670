"""A push with a mask stores what a push of the masked rows stores."""

import pytest
import torch

from losses.memory_queue import MemoryQueue, SummedMemoryQueue


def queues(kind, order, size):
    if kind is MemoryQueue:
        return [MemoryQueue(size, 3, order) for _ in range(2)]
    return [SummedMemoryQueue(size, 3, 4, order) for _ in range(2)]


@pytest.mark.parametrize("size", [4, 7, 11, 40])
@pytest.mark.parametrize("order", ["fifo", "authors"])
@pytest.mark.parametrize("kind", [MemoryQueue, SummedMemoryQueue])
def test_masked_rows_are_pushed_to_the_bit(kind, order, size):
    generator = torch.Generator().manual_seed(size)
    masked, plain = queues(kind, order, size)
    for step in range(20):
        rows = torch.randn(6, 3, generator=generator)
        labels = torch.randint(4, (6,), generator=generator)
        keep = torch.rand(6, generator=generator) < (0.0, 0.5, 1.0)[step % 3]
        masked.push(rows, labels, keep)
        plain.push(rows[keep], labels[keep])
        assert torch.equal(masked.visible(), plain.visible())
        for name, value in plain.state_dict().items():
            assert torch.equal(masked.state_dict()[name], value), (step, name)
