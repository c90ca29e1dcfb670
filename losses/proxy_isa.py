"""Proxy-ISA: Proxy-Anchor with pair weights that depend on how well a class is learned."""

import math
from typing import Any, Literal, NamedTuple

import torch
from pytorch_metric_learning.distances import DotProductSimilarity
from torch import Tensor
from torch.nn.functional import one_hot

from .base import checked_labels, log_one_plus_sum, of_classes, require_one_of
from .memory_queue import SummedMemoryQueue
from .mined import mined_offset
from .plugin import Clock, warn_without_hooks
from .proxy_anchor import ProxyAnchorLoss

PositivePenalty = Literal["sigma", "v", "inverse_effective_number", "none"]


class ClassStatus(NamedTuple):
    """Thresholds and penalties of every class in the current state, four vectors (C,).

    Attributes:
        effective_number: E, number of samples seen, discounted for overlap (Eq. 8).
        penalty: weight of easy and outlying positives; sigma of Eq. 17, or its replacement in Table 3.
        easy_above: l; a positive with a higher similarity is easy (Eq. 10).
        outlier_below: o = l - eta; a sample with a lower similarity is an outlier (Eq. 15).
    """

    effective_number: Tensor
    penalty: Tensor
    easy_above: Tensor
    outlier_below: Tensor


