"""ProxyGML: classification on a graph of the proxies nearest to each sample."""

import math
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from .base import ProxyLoss, already_reduced, checked_labels, of_samples

_ENTRIES = 2**21
"""Entries of a block's logits: 8 MiB in float32."""


def product_cross_entropy(rows: Tensor, columns: Tensor, classes: Tensor) -> Tensor:
    """Mean cross entropy of the logits `rows @ columns`, with one block of logits in memory at a time.

    If the logits fit into one block, this is torch's cross entropy. Otherwise the gradient is computed together with
    the value, block by block, so there is no second gradient.

    Args:
        rows: (n, d).
        columns: (d, C).
        classes: (n,), the right class of every row.
    """
    if len(rows) * columns.shape[1] <= _ENTRIES:
        return cross_entropy(rows @ columns, classes)
    mean: Tensor = _BlockCrossEntropy.apply(rows, columns, classes)  # type: ignore[no-untyped-call]
    return mean


class _BlockCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, classes: Tensor) -> Tensor:
        size = max(1, _ENTRIES // columns.shape[1])
        total = rows.new_zeros(())
        row_gradient, column_gradient = torch.empty_like(rows), torch.zeros_like(columns)
        # All blocks use this memory; new tensors per block leave holes that the allocator does not fill again.
        logits = rows.new_empty(size, columns.shape[1])
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            block, right = rows[part], classes[part].unsqueeze(1)
            p = torch.mm(block, columns, out=logits[: len(block)])
            p -= p.amax(1, keepdim=True)
            of_right = p.gather(1, right)
            sums = p.exp_().sum(1, keepdim=True)
            total += (sums.log() - of_right).sum()
            p /= sums * len(rows)
            p.scatter_add_(1, right, p.new_full(right.shape, -1 / len(rows)))
            row_gradient[part] = p @ columns.t()
            column_gradient.addmm_(block.t(), p)
        ctx.save_for_backward(row_gradient, column_gradient)
        return total / len(rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, None]:
        row_gradient, column_gradient = ctx.saved_tensors
        return scale * row_gradient, scale * column_gradient, None


class ProxyGMLLoss(ProxyLoss):
    """N proxies per class; each sample uses its k nearest proxies, those of its class first (ProxyGML, Eqs. 3-12).

    With S_ij the cosine of sample i and proxy j (class j // N), and I_i the k = ceil(r C N) proxies selected for i::

        Z_ic = sum of S_ij over j in I_i of class c                                     (Eqs. 4, 5)
        P_ic = softmax of Z_i over the classes that own a proxy in I_i                  (Eq. 6)
        L_s  = mean over i of -log P_i,y_i                                              (Eq. 7)
        L_p  = mean over proxies j of cross entropy(sum of cosines of j to each class's proxies, j // N)  (Eqs. 8-11)
        loss = L_s + reg_weight L_p                                                     (Eq. 12)

    The selection is constant for the gradient. A proxy that no sample selects gets its gradient from L_p alone.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `loss` (B,) and, with reg_weight > 0,
    `reg_loss` (scalar). `proxies` is (C N, d), row j of class j // N.

    If k <= N, the constructor warns: proxies of the own class then fill the selection, and L_s is 0.

    Args:
        num_classes: C.
        embedding_size: d.
        proxies_per_class: N; default 12 (the paper: 1 for Stanford Online Products).
        r: share of all proxies that a sample uses, in (0, 1]; default 0.05.
        reg_weight: lambda; default 0.3. 0 omits L_p (Table 1).
        positive_mask: False selects by similarity alone, without S^pos of Eq. 3 (Table 1). A sample without a selected
            proxy of its class then adds nothing to L_s if the softmax is masked. Default True.
        masked_softmax: False takes the softmax over all classes, without M of Eq. 6; classes without a selected proxy
            have Z = 0 (Table 1). Default True.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `weight_init_func` (default uniform in +-1/sqrt(C N)), `weight_regularizer`, `embedding_regularizer` and
            their weights.

    Raises:
        ValueError: for r outside (0, 1], for a distance that is not a similarity, and for every batch that
            `checked_labels` refuses.

    Source: ProxyGML, Eqs. 3-12, Table 1. The authors train the proxies with Adam at eps = 0.01, part of their rates.
    """

    VERSION = 2
    """Version 1 computed L_p as a whole; with more than 2 million logits the blocks have other rounding errors."""

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        proxies_per_class: int = 12,
        r: float = 0.05,
        reg_weight: float = 0.3,
        positive_mask: bool = True,
        masked_softmax: bool = True,
        **kwargs: Any,
    ) -> None:
        self.reg_weight, self.proxies_per_class = reg_weight, proxies_per_class
        # PML's constructor asks for the names.
        self.sub_losses = ("loss", "reg_loss") if reg_weight else ("loss",)
        super().__init__(num_classes, embedding_size, **kwargs)
        if not 0 < r <= 1:
            raise ValueError(f"r must be in (0, 1], got {r}")
        self.positive_mask = positive_mask
        self.masked_softmax = masked_softmax
        # A product that is above an integer only by rounding counts as that integer.
        self.k = min(max(math.ceil(r * len(self.proxies) - 1e-9), 1), len(self.proxies))
        if positive_mask and self.k <= proxies_per_class:
            warnings.warn(
                f"k = {self.k} of {proxies_per_class} proxies per class: no other class is ever selected, raise r",
                stacklevel=2,
            )

    def default_weight_init(self, weight: Tensor) -> None:
        """Uniform in ±1/sqrt(C N): the authors' layout is (d, C N), so their fan-in is the fan-out of ours."""
        torch.nn.init.kaiming_uniform_(weight, a=math.sqrt(5), mode="fan_out")

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: -log P (B,) and the weighted proxy term, for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        proxies = self.proxies.to(embeddings.dtype)
        similarity = self.distance(embeddings, proxies)
        losses = self._sample_losses(similarity, self.select(similarity, labels), labels)
        sub_losses = {"loss": of_samples(losses, labels, indices_tuple)}
        if self.reg_weight:
            sub_losses |= already_reduced(reg_loss=self.reg_weight * self._proxy_loss(proxies))
        return sub_losses

    @torch.no_grad()
    def select(self, similarity: Tensor, labels: Tensor | None = None) -> Tensor:
        """Mask (B, C N) of the k proxies of each sample.

        With labels (B,), proxies of the own class come first, as the paper intends S^pos. Eq. 3 as published adds 1 to
        their cosines, which does not always put them first.
        """
        key = similarity
        if labels is not None and self.positive_mask:
            lead = similarity.max() - similarity.min() + 1
            own_class = self._class_of_proxy(similarity.device) == labels.unsqueeze(1)
            key = torch.where(own_class, similarity + lead, similarity)
        nearest = key.topk(self.k, dim=1).indices
        return torch.zeros_like(similarity, dtype=torch.bool).scatter_(1, nearest, True)

    def class_sums(self, similarity: Tensor, selected: Tensor) -> Tensor:
        """Z (B, C): per class the sum of the selected similarities (Eqs. 4, 5)."""
        return self._by_class(torch.where(selected, similarity, 0.0)).sum(2)

    def _sample_losses(self, similarity: Tensor, selected: Tensor, labels: Tensor) -> Tensor:
        """-log P_i,y_i (B) of Eqs. 6, 7."""
        logits = self.class_sums(similarity, selected)
        own_class = labels.unsqueeze(1)
        if not self.masked_softmax:
            return -log_softmax(logits, dim=1).gather(1, own_class).squeeze(1)
        selected_class = self._by_class(selected).any(2)
        log_p = log_softmax(logits.masked_fill(~selected_class, -torch.inf), dim=1)
        # Without S^pos the own class may have no selected proxy. Its probability is then constantly 0: no gradient.
        return torch.where(selected_class, -log_p, 0.0).gather(1, own_class).squeeze(1)

    def _proxy_loss(self, proxies: Tensor) -> Tensor:
        """L_p of Eqs. 8-11. The proxies of a class are summed first, which avoids a (C N, C N) matrix."""
        unit = self.distance.maybe_normalize(proxies)
        return product_cross_entropy(unit, self._by_class(unit.t()).sum(2), self._class_of_proxy(unit.device))

    def _by_class(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), self.num_classes, self.proxies_per_class)

    def _class_of_proxy(self, device: torch.device) -> Tensor:
        return torch.arange(self.num_classes, device=device).repeat_interleave(self.proxies_per_class)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Z (B, C) of embeddings (B, d) without labels, from the k nearest proxies of all classes.

        Training puts the proxies of the own class first, so its logits differ from these.
        """
        similarity = super().get_logits(embeddings)
        return self.class_sums(similarity, self.select(similarity))
