"""SoftTriple: several centres per class, a soft assignment to them, and a regulariser that merges them."""

import math
from typing import Any, Literal

import torch
from pytorch_metric_learning.regularizers import SparseCentersRegularizer
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .base import (
    WeightedLoss,
    already_reduced,
    at_least_float32,
    checked_labels,
    of_samples,
    require_cosine,
    require_one_of,
)
from .plugin import TrainingPlugin

SoftTripleRegularizer = Literal["halved", "mean"]

_ROOT_OFFSET = 1e-5  # from the authors' code; keeps the gradient finite where two centres coincide
_SMALLEST_SQUARE = 1e-24  # the bound of torch's `normalize`


class _CosinesAndSpread(torch.autograd.Function):
    """Cosines between unit embeddings and raw centres, and R of `SoftTripleLoss`, with the gradient written out.

    Both need the norms of the centres and the products of the centres of a class, `P = c c^T`: `n_k = sqrt(P_kk)`,
    `s_k = x . c_k / n_k`, `cos_kl = P_kl / (n_k n_l)`. Together they take five matrix products a step, where automatic
    differentiation takes six and copies of the centres. On stored features (1,280 of them, 75 classes, one core) a step
    takes 3.8 ms and not 4.8 ms.
    """

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, centers: Tensor, per_class: int, with_spread: bool) -> tuple[Any, ...]:
        squares = centers.square().sum(0)
        inverse = squares.clamp(min=_SMALLEST_SQUARE).rsqrt()
        cosines = (embeddings @ centers).mul_(inverse)
        # A unit centre cannot move along its own direction. A centre shorter than the bound is divided by a constant.
        turning = inverse.square().masked_fill_(squares < _SMALLEST_SQUARE, 0)
        spread, of_class, pulls = centers.new_zeros(()), None, None
        if with_spread:
            # Products of a strided view of the centres are slower than this copy.
            of_class = centers.t().contiguous().view(-1, per_class, len(centers))
            spread, pulls = _spread_and_pulls(of_class, inverse.view(-1, per_class), turning.view(-1, per_class))
        ctx.save_for_backward(embeddings, centers, inverse, turning, cosines, of_class, pulls)
        return cosines, spread

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_cosines: Tensor, by_spread: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        embeddings, centers, inverse, turning, cosines, of_class, pulls = ctx.saved_tensors
        by_products = by_cosines * inverse
        by_embeddings = by_products @ centers.t() if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return by_embeddings, None, None, None
        along = (by_cosines * cosines).sum(0).mul_(turning)
        by_centers = torch.addcmul(embeddings.t() @ by_products, centers, along, value=-1)
        if pulls is not None:
            by_centers += ((pulls * by_spread) @ of_class).view_as(centers.t()).t().contiguous()
        return by_embeddings, by_centers, None, None


def _spread_and_pulls(of_class: Tensor, inverse: Tensor, turning: Tensor) -> tuple[Tensor, Tensor]:
    """R, and the matrices (C, K, K) whose products with the centres of a class (C, K, d) are the gradient of R."""
    outer = inverse.unsqueeze(1) * inverse.unsqueeze(2)
    cosines = (of_class @ of_class.transpose(1, 2)).mul_(outer)
    distances = (2 + _ROOT_OFFSET - 2 * cosines).sqrt()
    pairs = inverse.numel() * (inverse.shape[1] - 1)
    spread = distances.triu(1).sum() / pairs
    pulls = distances.reciprocal_().div_(-pairs)
    diagonal = torch.diagonal(pulls, dim1=1, dim2=2)
    diagonal.zero_()
    along = (pulls * cosines).sum(2).mul_(turning)
    pulls.mul_(outer)
    diagonal.copy_(along.neg_())
    return spread, pulls