class ProxyISALoss(ProxyAnchorLoss):
    """Proxy-Anchor with higher weights for informative samples (Proxy-ISA, Eqs. 8-17).

    With S_ic the cosine of sample i and proxy c, n_c the number of clean samples of class c seen before, and l_c its
    learned similarity (h times the mean cosine between proxy c and the memory's embeddings of class c; 1 while the
    memory has none)::

        E_c = (1 - ((V-1)/V)^n_c) V,   v_c = 1 / (1 + log(1 + E_c))                     (Eqs. 8, 14)
        o_c = l_c - (1 + k (1 - l_c)) v_c - lam                                         (Eqs. 10, 15)
        sigma_c = 1 + (1 + e^-tau) (v_c - 1) sigmoid(E_c + tau - V)                     (Eq. 17)
        w_ic = 1 + sigma_c if o_c <= S_ic <= l_c else sigma_c        own class, filter on (Eq. 16)
             = 1                                                     own class, filter off
             = 1 / max(1, E_c) if S_ic < o_c else 1                  other class         (Eq. 16)
        loss = 1/W+ sum_{c in C+} L0({alpha w_ic (margin - S_ic) : y_i = c})
             + 1/W- sum_c         L0({alpha w_ic (margin + S_ic) : y_i != c})           (Eq. 13)

    W+ and W- sum the classes' mean weights of own and of other samples. Weights are constants for the gradient and come
    from the state before the batch. A forward in training mode with gradients enabled then updates the state, so call
    it exactly once per optimizer step. With the filter on, own-class outliers (S_i,y_i < o) are neither counted nor
    stored in the memory.

    In a loop that does not call `on_step_start`, call `start_memory` and `start_filter`.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `pos_loss` and `neg_loss` (C,).

    Args:
        num_classes: C.
        embedding_size: d.
        margin: delta, in cosine units; default 0.1.
        alpha: sharpness, without unit; default 32.
        V: bound of the effective number, in samples, at least 1; default 100.
        k: share of the class's hardness in the threshold; default 0.9 (the authors' README: Cars 0.4, In-Shop 0.1).
        lam: lambda, constant part of the threshold, in cosine units; default 0.1.
        h: scale of the learned similarity; default 0.15.
        tau: timing of the decay, in samples, positive; default 1.5.
        memory_size: T, number of stored embeddings; default 55000.
        memory_start_pass: completed passes over the training images after which `on_step_start` switches the memory
            on; default 2.
        filter_start_pass: the same for the filter; default 3.
        positive_penalty: `sigma`, or for Table 3 `v`, `inverse_effective_number` (1 / max(1, E_c)) or `none` (weight
            1); default `sigma`.
        negative_penalty: False sets the weights of negatives to 1 (Table 3); default True.
        **kwargs: those of `ProxyAnchorLoss`.

    Raises:
        ValueError: for V < 1, tau <= 0, unknown names, a distance that is neither cosine nor dot product, and for every
            batch that `checked_labels` refuses.

    Source: Proxy-ISA, Eqs. 8-17, Algorithm 1, Table 3.
    """

    VERSION = 2
    """Version 1 summed the similarities of the stored rows anew in every step, with other rounding errors."""

    _hook_was_called = False
    memory_on: Tensor
    filter_on: Tensor
    counts: Tensor
    learned_sim: Tensor

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 0.1,
        alpha: float = 32.0,
        V: float = 100.0,
        k: float = 0.9,
        lam: float = 0.1,
        h: float = 0.15,
        tau: float = 1.5,
        memory_size: int = 55_000,
        memory_start_pass: int = 2,
        filter_start_pass: int = 3,
        positive_penalty: PositivePenalty = "sigma",
        negative_penalty: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, margin=margin, alpha=alpha, **kwargs)
        if V < 1 or tau <= 0:
            raise ValueError(f"V must be at least 1 and tau positive, got V={V} and tau={tau}")
        if not isinstance(self.distance, DotProductSimilarity):
            raise ValueError("ProxyISALoss needs cosines or dot products, which are linear in the stored embeddings")
        require_one_of(PositivePenalty, "positive_penalty", positive_penalty)
        self.V, self.k, self.lam, self.h, self.tau = V, k, lam, h, tau
        self.memory_start_pass, self.filter_start_pass = memory_start_pass, filter_start_pass
        self.positive_penalty, self.negative_penalty = positive_penalty, negative_penalty
        self.queue = SummedMemoryQueue(memory_size, embedding_size, num_classes)
        self.register_buffer("memory_on", torch.tensor(False))
        self.register_buffer("filter_on", torch.tensor(False))
        self.register_buffer("counts", torch.zeros(num_classes, dtype=torch.long))
        self.register_buffer("learned_sim", torch.ones(num_classes))

    def start_memory(self) -> None:
        """Switch the memory on: from the next call on it stores embeddings."""
        self.memory_on.fill_(True)

    def start_filter(self) -> None:
        """Switch the filter on: from the next call on positives are weighted and outliers are not stored."""
        self.filter_on.fill_(True)

    def switches(self) -> tuple[bool, bool]:
        """Whether memory and filter are on in the next call."""
        return bool(self.memory_on), bool(self.filter_on)

    def on_step_start(self, clock: Clock) -> None:
        """Switch memory and filter on after their numbers of passes over the training images."""
        self._hook_was_called = True
        if clock.passes >= self.memory_start_pass:
            self.start_memory()
        if clock.passes >= self.filter_start_pass:
            self.start_filter()

    def class_status(self, dtype: torch.dtype) -> ClassStatus:
        """Thresholds and penalties of all classes in the current state, in `dtype`."""
        E = self._effective_number(dtype)
        v = 1 / (1 + torch.log1p(E))
        similarity = self.learned_sim.to(dtype)
        threshold = (1 + self.k * (1 - similarity)) * v + self.lam
        return ClassStatus(E, self._penalty(E, v), similarity, similarity - threshold)

    def _effective_number(self, dtype: torch.dtype) -> Tensor:
        counts = self.counts.to(dtype)
        if self.V == 1:  # (V - 1) / V = 0 has no logarithm; E is 1 after the first sample
            return counts.clamp(max=1)
        return -self.V * torch.expm1(counts * math.log1p(-1 / self.V))

    def _penalty(self, E: Tensor, v: Tensor) -> Tensor:
        if self.positive_penalty == "v":
            return v
        if self.positive_penalty == "inverse_effective_number":
            return 1 / E.clamp(min=1)
        return 1 + (1 + math.exp(-self.tau)) * (v - 1) * torch.sigmoid(E + self.tau - self.V)

    def pair_weights(self, similarity: Tensor, own: Tensor, status: ClassStatus) -> Tensor:
        """Pair weights w (B, C) from similarities (B, C) and the mask (B, C) of samples and their own class."""
        _, filter_on = self.switches()
        ones = torch.ones_like(similarity)
        outlier = similarity < status.outlier_below
        positive = negative = ones
        if filter_on and self.positive_penalty != "none":
            uninformative = outlier | (similarity > status.easy_above)
            positive = torch.where(uninformative, status.penalty, 1 + status.penalty)
        if self.negative_penalty:
            negative = torch.where(outlier, 1 / status.effective_number.clamp(min=1), ones)
        return torch.where(own, positive, negative)

    def filtered(self, similarity: Tensor, labels: Tensor, status: ClassStatus) -> Tensor:
        """Mask (B,) of the outliers of their own class, which the filter keeps out of counts and memory."""
        _, filter_on = self.switches()
        if not filter_on:
            return torch.zeros_like(labels, dtype=torch.bool)
        return similarity.gather(1, labels.unsqueeze(1)).squeeze(1) < status.outlier_below[labels]

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses (C,). In training mode the batch then updates the state."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        similarity = self.get_logits(embeddings)
        own_class = one_hot(labels, self.num_classes).bool()
        status = self.class_status(similarity.dtype)
        weights = self.pair_weights(similarity, own_class, status)
        mined = mined_offset(indices_tuple, labels, similarity.dtype)
        pull = self.alpha * weights * (self.margin - similarity) + mined
        push = self.alpha * weights * (self.margin + similarity) + mined
        if self.learns:
            self._observe(embeddings, similarity, labels, own_class, status)
        return {
            "pos_loss": of_classes(log_one_plus_sum(pull, own_class), _mean_weights(weights, own_class)),
            "neg_loss": of_classes(log_one_plus_sum(push, ~own_class), _mean_weights(weights, ~own_class)),
        }

    @torch.no_grad()
    def _observe(
        self, embeddings: Tensor, similarity: Tensor, labels: Tensor, own_class: Tensor, status: ClassStatus
    ) -> None:
        """Count and store the clean samples, then update the learned similarity of their classes (Algorithm 1)."""
        memory_on, filter_on = self.switches()
        if not (self._hook_was_called or (memory_on and filter_on)):
            warn_without_hooks(self, "memory or filter off")
        clean = ~self.filtered(similarity, labels, status)
        self.counts += (own_class & clean.unsqueeze(1)).sum(0)
        if memory_on:
            self.queue.push(self.distance.maybe_normalize(embeddings)[clean], labels[clean])
            self._measure(labels)

    def _measure(self, labels: Tensor) -> None:
        """Update the learned similarity of the batch's classes (B,) as far as the memory holds them (Eq. 10)."""
        totals, numbers = self.queue.class_sums(labels)
        proxies = self.distance.maybe_normalize(self.proxies[labels].double())
        # A similarity is linear in the stored vectors, so that of their sum is the sum of theirs.
        similarity = (proxies * totals).sum(1)
        in_memory = numbers > 0
        measured = (self.h * similarity / numbers.clamp(min=1)).to(self.learned_sim.dtype)
        # Samples of one class write the same value.
        self.learned_sim[labels] = torch.where(in_memory, measured, self.learned_sim[labels])


def _mean_weights(weights: Tensor, mask: Tensor) -> Tensor:
    """The sum over the columns of the mean weight in the mask (Eq. 13)."""
    return ((weights * mask).sum(0) / mask.sum(0).clamp(min=1)).sum()
