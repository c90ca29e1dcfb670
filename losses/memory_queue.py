"""A queue of past embeddings with their labels, stored in buffers."""

from typing import Any, Literal, Self

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


class SummedMemoryQueue(MemoryQueue):
    """A `MemoryQueue` with running sums: reading a class costs the same, however many rows the memory has.

    A push adds the new rows to the sums of their classes and subtracts the rows that they replace. The sums are in
    float64, so the error of a million pushes is far below the rounding error of the stored rows. They are part of
    `state_dict`, so that a resumed training continues with the same bits. If a state of an older release lacks them, or
    if the queue is moved to another dtype, they are computed from the stored rows.

    Args:
        memory_size: T, number of slots, at least 1.
        embedding_size: d.
        num_classes: C; labels must be in 0..C-1.
        order: `fifo` or `authors`; default `fifo`.

    Attributes:
        sums: buffer (G, C, d) of float64, sums of the rows in all slots and, under `authors` only, sums of the rows in
            the slots before the write position. G is 1 under `fifo` and 2 under `authors`.
        numbers: buffer (G, C) of int64, the number of rows in each sum.

    Raises:
        ValueError: for an unknown order or a size below 1.
    """

    sums: Tensor
    numbers: Tensor

    def __init__(self, memory_size: int, embedding_size: int, num_classes: int, order: QueueOrder = "fifo") -> None:
        super().__init__(memory_size, embedding_size, order)
        groups = 1 if order == "fifo" else 2
        self.register_buffer("sums", torch.zeros(groups, num_classes, embedding_size, dtype=torch.float64))
        self.register_buffer("numbers", torch.zeros(groups, num_classes, dtype=torch.long))

    def class_sums(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Sums of the visible rows of some classes.

        Args:
            classes: (n,) integers in 0..C-1.

        Returns:
            The sums (n, d) in float64 and the numbers of rows (n,).
        """
        if self.order == "fifo":
            return self.sums[0, classes], self.numbers[0, classes]
        group = torch.where(self.labels[-1] > 0, 0, 1)
        return self.sums[group, classes], self.numbers[group, classes]

    def _write(self, slots: Tensor, embeddings: Tensor, labels: Tensor, keep: Tensor) -> None:
        old_labels = self.labels[slots]
        replaced = ((old_labels >= 0) & keep).long()
        self._add(0, -self.embeddings[slots].double() * keep.unsqueeze(1), old_labels.clamp(min=0), -replaced)
        super()._write(slots, embeddings, labels, keep)
        rows, ones = self.embeddings[slots].double() * keep.unsqueeze(1), keep.long()
        self._add(0, rows, labels, ones)
        if self.order == "authors":
            # At the start of a push the prefix is what was before the position, which is now 0 after an overflow.
            restarted = self.position == 0
            self.sums[1].masked_fill_(restarted, 0.0)
            self.numbers[1].masked_fill_(restarted, 0)
            self._add(1, rows * ~restarted, labels, ones * ~restarted)

    def _add(self, group: int, rows: Tensor, labels: Tensor, counts: Tensor) -> None:
        self.sums[group].index_add_(0, labels, rows)
        self.numbers[group].index_add_(0, labels, counts)

    @torch.no_grad()
    def _sum_again(self) -> None:
        """Compute the sums from the stored rows."""
        self.sums.zero_()
        self.numbers.zero_()
        slots = torch.arange(self.memory_size, device=self.labels.device)
        groups = (self.labels >= 0, slots < self.position)
        for group in range(len(self.sums)):
            rows = groups[group].nonzero().squeeze(1)
            labels = self.labels[rows]
            self._add(group, self.embeddings[rows].double(), labels, torch.ones_like(labels))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Torch's hook behind `half()` and `to()`. The sums stay in float64."""
        sums, dtype = self.sums, self.embeddings.dtype
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.sums = sums.to(self.sums.device)
        if self.embeddings.dtype != dtype:
            self._sum_again()
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, missing: list[str], *args: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, *args)
        absent = [prefix + name for name in ("sums", "numbers") if prefix + name not in state_dict]
        if absent and prefix + "embeddings" in state_dict:
            self._sum_again()
            missing[:] = [name for name in missing if name not in absent]
