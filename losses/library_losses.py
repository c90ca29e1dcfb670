"""Losses of pytorch-metric-learning in full precision, finite also on batches where the library's are not."""

from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.distances import CosineSimilarity
from torch import Tensor

from .base import FullPrecisionForward

_LARGEST_COSINE = 1 - 1e-7  # from pytorch-metric-learning 0.9.86, MLRC's release; acos is infinitely steep at 1


class CosFaceLoss(FullPrecisionForward, pml_losses.CosFaceLoss):
    """Softmax over classes, with a margin subtracted from the cosine between a sample and its own class.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in cosine units; default 0.35.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Wang et al., CosFace, CVPR 2018; pytorch-metric-learning's class.
    """


class _Mended(FullPrecisionForward):
    VERSION = 2
    """Version 1 was the library's class."""


class _ClampedAngles(_Mended):
    def get_angles(self, cosine_of_target_classes: Tensor) -> Tensor:
        """PML's hook: angles in radians (B,) of cosines (B,)."""
        cosine = cosine_of_target_classes.clamp(-_LARGEST_COSINE, _LARGEST_COSINE)
        angles: Tensor = super().get_angles(cosine)  # type: ignore[misc]
        return angles


class ArcFaceLoss(_ClampedAngles, pml_losses.ArcFaceLoss):
    """Softmax over classes, with a margin added to the angle between a sample and its own class.

    The cosine of that angle is clamped to 1 - 1e-7, as in MLRC's release of pytorch-metric-learning. Where angle and
    margin are above 180 degrees, the logit falls on, as in the authors' code and today's library; MLRC's rises again.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in degrees; default 28.6.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Deng et al., ArcFace, CVPR 2019; pytorch-metric-learning's class, clamped as in 0.9.86.
    """


class SubCenterArcFaceLoss(_ClampedAngles, pml_losses.SubCenterArcFaceLoss):
    """ArcFace with several vectors for each class, of which the nearest counts; with PML's arguments."""


class _ClampedCosine(CosineSimilarity):
    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        cosines: Tensor = super().compute_mat(query_emb, ref_emb)
        return cosines.clamp(-_LARGEST_COSINE, _LARGEST_COSINE)


class TupletMarginLoss(_Mended, pml_losses.TupletMarginLoss):
    """Tuplet margin loss, finite where two images of a class coincide; with PML's arguments."""

    takes_references = True

    def get_default_distance(self) -> CosineSimilarity:
        """Cosine similarity up to 1 - 1e-7."""
        return _ClampedCosine()


class HistogramLoss(_Mended, pml_losses.HistogramLoss):
    """Histogram loss, also of images that coincide or are opposite; with PML's arguments."""

    def compute_density(self, distances: Tensor) -> Tensor:
        """PML's hook: shares (bins + 1,) of similarities (n,) at the ends of the bins; between two it is split."""
        bins = round(2 / self.delta)
        position = (distances + 1) / self.delta
        below = position.detach().floor().clamp(0, bins - 1)
        share, node = position - below, below.long()
        density = distances.new_zeros(bins + 1).index_add(0, node, 1 - share).index_add(0, node + 1, share)
        return density / len(distances)


class NCALoss(_Mended, pml_losses.NCALoss):
    """Neighbourhood components analysis, 0 for a batch without pairs of a class; with PML's arguments."""

    takes_references = True

    def compute_loss(self, *args: Any) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, of the samples whose softmax does not underflow."""
        terms: dict[str, Any] = super().compute_loss(*args)
        losses = terms["loss"]["losses"]
        return self.zero_losses() if torch.is_tensor(losses) and not len(losses) else terms


class P2SGradLoss(_Mended, pml_losses.P2SGradLoss):
    """Squared error of the cosines to the classes, over the rows with a direction; with PML's arguments."""

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> Any:
        """PML's hook: sub-loss `loss`, a number."""
        rows = embeddings.square().sum(1) > 0
        if not rows.any():
            return self.zero_losses()
        embeddings, labels = embeddings[rows], labels[rows]
        return super().compute_loss(embeddings, labels, indices_tuple, embeddings, labels)
