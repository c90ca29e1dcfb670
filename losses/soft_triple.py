"""SoftTriple: several centres per class, a soft assignment to them, and a regulariser that merges them."""

from typing import Any, Literal

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor
from torch.nn import functional

from .checks import checked_labels, require_similarity
from .plugin import TrainingPlugin
from .precision import FullPrecisionForward, at_least_float32

SoftTripleRegularizer = Literal["halved", "mean"]

_ROOT_OFFSET = 1e-5  # from the authors' code; keeps the gradient finite where two centres coincide


def center_spread(centers: Tensor) -> Tensor:
    """Regulariser R: half the mean distance between two unit centres of a class. It merges superfluous centres.

    `R = 1/(C K (K-1)) sum_c sum_{k<l} sqrt(2 + 1e-5 - 2 c_ck . c_cl)`. The denominator counts every pair twice and the
    sum counts it once, as in the authors' paper and code.

    Args:
        centers: unit vectors (C, K, d), K > 1.

    Returns:
        R, a scalar.
    """
    return _spread(centers @ centers.transpose(1, 2))


def _spread(cosines: Tensor) -> Tensor:
    """R from the cosines (C, K, K) between the centres of a class."""
    n_classes, n_centers, _ = cosines.shape
    first, second = torch.triu_indices(n_centers, n_centers, offset=1, device=cosines.device)
    distances = (2 + _ROOT_OFFSET - 2 * cosines[:, first, second]).sqrt()
    return distances.sum() / (n_classes * n_centers * (n_centers - 1))


def _norms(products: Tensor) -> Tensor:
    """Norms (C, K) of the centres from their products (C, K, K); the bound is that of torch's `normalize`."""
    return torch.diagonal(products, dim1=1, dim2=2).clamp(min=1e-24).sqrt()


