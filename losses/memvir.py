"""MemVir: past proxies with the embeddings of their time, as further classes of a proxy loss."""

import copy
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from .base import MetricLoss, already_reduced, checked_labels
from .mined import refuse_mined
from .plugin import Clock, PluginWrapper, require_proxies
from .proxy_anchor import ProxyAnchorLoss
from .proxy_nca import ProxyNCALoss


class MemVirLoss(PluginWrapper, MetricLoss):
    """A proxy loss over the classes of now and over those of up to N earlier steps, the virtual classes.

    With unit embeddings x_t (B, d), labels y_t and proxies P_t (C, d) of step t, and the steps
    `t_k = t - k (M + 1)`, k = 1..N, of which those count that the queue holds::

        L = L_base(x_t, x_{t_1}, ..., x_{t_N};  y_t, y_{t_1} + C, ..., y_{t_N} + N C;  P_t, P_{t_1}, ..., P_{t_N})

    Past embeddings and proxies are constants. The number of classes grows from C to `(N + 1) C` in `N (M + 1)` steps,
    the paper's curriculum. The queue is filled from the end of the warm-up on, in training mode. In evaluation mode the
    loss is that of the base alone.

    A card may name the base loss: `proxy_anchor`, or `proxy_nca`, the cross entropy of cosines of which the authors'
    Proxy-NCA (`softmax_scale` 3) and normalized softmax (11.5) are cases.

    Args:
        base_loss: L_base, a proxy loss with one row for each of its `num_classes` in `proxies` (C, d).
        embedding_size: d.
        batch_size: the largest B.
        steps: N, number of past steps; default 5.
        gap: M, steps that are left out between two of them; default 100. The queue holds `N (M + 1)` times C + B rows.
        warmup_passes: U, completed passes over the training images before which nothing is stored; default 0.
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Raises:
        ValueError: for a base loss that is not built or has not one proxy for each class, for sizes that are not
            positive, a larger batch, an `indices_tuple`, and every batch that `checked_labels` refuses.

    Source: Ko et al., Learning with Memory-based Virtual Classes for Deep Metric Learning, ICCV 2021, and the authors'
    code (navervision/MemVir).
    """

    named_bases = MappingProxyType({"proxy_anchor": ProxyAnchorLoss, "proxy_nca": ProxyNCALoss})
    default_base = "proxy_anchor"

    past_proxies: Tensor
    past_embeddings: Tensor
    past_labels: Tensor
    stored: Tensor
    collects: Tensor

    def __init__(
        self,
        base_loss: nn.Module,
        embedding_size: int,
        batch_size: int,
        steps: int = 5,
        gap: int = 100,
        warmup_passes: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(base_loss, **kwargs)
        if min(batch_size, steps, gap + 1) < 1 or warmup_passes < 0:
            raise ValueError(
                "batch_size and steps must be at least 1, gap and warmup_passes at least 0, "
                f"got {batch_size}, {steps}, {gap} and {warmup_passes}"
            )
        require_proxies(MemVirLoss, base_loss, embedding_size)
        proxies: Any = base_loss.proxies
        self.num_classes, self.embedding_size, self.batch_size = len(proxies), embedding_size, batch_size
        self.steps, self.gap, self.warmup_passes = steps, gap, warmup_passes
        length = steps * (gap + 1)
        self.register_buffer("past_proxies", torch.zeros(length, *proxies.shape))
        self.register_buffer("past_embeddings", torch.zeros(length, batch_size, embedding_size))
        # -1 where a batch was smaller.
        self.register_buffer("past_labels", torch.zeros(length, batch_size, dtype=torch.long))
        self.register_buffer("stored", torch.tensor(0))
        self.register_buffer("collects", torch.tensor(warmup_passes == 0))

    def on_step_start(self, clock: Clock) -> None:
        """Fill the queue from the end of the warm-up on."""
        self.collects.fill_(clock.passes >= self.warmup_passes)
        super().on_step_start(clock)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss `loss`, already reduced by the base loss."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        refuse_mined(indices_tuple)
        if len(labels) > self.batch_size:
            raise ValueError(f"a batch of {len(labels)} is larger than the batch_size {self.batch_size} of MemVirLoss")
        unit = functional.normalize(embeddings, dim=1)
        slots = self._past_slots() if self.training else []
        value = self._with_virtual_classes(unit, labels, slots) if slots else self.base_loss(unit, labels)
        if self.learns and self.collects:
            self._store(unit.detach(), labels)
        return already_reduced(loss=value)

    def _past_slots(self) -> list[int]:
        """The slots of the steps t_1, t_2, ..., as far as the queue holds them."""
        stored, length = int(self.stored), len(self.past_labels)
        held = range(self.gap, min(stored, length), self.gap + 1)
        return [(stored - 1 - back) % length for back in held]

    def _with_virtual_classes(self, unit: Tensor, labels: Tensor, slots: list[int]) -> Tensor:
        rows, classes = [unit], [labels]
        for number, slot in enumerate(slots, start=1):
            past, past_labels = self.past_embeddings[slot].to(unit.dtype), self.past_labels[slot]
            is_stored = past_labels >= 0
            rows.append(past[is_stored])
            classes.append(past_labels[is_stored] + number * self.num_classes)
        own: Any = self.base_loss.proxies
        proxies = torch.cat([own, *(self.past_proxies[slot].to(own.dtype) for slot in slots)])
        # The copy shares all tensors; `functional_call` gives it the longer list of proxies.
        widened: Any = copy.copy(self.base_loss)
        widened.num_classes = len(proxies)
        value: Tensor = functional_call(widened, {"proxies": proxies}, (torch.cat(rows), torch.cat(classes)))
        return value

    @torch.no_grad()
    def _store(self, unit: Tensor, labels: Tensor) -> None:
        stored, number = int(self.stored), len(labels)
        slot = stored % len(self.past_labels)
        base: Any = self.base_loss
        self.past_proxies[slot] = base.proxies.to(self.past_proxies.dtype)
        self.past_embeddings[slot, :number] = unit.to(self.past_embeddings.dtype)
        self.past_labels[slot, :number] = labels
        self.past_labels[slot, number:] = -1
        self.stored += 1
