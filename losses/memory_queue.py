"""A queue of past embeddings with their labels, stored in buffers."""

import torch
from torch import Tensor, nn


class MemoryQueue(nn.Module):
    """The last T embeddings with their labels, in a ring. `state_dict` holds the complete state.

    Args:
        memory_size: T, number of slots, at least 1.
        embedding_size: d.

    Attributes:
        embeddings: buffer (T, d).
        labels: buffer (T,); -1 in a slot that was never written.
        position: buffer, the next slot to write.
        filled: buffer, number of slots that were ever written.

    Raises:
        ValueError: for a size below 1.

    Source: Proxy-ISA, Algorithm 1 and section 3.3 (memory M); Wang et al., Cross-Batch Memory, CVPR 2020.
    """

    embeddings: Tensor
    labels: Tensor
    position: Tensor
    filled: Tensor

    def __init__(self, memory_size: int, embedding_size: int) -> None:
        super().__init__()
        if memory_size < 1:
            raise ValueError(f"memory_size must be at least 1, got {memory_size}")
        self.memory_size = memory_size
        self.register_buffer("embeddings", torch.zeros(memory_size, embedding_size))
        self.register_buffer("labels", torch.full((memory_size,), -1))
        self.register_buffer("position", torch.tensor(0))
        self.register_buffer("filled", torch.tensor(0))

    @torch.no_grad()
    def push(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Append rows (q, d) with labels (q,), of which the last T are stored, and return the slots of these."""
        embeddings, labels = embeddings[-self.memory_size :], labels[-self.memory_size :]
        slots = (self.position + torch.arange(len(labels), device=labels.device)) % self.memory_size
        self._write(slots, embeddings, labels)
        self.position.copy_((self.position + len(labels)) % self.memory_size)
        self.filled.add_(len(labels)).clamp_(max=self.memory_size)
        return slots

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor) -> None:
        self.embeddings[slots] = embeddings.to(self.embeddings.dtype)
        self.labels[slots] = labels

    def visible(self) -> Tensor:
        """Mask (T,) of the slots that were written."""
        return torch.arange(self.memory_size, device=self.labels.device) < self.filled


class SummedMemoryQueue(MemoryQueue):
    """A `MemoryQueue` with running sums: reading a class costs the same, however many rows the memory has.

    A push adds the new rows to the sums of their classes and subtracts the rows that they replace. The sums are in
    float64, so the error of a million pushes is far below the rounding error of the rows. `state_dict` holds their
    bits as integers, which `half()` and `to()` leave alone, so that a resumed training continues with the same bits.

    Args:
        memory_size: T, number of slots, at least 1.
        embedding_size: d.
        num_classes: C; labels must be in 0..C-1.

    Attributes:
        numbers: buffer (C,) of int64, the number of these rows.

    Raises:
        ValueError: for a size below 1.
    """

    bits_of_sums: Tensor
    numbers: Tensor

    def __init__(self, memory_size: int, embedding_size: int, num_classes: int) -> None:
        super().__init__(memory_size, embedding_size)
        self.register_buffer("bits_of_sums", torch.zeros(num_classes, embedding_size, dtype=torch.int64))
        self.register_buffer("numbers", torch.zeros(num_classes, dtype=torch.long))

    @property
    def sums(self) -> Tensor:
        """The sum of the rows of each class (C, d) in float64: a view of the buffer `bits_of_sums`."""
        return self.bits_of_sums.view(torch.float64)

    def class_sums(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Sums (n, d) in float64 of the rows of some classes (n,), and the numbers of these rows (n,)."""
        return self.sums[classes], self.numbers[classes]

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor) -> None:
        old_labels = self.labels[slots]
        self._add(-self.embeddings[slots].double(), old_labels.clamp(min=0), -(old_labels >= 0).long())
        super()._write(slots, embeddings, labels)
        self._add(self.embeddings[slots].double(), labels, torch.ones_like(labels))

    def _add(self, rows: Tensor, labels: Tensor, counts: Tensor) -> None:
        self.sums.index_add_(0, labels, rows)
        self.numbers.index_add_(0, labels, counts)