class SoftTripleLoss(FullPrecisionForward, TrainingPlugin, pml_losses.SoftTripleLoss):
    """Softmax over classes with several centres each, and a pull between the centres of a class.

    With unit embeddings x (B, d) and unit centres c (C, K, d), `s_ick = x_i . c_ck`, `w = softmax_k(s / gamma)`,
    `S_ic = sum_k w_ick s_ick`::

        L = mean_i CE(la (S_i - margin onehot(y_i)), y_i) + tau R      (only if K > 1, tau > 0)

    R is `center_spread` (`halved`), or twice that, the mean over the pairs of centres of a class (`mean`). The authors
    and pytorch-metric-learning since 0.9.87.dev5 have `halved`. MLRC has `mean`: the pins, the dates of the issues and
    the keys of the configs of MLRC show that its runs used releases from 0.9.82.dev2 to 0.9.87.dev4, and the file of
    the loss did not change from 0.9.82 to 0.9.87.dev4 (8 April 2020). It divides the sum of the root distances by the
    number of pairs; 0.9.87 (19 June 2020) divides by twice that number. The card of MLRC's SoftTriple therefore sets
    `mean`, so that its `tau` is the published `reg_weight`. All other cards use `halved`.

    Embeddings (B, d) may have any norm, labels (B,) are in 0..C-1. `indices_tuple` weights the samples as in
    pytorch-metric-learning. Its `SparseCentersRegularizer` is not used, because it has no offset under the root and
    gives NaN where centres coincide. Both terms divide products of raw centres by the norms: this is faster than unit
    centres, which cost more than the rest of the loss.

    Args:
        num_classes: C.
        embedding_size: d.
        centers_per_class: K; default 10 (the paper: 2 on SOP).
        la: scale of the logits; default 20.
        gamma: temperature of the soft assignment; default 0.1.
        margin: subtracted from the similarity to the own class; default 0.01.
        tau: weight of the regulariser; default 0.2.
        regularizer: which R, `halved` or `mean`; default `halved`.
        **kwargs: those of pytorch-metric-learning's class.

    Raises:
        ValueError: for an unknown regulariser, for a distance that is not a similarity, and for every batch that
            `checked_labels` refuses.

    Source: Qian et al., SoftTriple Loss, ICCV 2019, as in the authors' code; pytorch-metric-learning 0.9.86 for `mean`.
    """

    MEANING = 2
    """Version 1 normalised the centres before the products, with other rounding errors."""

    fc: torch.nn.Parameter
    distance: Any
    num_classes: int
    centers_per_class: int
    gamma: float
    la: float
    margin: float

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
        if regularizer not in ("halved", "mean"):
            raise ValueError(f"regularizer must be 'halved' or 'mean', got {regularizer!r}")
        super().__init__(
            num_classes,
            embedding_size,
            centers_per_class=centers_per_class,
            la=la,
            gamma=gamma,
            margin=margin,
            **kwargs,
        )
        require_similarity(self.distance)
        self.embedding_size = embedding_size
        self.tau, self.regularizer = tau, regularizer
        self.add_to_recordable_attributes(list_of_names=["tau", "regularizer"], is_stat=False)

    def cast_types(self, dtype: torch.dtype, device: torch.device) -> None:
        """Do nothing. Here PML would cast the centres in place to the dtype of the embeddings."""

    def centers(self, dtype: torch.dtype | None = None) -> Tensor:
        """Unit centres (C, K, d) in `dtype`; None, the default, is the dtype of the parameter."""
        return functional.normalize(self.fc.t().to(dtype), dim=1).view(self.num_classes, self.centers_per_class, -1)

    def class_vectors(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Unit vector of the class of each sample: its centres, weighted by the sample's soft assignment.

        `normalize(sum_k w_ik c_{y_i,k})`; if K = 1, this is the centre itself.

        Args:
            embeddings: (B, d) of any norm.
            labels: (B,).

        Returns:
            Unit vectors (B, d).
        """
        own_centers = self.centers(embeddings.dtype)[labels]
        similarity = (functional.normalize(embeddings, dim=1).unsqueeze(1) * own_centers).sum(dim=2)
        weights = functional.softmax(similarity * self.gamma, dim=1)  # PML stores 1 / gamma under this name
        return functional.normalize((weights.unsqueeze(2) * own_centers).sum(dim=1), dim=1)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Similarities S (B, C) between embeddings (B, d) and classes, without `la` and margin."""
        embeddings = at_least_float32(embeddings)
        return self._logits(embeddings, *self._products(embeddings.dtype))

    def _products(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Raw centres (C K, d) and the products (C, K, K) of the centres of each class."""
        centers = self.fc.t().to(dtype).contiguous()  # products of the transposed view are slower than this copy
        by_class = centers.view(self.num_classes, self.centers_per_class, -1)
        return centers, by_class @ by_class.transpose(1, 2)

    def _logits(self, embeddings: Tensor, centers: Tensor, products: Tensor) -> Tensor:
        if _is_cosine(self.distance):
            similarity = functional.normalize(embeddings, dim=1) @ centers.t() / _norms(products).view(-1)
        else:
            similarity = self.distance(embeddings, centers)
        similarity = similarity.view(-1, self.num_classes, self.centers_per_class)
        return (functional.softmax(similarity * self.gamma, dim=2) * similarity).sum(dim=2)

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-losses `loss` (B,) and `center_loss` (already reduced)."""
        c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        centers, products = self._products(embeddings.dtype)
        logits = self._logits(embeddings, centers, products)
        margins = self.margin * functional.one_hot(labels, self.num_classes).to(logits.dtype)
        losses = functional.cross_entropy(self.la * (logits - margins), labels, reduction="none")
        terms: dict[str, Any] = {
            "loss": {
                "losses": losses * lmu.convert_to_weights(indices_tuple, labels, dtype=logits.dtype),
                "indices": c_f.torch_arange_from_size(embeddings),
                "reduction_type": "element",
            }
        }
        self.add_weight_regularization_to_loss_dict(terms, self.fc.t())
        spread: Tensor | int = 0
        if self.tau > 0 and self.centers_per_class > 1:
            norms = _norms(products)
            factor = 2 if self.regularizer == "mean" else 1
            spread = factor * self.tau * _spread(products / (norms.unsqueeze(1) * norms.unsqueeze(2)))
        terms["center_loss"] = {"losses": spread, "indices": None, "reduction_type": "already_reduced"}
        return terms

    def _sub_loss_names(self) -> list[str]:
        return ["loss", "center_loss"]


def _is_cosine(distance: Any) -> bool:
    """Whether PML's `distance` is the plain cosine and keeps no statistics."""
    plain = type(distance) is CosineSimilarity and distance.p == 2 and distance.power == 1
    return plain and not distance.collect_stats
