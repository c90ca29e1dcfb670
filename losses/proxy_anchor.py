"""Proxy-Anchor, as in PML but for the proxies, which keep their dtype, and the labels, which are checked."""

from typing import Any

from pytorch_metric_learning.reducers import DivisorReducer
from torch import Tensor
from torch.nn.functional import one_hot

from .base import ProxyLoss, checked_labels, log_one_plus_sum, of_classes
from .mined import mined_offset


class ProxyAnchorLoss(ProxyLoss):
    """One proxy per class; the hardest samples of a batch pull and push it most (Proxy-Anchor, Eq. 4).

    With S_ic the cosine between sample i and the proxy of class c, L0(A) = log(1 + sum of exp over A), and C+ the
    classes in the batch::

        loss = 1/|C+| sum_{c in C+} L0({-alpha (S_ic - margin) : y_i = c})
             + 1/C    sum_c         L0({ alpha (S_ic + margin) : y_i != c})

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `pos_loss` and `neg_loss` (C,).

    Args:
        num_classes: C.
        embedding_size: d.
        margin: delta, in cosine units; default 0.1.
        alpha: sharpness, without unit; default 32.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `DivisorReducer`),
            `weight_init_func` (default normal with variance 2/C per entry), `weight_regularizer`,
            `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a distance that is not a similarity, and for every batch that `checked_labels` refuses.

    Source: Kim et al., Proxy Anchor Loss for Deep Metric Learning, CVPR 2020, Eq. 4.
    """

    sub_losses = ("pos_loss", "neg_loss")

    def __init__(
        self, num_classes: int, embedding_size: int, margin: float = 0.1, alpha: float = 32.0, **kwargs: Any
    ) -> None:
        super().__init__(num_classes, embedding_size, **kwargs)
        self.margin, self.alpha = margin, alpha

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses (C,) for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        cosine = self.get_logits(embeddings)
        own_class = one_hot(labels, self.num_classes).bool()
        pull = self.alpha * self.distance.margin(cosine, self.margin)
        push = self.alpha * self.distance.margin(-self.margin, cosine)
        if indices_tuple is not None:
            mined = mined_offset(indices_tuple, labels, embeddings.dtype)
            pull, push = pull + mined, push + mined
        return {
            # pytorch-metric-learning counts the classes of the batch on the host.
            "pos_loss": of_classes(log_one_plus_sum(pull, own_class), own_class.any(0).sum()),
            "neg_loss": of_classes(log_one_plus_sum(push, ~own_class), self.num_classes),
        }

    def default_reducer(self) -> DivisorReducer:
        """Sum divided by the number of classes that takes part."""
        return DivisorReducer()
