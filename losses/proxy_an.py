"""Proxy-AN: positives are summed for a proxy over its images, negatives for an image over the other proxies."""

from typing import Any

from pytorch_metric_learning.reducers import DivisorReducer
from torch import Tensor
from torch.nn.functional import one_hot

from .base import ProxyLoss, checked_labels, log_one_plus_sum, of_classes
from .mined import mined_offset


class ProxyANLoss(ProxyLoss):
    """Proxy-Anchor's pull, and a push in which each image sums over the proxies of the other classes (Proxy-AN).

    With S_ic the cosine between image i of B and the proxy of class c, L0(A) = log(1 + sum of exp over A), and C+ the
    classes in the batch::

        loss = 1/|C+| sum_{c in C+} L0({-alpha (S_ic - delta) : y_i = c})
             + 1/B    sum_i         L0({ alpha (S_ic + delta) : c != y_i})

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `pos_loss` (C,) and `neg_loss` (B,).

    Args:
        num_classes: C.
        embedding_size: d.
        alpha: sharpness, without unit; default 32.
        delta: margin, in cosine units; default 0.1.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `DivisorReducer`),
            `weight_init_func` (default normal with variance 2/C per entry), `weight_regularizer`,
            `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a distance that is not a similarity, and for every batch that `checked_labels` refuses.

    Source: Peng, Ke et al., Neural Networks 195, 2026, article 108254.
    """

    sub_losses = ("pos_loss", "neg_loss")

    def __init__(
        self, num_classes: int, embedding_size: int, alpha: float = 32.0, delta: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(num_classes, embedding_size, **kwargs)
        self.alpha, self.delta = alpha, delta

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        cosine = self.get_logits(embeddings)
        own_class = one_hot(labels, self.num_classes).bool()
        pull = self.alpha * self.distance.margin(cosine, self.delta)
        push = self.alpha * self.distance.margin(-self.delta, cosine)
        if indices_tuple is not None:
            mined = mined_offset(indices_tuple, labels, embeddings.dtype)
            pull, push = pull + mined, push + mined
        return {
            "pos_loss": of_classes(log_one_plus_sum(pull, own_class), own_class.any(0).sum()),
            "neg_loss": of_classes(log_one_plus_sum(push.t(), ~own_class.t()), len(labels)),
        }

    def default_reducer(self) -> DivisorReducer:
        """Sums divided by the numbers of classes in the batch and of images."""
        return DivisorReducer()
