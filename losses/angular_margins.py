"""ArcFace and CosFace of pytorch-metric-learning, with the cosines of the own classes read by index."""

from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor
from torch.nn.functional import one_hot

from .checks import FullPrecisionForward
from .sub_losses import of_samples


class _ByIndex:
    """Mix-in: pytorch-metric-learning's loss, to the bit.

    pytorch-metric-learning selects the cosines of the own classes by a mask. For that the host waits for a GPU twice
    in every step.
    """

    num_classes: int
    W: torch.nn.Parameter
    cross_entropy: torch.nn.CrossEntropyLoss

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the losses (B,) for embeddings (B, d) and labels (B,)."""
        loss: Any = self
        c_f.labels_required(labels)
        loss.cast_types(embeddings.dtype, embeddings.device)
        labels = labels.long()
        cosine = loss.get_cosine(embeddings)
        own = cosine.gather(1, labels.unsqueeze(1)).squeeze(1)
        mask = one_hot(labels, self.num_classes).to(embeddings.dtype)
        logits = cosine + mask * (loss.modify_cosine_of_target_classes(own) - own).unsqueeze(1)
        losses = self.cross_entropy(loss.scale_logits(logits, embeddings), labels)
        terms = {"loss": of_samples(losses, labels, indices_tuple)}
        loss.add_weight_regularization_to_loss_dict(terms, self.W.t())
        return terms


class ArcFaceLoss(FullPrecisionForward, _ByIndex, pml_losses.ArcFaceLoss):
    """Softmax over classes, with a margin added to the angle between a sample and its own class.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in degrees; default 28.6.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Deng et al., ArcFace, CVPR 2019; pytorch-metric-learning's class.
    """


class CosFaceLoss(FullPrecisionForward, _ByIndex, pml_losses.CosFaceLoss):
    """Softmax over classes, with a margin subtracted from the cosine between a sample and its own class.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in cosine units; default 0.35.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Wang et al., CosFace, CVPR 2018; pytorch-metric-learning's class.
    """