class SoftTripleLoss(WeightedLoss, TrainingPlugin):
    """Softmax over classes with several centres each, and a pull between the centres of a class.

    With unit embeddings x (B, d) and unit centres c (C, K, d), `s_ick = x_i . c_ck`, `w = softmax_k(s / gamma)`,
    `S_ic = sum_k w_ick s_ick`::

        R = 1/(C K (K-1)) sum_c sum_{k<l} sqrt(2 + 1e-5 - 2 c_ck . c_cl)
        L = mean_i CE(la (S_i - margin onehot(y_i)), y_i) + tau R      (only if K > 1, tau > 0)

    R merges superfluous centres. Its denominator counts every pair twice and the sum once (`halved`); with `mean` R is
    twice that, the mean over the pairs of centres of a class. The authors and pytorch-metric-learning since 0.9.87.dev5
    have `halved`, MLRC's releases `mean` (the file of the loss did not change from 0.9.82 to 0.9.87.dev4). The card of
    MLRC's SoftTriple therefore sets `mean`, so that its `tau` is the published `reg_weight`. All others use `halved`.

    Embeddings (B, d) may have any norm, labels (B,) are in 0..C-1. `indices_tuple` weights the samples as in
    pytorch-metric-learning. Its `SparseCentersRegularizer` is not used, because it has no offset under the root and
    gives NaN where centres coincide.

    Args:
        num_classes: C.
        embedding_size: d.
        centers_per_class: K; default 10 (the paper: 2 on SOP).
        la: scale of the logits; default 20.
        gamma: temperature of the soft assignment; default 0.1.
        margin: subtracted from the similarity to the own class; default 0.01.
        tau: weight of the regulariser; default 0.2.
        regularizer: which R, `halved` or `mean`; default `halved`.
        **kwargs: PML's `reducer` (default `MeanReducer`), `weight_init_func` of the centres `fc` (d, C K; default as
            torch starts a linear layer), `weight_regularizer`, `embedding_regularizer` and their weights.

    Raises:
        ValueError: for an unknown regulariser, for a `SparseCentersRegularizer` beside tau > 0, for a distance that is
            not the cosine, and for every batch that `checked_labels` refuses.

    Source: Qian et al., SoftTriple Loss, ICCV 2019, as in the authors' code; pytorch-metric-learning 0.9.86 for `mean`.
    """

    VERSION = 2
    """Version 1 normalised the centres before the products, with other rounding errors."""

    sub_losses = ("loss", "center_loss")

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        centers_per_class: int = 10,
        la: float = 20.0,
        gamma: float = 0.1,
        margin: float = 0.01,
        *,
        tau: float = 0.2,
        regularizer: SoftTripleRegularizer = "halved",
        **kwargs: Any,
    ) -> None:
        require_one_of(SoftTripleRegularizer, "regularizer", regularizer)
        super().__init__(**kwargs)
        require_cosine(self)
        if tau > 0 and isinstance(self.weight_regularizer, SparseCentersRegularizer):
            raise ValueError(
                "SparseCentersRegularizer pulls the centres together as tau does; drop it, or set tau=0 to use it alone"
            )
        self.num_classes, self.embedding_size, self.centers_per_class = num_classes, embedding_size, centers_per_class
        self.la, self.inverse_gamma, self.margin = la, 1 / gamma, margin
        self.tau, self.regularizer = tau, regularizer
        self.fc = nn.Parameter(torch.empty(embedding_size, num_classes * centers_per_class))
        self.start_weights(self.fc)

    def default_weight_init(self, weight: Tensor) -> None:
        """Start the centres in place, as pytorch-metric-learning 2.9 does."""
        nn.init.kaiming_uniform_(weight, a=math.sqrt(5))

    def class_weights(self) -> Tensor:
        """The centres (C K, d)."""
        return self.fc.t()

    def centers(self, dtype: torch.dtype | None = None) -> Tensor:
        """Unit centres (C, K, d) in `dtype`; None, the default, is the dtype of the parameter."""
        return functional.normalize(self.fc.t().to(dtype), dim=1).view(self.num_classes, self.centers_per_class, -1)

    def class_vectors(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Unit vector of the class of each sample: its centres, weighted by the sample's soft assignment.

        `normalize(sum_k w_ik c_{y_i,k})`; if K = 1, this is the centre itself.

        Args:
            embeddings: (B, d) of any norm.
            labels: (B,).
        """
        own_centers = self.centers(embeddings.dtype)[labels]
        similarity = (functional.normalize(embeddings, dim=1).unsqueeze(1) * own_centers).sum(dim=2)
        weights = functional.softmax(similarity * self.inverse_gamma, dim=1)
        return functional.normalize((weights.unsqueeze(2) * own_centers).sum(dim=1), dim=1)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Similarities S (B, C) between embeddings (B, d) and classes, without `la` and margin."""
        return self._logits(self._similarity_and_spread(at_least_float32(embeddings))[0])

    def _similarity_and_spread(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Similarities (B, C K) to the centres, and R, which is 0 where it is not wanted."""
        with_spread = self.tau > 0 and self.centers_per_class > 1
        unit, centers = functional.normalize(embeddings, dim=1), self.fc.to(embeddings.dtype)
        similarity, spread = _CosinesAndSpread.apply(  # type: ignore[no-untyped-call]
            unit, centers, self.centers_per_class, with_spread
        )
        return similarity, spread

    def _logits(self, similarity: Tensor) -> Tensor:
        # torch's softmax over a short last dimension is several times slower than over another one.
        by_center = similarity.view(-1, self.num_classes, self.centers_per_class).transpose(1, 2).contiguous()
        return (functional.softmax(by_center * self.inverse_gamma, dim=1) * by_center).sum(dim=1)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-losses `loss` (B,) and `center_loss` (already reduced)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        similarity, spread = self._similarity_and_spread(embeddings)
        logits = self._logits(similarity)
        margins = torch.zeros_like(logits).scatter_(1, labels.unsqueeze(1), self.margin)
        losses = functional.cross_entropy(self.la * (logits - margins), labels, reduction="none")
        factor = 2 if self.regularizer == "mean" else 1
        return {
            "loss": of_samples(losses, labels, indices_tuple),
            **already_reduced(center_loss=factor * self.tau * spread),
        }
