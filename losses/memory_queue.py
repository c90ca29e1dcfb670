"""A queue of past embeddings with their labels, kept whole in buffers."""

from typing import Literal

import torch
from torch import Tensor, nn

QueueOrder = Literal["fifo", "authors"]


class MemoryQueue(nn.Module):
    """The last T embeddings with their labels; `state_dict` resumes it exactly.

    Order `fifo`: a ring, the oldest rows are dropped first.

    Order `authors`: as released with Proxy-ISA. Rows that do not fit behind the write position go to the last slots
    instead, over the most recent rows, and writing restarts at slot 0. All slots are visible while the last one holds a
    label other than 0, otherwise those before the write position.

    Args:
        memory_size: T, slots.
        embedding_size: d.
        order: `fifo` or `authors`; `fifo`.

    Buffers: `embeddings` (T, d), `labels` (T, -1 where nothing was written), `position` (next slot; under `authors` up
    to T), `filled` (slots ever written).

    Raises ValueError for an unknown order or a size below 1.

    Source: Proxy-ISA, Algorithm 1 and section 3.3 (memory M); Wang et al., Cross-Batch Memory, CVPR 2020.
    """

    embeddings: Tensor
    labels: Tensor
    position: Tensor
    filled: Tensor

    def __init__(self, memory_size: int, embedding_size: int, order: QueueOrder = "fifo") -> None:
        super().__init__()
        if memory_size < 1:
            raise ValueError(f"memory_size must be at least 1, got {memory_size}")
        if order not in ("fifo", "authors"):
            raise ValueError(f"order must be 'fifo' or 'authors', got {order!r}")
        self.memory_size = memory_size
        self.order = order
        self.register_buffer("embeddings", torch.zeros(memory_size, embedding_size))
        self.register_buffer("labels", torch.full((memory_size,), -1))
        self.register_buffer("position", torch.tensor(0))
        self.register_buffer("filled", torch.tensor(0))

    @torch.no_grad()
    def push(self, embeddings: Tensor, labels: Tensor) -> None:
        """Append rows (q, d) with labels (q) in their order; of more than T rows the last T are kept."""
        embeddings, labels = embeddings[-self.memory_size :], labels[-self.memory_size :]
        slots = self._next_slots(len(labels))
        self.embeddings[slots] = embeddings.to(self.embeddings.dtype)
        self.labels[slots] = labels
        # Both orders write every slot once before they write any of them again.
        self.filled.add_(len(labels)).clamp_(max=self.memory_size)

    def _next_slots(self, rows: int) -> Tensor:
        """The slots (rows) to write, in order; moves the write position without asking the device where it stands."""
        ahead = torch.arange(rows, device=self.position.device)
        end = self.position + rows
        if self.order == "fifo":
            slots = (self.position + ahead) % self.memory_size
            self.position.copy_(end % self.memory_size)
            return slots
        overflow = end > self.memory_size
        slots = torch.where(overflow, self.memory_size - rows, self.position) + ahead
        self.position.copy_(torch.where(overflow, 0, end))
        return slots

    def visible(self) -> Tensor:
        """Which slots (T, bool) count as stored."""
        slots = torch.arange(self.memory_size, device=self.labels.device)
        if self.order == "fifo":
            return slots < self.filled
        return (slots < self.position) | (self.labels[-1] > 0)
