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
    def push(self, embeddings: Tensor, labels: Tensor, keep: Tensor | None = None) -> Tensor:
        """Append rows; of more than T rows the last T are stored. No transfer from the device if q <= T.

        Args:
            embeddings: rows (q, d).
            labels: labels (q,).
            keep: mask (q,) of the rows to append, in their order; None, the default, appends all.

        Returns:
            The slots (q,) of the stored rows. Rows that are not kept come last and have slots that stay as they are.
        """
        if keep is not None and len(labels) > self.memory_size:
            embeddings, labels, keep = embeddings[keep], labels[keep], None
        embeddings, labels = embeddings[-self.memory_size :], labels[-self.memory_size :]
        if keep is None:
            keep = torch.ones_like(labels, dtype=torch.bool)
        number = keep.sum()
        offsets = torch.where(keep, keep.cumsum(0) - 1, number + (~keep).cumsum(0) - 1)
        slots = (self.position + offsets) % self.memory_size
        self._write(slots, embeddings, labels, keep)
        self.position.copy_((self.position + number) % self.memory_size)
        self.filled.add_(number).clamp_(max=self.memory_size)
        return slots

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor, keep: Tensor) -> None:
        # A row that is not kept writes back what its slot holds.
        rows = embeddings.to(self.embeddings.dtype)
        self.embeddings[slots] = torch.where(keep.unsqueeze(1), rows, self.embeddings[slots])
        self.labels[slots] = torch.where(keep, labels, self.labels[slots])

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

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor, keep: Tensor) -> None:
        old_labels = self.labels[slots]
        replaced = (old_labels >= 0) & keep
        self._add(-self.embeddings[slots].double() * keep.unsqueeze(1), old_labels.clamp(min=0), -replaced.long())
        super()._write(slots, embeddings, labels, keep)
        self._add(self.embeddings[slots].double() * keep.unsqueeze(1), labels, keep.long())

    def _add(self, rows: Tensor, labels: Tensor, counts: Tensor) -> None:
        self.sums.index_add_(0, labels, rows)
        self.numbers.index_add_(0, labels, counts)
