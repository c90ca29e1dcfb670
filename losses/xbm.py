"""Cross-batch memory: a pair loss that also uses the embeddings of past batches."""

from types import MappingProxyType
from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn
from torch.nn import functional

from .base import MetricLoss, already_reduced, checked_labels
from .memory_queue import MemoryQueue
from .mined import all_pairs
from .pair_losses import CosineContrastiveLoss, EuclideanDistance
from .plugin import Clock, PluginWrapper, require_references


def _c2(pos_margin: float = 0.0, neg_margin: float = 0.3841) -> Any:
    return pml_losses.ContrastiveLoss(pos_margin, neg_margin, distance=EuclideanDistance())


class XBMLoss(PluginWrapper, MetricLoss):
    """A pair loss within the batch plus the same loss between the batch and a queue of past embeddings.

    With unit embeddings x (B, d), labels y (B,) and the memory m of the last M embeddings::

        L = L_pair(x, y; x, y)                                     before the memory starts
        L = L_pair(x, y; x, y) + weight L_pair(x, y; m, y_m)       from step `start_iteration` on

    From then on a batch enters the queue, without gradient, before it is compared. A sample is never compared with its
    own copy. Steps are counted and the queue is filled only in training mode. `indices_tuple` chooses pairs within the
    batch.

    A card may name the base loss: `c1` (`CosineContrastiveLoss`: `margin` 0.5) or `c2` (Euclidean, mean
    over active pairs: `pos_margin` 0, `neg_margin` 0.3841). Without a name it is `c1`.

    Args:
        base_loss: L_pair, a pair loss that takes `ref_emb`.
        embedding_size: d.
        memory_size: M, number of rows, at least B.
        start_iteration: number of optimizer steps with the plain loss; default 1000.
        weight: weight of the memory term; default 1.
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Attributes:
        queue: the memory, a `MemoryQueue`.
        iteration: buffer, the current step. `on_step_start` sets it from the clock; in a loop without hooks it counts
            the calls in training mode.

    Raises:
        ValueError: for a base loss that is not built or takes no references, a batch larger than the memory, reference
            embeddings, and every batch that `checked_labels` refuses.

    Source: Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020, Algorithm 1. The queue is first-in
    first-out as in the paper; the queue of the authors' code is not.
    """

    sub_losses = ("batch_loss", "memory_loss")
    named_bases = MappingProxyType({"c1": CosineContrastiveLoss, "c2": _c2})
    default_base = "c1"

    iteration: Tensor

    def __init__(
        self,
        base_loss: nn.Module,
        embedding_size: int,
        memory_size: int,
        start_iteration: int = 1000,
        weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(base_loss, **kwargs)
        require_references(XBMLoss, base_loss)
        self.embedding_size, self.memory_size = embedding_size, memory_size
        self.start_iteration, self.weight = start_iteration, weight
        self.queue = MemoryQueue(memory_size, embedding_size)
        self.register_buffer("iteration", torch.tensor(0))

    def on_step_start(self, clock: Clock) -> None:
        """Take the step from the clock; the memory is on from step `start_iteration` on."""
        self.iteration.fill_(clock.step)
        super().on_step_start(clock)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-losses `batch_loss` and `memory_loss`, both already reduced."""
        labels = checked_labels(embeddings, labels, embedding_size=self.embedding_size)
        if len(labels) > self.memory_size:
            raise ValueError(f"a batch of {len(labels)} does not fit into a memory of {self.memory_size}")
        unit = functional.normalize(embeddings, dim=1)
        batch_loss = self.base_loss(unit, labels, indices_tuple)
        return already_reduced(batch_loss=batch_loss, memory_loss=self._memory_loss(unit, labels))

    def _memory_loss(self, unit: Tensor, labels: Tensor) -> Tensor:
        active = bool(self.iteration >= self.start_iteration)
        own_slots = self.queue.push(unit.detach(), labels) if self.learns and active else None
        if self.learns:
            self.iteration += 1
        if not active or not self.queue.filled:
            return unit.new_zeros(())
        stored = self.queue.visible()
        memory, memory_labels = self.queue.embeddings[stored].to(unit.dtype), self.queue.labels[stored]
        anchors, positives, others, negatives = all_pairs(labels, memory_labels)
        if own_slots is not None:
            keep = positives != own_slots[anchors]
            anchors, positives = anchors[keep], positives[keep]
        pairs = (anchors, positives, others, negatives)
        loss: Tensor = self.base_loss(unit, labels, pairs, memory, memory_labels)
        return self.weight * loss
