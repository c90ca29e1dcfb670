"""NTCE and NONL: an image against the other images of the batch, at the proxy of its own class."""

from typing import Any, Literal

import torch
from pytorch_metric_learning.reducers import DivisorReducer
from torch import Tensor
from torch.nn.functional import one_hot

from .base import ProxyLoss, checked_labels, of_classes, of_samples, require_one_of
from .mined import weights_of

Negatives = Literal["images", "proxies", "both"]


class _OfOwnProxy(ProxyLoss):
    sub_losses = ("loss",)

    def __init__(self, num_classes: int, embedding_size: int, temperature: float = 0.2, **kwargs: Any) -> None:
        if temperature <= 0:
            raise ValueError(f"temperature must be positive, got {temperature}")
        super().__init__(num_classes, embedding_size, **kwargs)
        self.temperature = temperature

    def _scaled(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Labels (B,), cosines over the temperature (B, C), and those at the own proxies (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        scaled = self.get_logits(embeddings) / self.temperature
        return labels, scaled, scaled.gather(1, labels.unsqueeze(1)).squeeze(1)


class NTCELoss(_OfOwnProxy):
    """A softmax over the images of the batch at the proxy of an image's class (normalised temperature cross-entropy).

    With S_ic the cosine between image i of B and the proxy of class c, and the temperature t::

        loss = 1/B sum_i [ -S_{i y_i}/t + log sum_{all j of the batch} exp(S_{j y_i}/t) ]

    Images of the own class are in the sum too. So a batch of one class is pulled to one cosine, and a batch of one
    image has a loss of 0.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-loss `loss` (B,).

    Args:
        num_classes: C.
        embedding_size: d.
        temperature: t, in cosine units; default 0.2, as in the authors' configurations (0.1 in their README's example).
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `weight_init_func` (default normal with variance 2/C per entry), `weight_regularizer`,
            `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a temperature that is not positive, a distance that is not a similarity, and for every batch
            that `checked_labels` refuses.

    Source: Koromilas et al., Neural Collapse by Design, ICML 2026, arXiv 2605.20302, Eqs. 3 to 5.
    """

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss (B,) for embeddings (B, d) and labels (B,)."""
        labels, scaled, own = self._scaled(embeddings, labels)
        return {"loss": of_samples(scaled.logsumexp(0)[labels] - own, labels, indices_tuple)}


class NONLLoss(_OfOwnProxy):
    """NTCE with negatives alone in the denominator, which may be images or proxies (normalised, only negatives).

    With S_ic the cosine between image i and the proxy of class c, the temperature t, and B' the number of images that
    have negatives::

        loss = 1/B' sum_i [ -S_{i y_i}/t + log sum over the negatives of i ]

    `images` sums exp(S_{j y_i}/t) over the images j of other classes, `proxies` exp(S_ic/t) over the other classes c,
    and `both` sums both. An image without negatives has no term. So a batch of one class has with `images` a loss of 0
    and zero gradients, where the authors' code divides by zero. The loss can be negative.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-loss `loss` (B,).

    Args:
        num_classes: C.
        embedding_size: d.
        temperature: t, in cosine units; default 0.2, as in the authors' configurations (0.1 in their README's example).
        negatives: `images` (the authors' flag `symmetric`), `proxies` (none of their flags) or `both`
            (`bidirectional`). Default `images`, their default and Eq. 5.
        **kwargs: as for `NTCELoss`, but the default `reducer` is `DivisorReducer`.

    Raises:
        ValueError: for a setting out of range, a distance that is not a similarity, and for every batch that
            `checked_labels` refuses.

    Source: Koromilas et al., Neural Collapse by Design, ICML 2026, arXiv 2605.20302, Eq. 5, and the authors' code.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        temperature: float = 0.2,
        negatives: Negatives = "images",
        **kwargs: Any,
    ) -> None:
        require_one_of(Negatives, "negatives", negatives)
        super().__init__(num_classes, embedding_size, temperature, **kwargs)
        self.negatives = negatives

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss (B,) for embeddings (B, d) and labels (B,)."""
        labels, scaled, own = self._scaled(embeddings, labels)
        others = ~one_hot(labels, self.num_classes).bool()
        # The smallest number in place of -inf keeps gradients finite where there are no negatives.
        masked = scaled.masked_fill(~others, torch.finfo(scaled.dtype).min)
        sums, there = [], []
        if self.negatives != "proxies":
            sums, there = [masked.logsumexp(0)[labels]], [others.any(0)[labels]]
        if self.negatives != "images":
            sums, there = [*sums, masked.logsumexp(1)], [*there, others.any(1)]
        counted = torch.stack(there).any(0)
        losses = (torch.stack(sums).logsumexp(0) - own).where(counted, 0)
        losses = losses * weights_of(indices_tuple, labels, losses.dtype)
        return {"loss": of_classes(losses, counted.sum().clamp(min=1))}

    def default_reducer(self) -> DivisorReducer:
        """Sum divided by the number of images with negatives."""
        return DivisorReducer()
