"""SoftTriple: several centres per class, met by a soft assignment, kept together by a regulariser."""

from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor
from torch.nn import functional

from losses.checks import checked_labels, require_similarity
from losses.plugin import TrainingPlugin
from losses.precision import FullPrecisionForward, at_least_float32

_ROOT_OFFSET = 1e-5  # the authors'; keeps the gradient finite where two centres coincide


def center_spread(centers: Tensor) -> Tensor:
    """Mean root distance between the unit centres of a class, pulling superfluous centres into one.

    `R = 1/(C K (K-1)) sum_c sum_{k<l} sqrt(2 + 1e-5 - 2 c_ck . c_cl)` for unit `centers` (C, K, d), K > 1. The
    normaliser counts every pair twice and the sum once, as printed by the authors and in their code.
    """
    n_classes, n_centers, _ = centers.shape
    first, second = torch.triu_indices(n_centers, n_centers, offset=1, device=centers.device)
    similarity = (centers @ centers.transpose(1, 2))[:, first, second]
    return (2 + _ROOT_OFFSET - 2 * similarity).sqrt().sum() / (n_classes * n_centers * (n_centers - 1))


class SoftTripleLoss(FullPrecisionForward, TrainingPlugin, pml_losses.SoftTripleLoss):
    """Softmax over classes with several centres each, and a pull between the centres of a class.

    With unit embeddings x (B, d) and unit centres c (C, K, d), `s_ick = x_i . c_ck`, `w = softmax_k(s / gamma)`,
    `S_ic = sum_k w_ick s_ick`::

        L = mean_i CE(la (S_i - margin onehot(y_i)), y_i) + tau R      (R: `center_spread`; only if K > 1, tau > 0)

    Embeddings (B, d) may be raw, labels (B,) are in 0..C-1. `indices_tuple` weighs the samples as in
    pytorch-metric-learning, whose class computes the first term; the second is ours, because the library's
    `SparseCentersRegularizer` has no offset under the root and gives NaN where centres coincide.

    Args:
        num_classes, embedding_size: C and d.
        centers_per_class: K, 10 (2 on SOP).
        la: scale of the logits, 20.
        gamma: temperature of the soft assignment, 0.1.
        tau: weight of the regulariser, 0.2.
        margin: taken off the similarity to the own class, 0.01.

    Further keywords go to pytorch-metric-learning's base class. Raises ValueError for labels out of range.

    Source: Qian et al., SoftTriple Loss, ICCV 2019, as in the authors' code.
    """

    fc: torch.nn.Parameter
    distance: Any
    num_classes: int
    centers_per_class: int
    gamma: float

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        centers_per_class: int = 10,
        la: float = 20.0,
        gamma: float = 0.1,
        tau: float = 0.2,
        margin: float = 0.01,
        **kwargs: Any,
    ) -> None:
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
        self.tau = tau
        self.add_to_recordable_attributes(name="tau", is_stat=False)

    def cast_types(self, dtype: torch.dtype, device: torch.device) -> None:
        """PML casts the centres in place to the dtype of the embeddings here; they are left alone instead."""

    def centers(self, dtype: torch.dtype | None = None) -> Tensor:
        """Unit centres (C, K, d), in their own dtype or another."""
        return functional.normalize(self.fc.t().to(dtype), dim=1).view(self.num_classes, self.centers_per_class, -1)

    def class_vectors(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Unit vector standing for the class of each sample: its centres, mixed by the sample's soft assignment.

        `normalize(sum_k w_ik c_{y_i,k})`, (B, d), for embeddings (B, d) and labels (B,); the centre itself if K = 1.
        """
        own = self.centers(embeddings.dtype)[labels]
        similarity = (functional.normalize(embeddings, dim=1).unsqueeze(1) * own).sum(dim=2)
        weights = functional.softmax(similarity * self.gamma, dim=1)  # PML stores 1 / gamma under this name
        return functional.normalize((weights.unsqueeze(2) * own).sum(dim=1), dim=1)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Similarities S (B, C) between embeddings (B, d) and classes, without `la` and margin."""
        embeddings = at_least_float32(embeddings)
        similarity: Tensor = self.distance(embeddings, self.fc.t().to(embeddings.dtype))
        similarity = similarity.view(-1, self.num_classes, self.centers_per_class)
        return (functional.softmax(similarity * self.gamma, dim=2) * similarity).sum(dim=2)

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-losses `loss` (B,) and `center_loss` (already reduced)."""
        c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        terms: dict[str, Any] = super().compute_loss(embeddings, labels, indices_tuple, embeddings, labels)
        spread: Tensor | int = 0
        if self.tau > 0 and self.centers_per_class > 1:
            spread = self.tau * center_spread(self.centers(embeddings.dtype))
        terms["center_loss"] = {"losses": spread, "indices": None, "reduction_type": "already_reduced"}
        return terms

    def _sub_loss_names(self) -> list[str]:
        return ["loss", "center_loss"]
