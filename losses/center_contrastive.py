"""Center contrastive loss: CosFace with a further pull of each image to the proxy of its class."""

from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from .base import ProxyLoss, checked_labels, of_samples


class CenterContrastiveLoss(ProxyLoss):
    """Softmax over classes with a margin, and twice the cosine to the own centre in the numerator alone.

    With S_ic the cosine between image i of B and the proxy of class c, the scale s, the margin m and the weight w::

        loss = 1/B sum_i -log( exp(s (S_{i y_i} - m) + 2 w S_{i y_i})
                               / (exp(s (S_{i y_i} - m)) + sum_{c != y_i} exp(s S_ic)) )
             = CosFace(s, m) - 2 w mean S_{i y_i}

    With w = 0 it is CosFace. The loss can be negative.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-loss `loss` (B,).

    Args:
        num_classes: C.
        embedding_size: d.
        scale: s, of the cosines; default 64.
        margin: m, in cosine units; default 0.2.
        center_weight: w, without unit; default 1.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `weight_init_func` (default normal with variance 2/C per entry), `weight_regularizer`,
            `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a distance that is not a similarity, and for every batch that `checked_labels` refuses.

    Source: Cai, Xiong and Tian, Center Contrastive Loss for Metric Learning, arXiv 2308.00458, 2023, as a public
    re-implementation quotes equation and constants; the authors published no code. Whether its centres are learned, as
    here, or moving means, is open.
    """

    sub_losses = ("loss",)

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        scale: float = 64.0,
        margin: float = 0.2,
        center_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, **kwargs)
        self.scale, self.margin, self.center_weight = scale, margin, center_weight

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss (B,) for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        cosine = self.get_logits(embeddings)
        own_class = one_hot(labels, self.num_classes).to(cosine.dtype)
        of_cosface = cross_entropy(self.scale * (cosine - self.margin * own_class), labels, reduction="none")
        pull = 2 * self.center_weight * (cosine * own_class).sum(1)
        return {"loss": of_samples(of_cosface - pull, labels, indices_tuple)}
