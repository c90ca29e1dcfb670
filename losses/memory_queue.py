"""A queue of past embeddings with their labels, stored in buffers."""

from typing import Literal

import torch
from torch import Tensor, nn

QueueOrder = Literal["fifo", "authors"]


class MemoryQueue(nn.Module):
    """The last T embeddings with their labels. `state_dict` holds the complete state.

    Order `fifo` is a ring: new rows replace the oldest rows.

    Order `authors` is that of the code released with Proxy-ISA. Rows that do not fit behind the write position go to
    the last slots instead, over the most recent rows, and writing restarts at slot 0. While the last slot holds a label
    above 0, all slots are visible; otherwise only those before the write position are.

    Args:
        memory_size: T, number of slots, at least 1.
        embedding_size: d.
        order: `fifo` or `authors`; default `fifo`.

    Attributes:
        embeddings: buffer (T, d).
        labels: buffer (T,); -1 in a slot that was never written.
        position: buffer, the next slot to write; under `authors` up to T.
        filled: buffer, number of slots that were ever written.

    Raises:
        ValueError: for an unknown order or a size below 1.

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
    def push(self, embeddings: Tensor, labels: Tensor, keep: Tensor | None = None) -> None:
        """Append rows; of more than T rows the last T are stored. No transfer from the device if q <= T.

        Args:
            embeddings: Rows (q, d).
            labels: Labels (q,).
            keep: Mask (q,) of the rows to append, in their order; None, the default, appends all.
        """
        if keep is not None and len(labels) > self.memory_size:
            embeddings, labels, keep = embeddings[keep], labels[keep], None
        embeddings, labels = embeddings[-self.memory_size :], labels[-self.memory_size :]
        if keep is None:
            keep = torch.ones_like(labels, dtype=torch.bool)
        number = keep.sum()
        self._write(self._next_slots(keep, number), embeddings, labels, keep)
        # Both orders write every slot once before they write any of them again.
        self.filled.add_(number).clamp_(max=self.memory_size)

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor, keep: Tensor) -> None:
        # A row that is not kept writes back what its slot holds.
        rows = embeddings.to(self.embeddings.dtype)
        self.embeddings[slots] = torch.where(keep.unsqueeze(1), rows, self.embeddings[slots])
        self.labels[slots] = torch.where(keep, labels, self.labels[slots])

    def _next_slots(self, keep: Tensor, number: Tensor) -> Tensor:
        """A slot of its own for each row (q,); moves the write position by the number of kept rows.

        Kept rows have the next slots, in order. The others have the slots behind, which they leave as they are.
        """
        kept_before, others_before = keep.cumsum(0) - 1, (~keep).cumsum(0) - 1
        offsets = torch.where(keep, kept_before, number + others_before)
        end = self.position + number
        if self.order == "fifo":
            slots = (self.position + offsets) % self.memory_size
            self.position.copy_(end % self.memory_size)
            return slots
        overflow = end > self.memory_size
        slots = (torch.where(overflow, self.memory_size - number, self.position) + offsets) % self.memory_size
        self.position.copy_(torch.where(overflow, 0, end))
        return slots

    def visible(self) -> Tensor:
        """Mask (T,) of the slots that count as stored."""
        slots = torch.arange(self.memory_size, device=self.labels.device)
        if self.order == "fifo":
            return slots < self.filled
        return (slots < self.position) | (self.labels[-1] > 0)
