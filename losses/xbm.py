"""Cross-batch memory: a pair loss that also sees the embeddings of past batches."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.losses.base_metric_loss_function import BaseMetricLossFunction
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor, nn
from torch.nn import functional

from losses.checks import checked_labels
from losses.memory_queue import MemoryQueue
from losses.pair_losses import CosineContrastiveLoss, EuclideanDistance
from losses.plugin import Clock, Needs
from losses.precision import FullPrecisionForward
from losses.wrapper import PluginWrapper, merged_needs


def _c2(pos_margin: float = 0.0, neg_margin: float = 0.3841) -> Any:
    return pml_losses.ContrastiveLoss(pos_margin, neg_margin, distance=EuclideanDistance())


# The pair losses the method was compared with; C1 works on cosines, C2 on Euclidean distances.
_BASES: Mapping[str, Callable[..., Any]] = MappingProxyType({"c1": CosineContrastiveLoss, "c2": _c2})


class XBMLoss(FullPrecisionForward, PluginWrapper, BaseMetricLossFunction):
    """A pair loss within the batch plus the same loss between the batch and a queue of past embeddings.

    With unit embeddings x (B, d), labels y (B,) and the memory m of the last M embeddings::

        L = L_pair(x, y; x, y)                                     before the memory starts
        L = L_pair(x, y; x, y) + weight L_pair(x, y; m, y_m)       from step `start_iteration` on

    From then on a batch enters the queue, without gradient, before it is compared; a sample never meets its own copy.
    Only a loss in training mode counts steps and fills its queue. `indices_tuple` chooses pairs within the batch.

    Args:
        embedding_size: d.
        memory_size: M in rows, at least B.
        base: `c1` (`CosineContrastiveLoss`: `margin` 0.5, `epsilon` 1e-5), `c2` (Euclidean, mean over active pairs:
            `pos_margin` 0, `neg_margin` 0.3841), or any of pytorch-metric-learning's pair losses as a module.
        start_iteration: optimizer steps with the plain loss first, 1000.
        weight: of the memory term, 1.

    Further keywords are those of a base loss given by name.

    State in buffers: the queue with its position, and `iteration`, which `on_step_start` sets from the clock and a loop
    without hooks leaves to count the calls. Raises ValueError for an unknown base, a batch larger than the memory,
    reference embeddings, and every batch `checked_labels` refuses.

    Source: Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020, Algorithm 1, with a true first-in
    first-out queue, which the authors' code has not.
    """

    iteration: Tensor

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        base: str | nn.Module = "c1",
        start_iteration: int = 1000,
        weight: float = 1.0,
        **base_params: Any,
    ) -> None:
        super().__init__()
        self.base_loss = _base_loss(base, base_params)
        self.needs = merged_needs(Needs(), self.base_loss)
        self.embedding_size, self.memory_size = embedding_size, memory_size
        self.start_iteration, self.weight = start_iteration, weight
        self.queue = MemoryQueue(memory_size, embedding_size)
        self.register_buffer("iteration", torch.tensor(0))

    def on_step_start(self, clock: Clock) -> None:
        """Take the step from the clock; the memory is on from step `start_iteration`."""
        self.iteration.fill_(clock.step)
        super().on_step_start(clock)

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-losses `batch_loss` and `memory_loss`, both already reduced."""
        c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        labels = checked_labels(embeddings, labels, embedding_size=self.embedding_size)
        if len(labels) > self.memory_size:
            raise ValueError(f"a batch of {len(labels)} does not fit into a memory of {self.memory_size}")
        unit = functional.normalize(embeddings, dim=1)
        terms = {
            "batch_loss": self.base_loss(unit, labels, indices_tuple),
            "memory_loss": self._memory_loss(unit, labels),
        }
        return {name: {"losses": v, "indices": None, "reduction_type": "already_reduced"} for name, v in terms.items()}

    def _memory_loss(self, unit: Tensor, labels: Tensor) -> Tensor | int:
        active = bool(self.iteration >= self.start_iteration)
        own_slots = self._enqueue(unit, labels) if self.training and active else None
        if self.training:
            self.iteration += 1
        if not active or not self.queue.filled:
            return 0
        stored = self.queue.visible()
        memory, memory_labels = self.queue.embeddings[stored].to(unit.dtype), self.queue.labels[stored]
        pairs = _pairs(labels, memory_labels, own_slots)
        loss: Tensor = self.weight * self.base_loss(unit, labels, pairs, memory, memory_labels)
        return loss

    def _enqueue(self, unit: Tensor, labels: Tensor) -> Tensor:
        ahead = torch.arange(len(labels), device=labels.device)
        slots = (self.queue.position + ahead) % self.memory_size
        self.queue.push(unit.detach(), labels)
        return slots

    def _sub_loss_names(self) -> list[str]:
        return ["batch_loss", "memory_loss"]


def _base_loss(base: str | nn.Module, params: Mapping[str, Any]) -> nn.Module:
    if isinstance(base, nn.Module):
        if params:
            raise ValueError(f"{', '.join(sorted(params))}: set these on the base loss that is given")
        return base
    if base not in _BASES:
        raise ValueError(f"base must be one of {', '.join(_BASES)} or a loss, got {base!r}")
    made: nn.Module = _BASES[base](**params)
    return made


def _pairs(labels: Tensor, memory_labels: Tensor, own_slots: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All pairs of batch and memory rows, without those of a sample and its own copy."""
    anchors, positives, others, negatives = lmu.get_all_pairs_indices(labels, memory_labels)
    if own_slots is not None:
        keep = positives != own_slots[anchors]
        anchors, positives = anchors[keep], positives[keep]
    return anchors, positives, others, negatives
