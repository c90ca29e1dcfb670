"""Losses of pytorch-metric-learning with the numbers of its version 2.9, under version 3 too.

They are in full precision, and finite also on batches where the library's are not.
"""

import math
import warnings
from typing import Any

import torch
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from torch import Tensor, nn
from torch.nn import functional

from .base import (
    ByCosine,
    MetricLoss,
    WeightedLoss,
    at_least_float32,
    checked_labels,
    log_one_plus_sum,
    of_samples,
    require_cosine,
)
from .bridge import term
from .mined import pairs_of, refuse_mined, weights_of

_LARGEST_COSINE = 1 - 1e-7  # from pytorch-metric-learning 0.9.86, MLRC's release; acos is infinitely steep at 1


class _MarginSoftmax(WeightedLoss):
    """Softmax over scaled cosines to the classes, in which a margin makes that to the own class smaller.

    The classes are the columns of `W` (d, C K), as in pytorch-metric-learning 2.9; version 3 has them as rows.
    """

    vectors_per_class = 1
    """K."""

    def __init__(self, num_classes: int, embedding_size: int, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_cosine(self)
        self.num_classes, self.embedding_size, self.scale = num_classes, embedding_size, scale
        self.W = nn.Parameter(torch.empty(embedding_size, num_classes * self.vectors_per_class))
        self.start_weights(self.W)

    def class_weights(self) -> Tensor:
        """The vectors of the classes (C K, d)."""
        return self.W.t()

    def cosines(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, C) between embeddings (B, d) and the classes."""
        cosines: Tensor = self.distance(embeddings, self.class_weights().to(embeddings.dtype))
        return cosines

    def with_margin(self, cosine: Tensor) -> Tensor:
        """What takes the place of the cosines (B,) to the own classes."""
        raise NotImplementedError

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss (B,) for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        cosines = self.cosines(embeddings)
        own = cosines.gather(1, labels.unsqueeze(1)).squeeze(1)
        change = functional.one_hot(labels, self.num_classes) * (self.with_margin(own) - own).unsqueeze(1)
        losses = functional.cross_entropy((cosines + change) * self.scale, labels, reduction="none")
        return {"loss": of_samples(losses, labels, indices_tuple)}

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Scaled cosines (B, C) of embeddings (B, d) to the classes, without the margin."""
        return self.cosines(at_least_float32(embeddings)) * self.scale


class CosFaceLoss(_MarginSoftmax):
    """Softmax over classes, with a margin subtracted from the cosine between a sample and its own class.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-loss `loss` (B,). The classes are the columns of
    `W` (d, C).

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in cosine units; default 0.35.
        scale: of the cosines; default 64.
        **kwargs: PML's `reducer` (default `MeanReducer`), `weight_init_func` (default normal with variance 1),
            `weight_regularizer`, `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a distance that is not the cosine, and for every batch that `checked_labels` refuses.

    Source: Wang et al., CosFace, CVPR 2018; pytorch-metric-learning's class.
    """

    def __init__(
        self, num_classes: int, embedding_size: int, margin: float = 0.35, scale: float = 64.0, **kwargs: Any
    ) -> None:
        super().__init__(num_classes, embedding_size, scale, **kwargs)
        self.margin = margin

    def with_margin(self, cosine: Tensor) -> Tensor:
        """The cosines (B,) without the margin."""
        return cosine - self.margin


class ArcFaceLoss(_MarginSoftmax):
    """Softmax over classes, with a margin added to the angle between a sample and its own class.

    The cosine of that angle is clamped to 1 - 1e-7, as in MLRC's release of pytorch-metric-learning. Where angle and
    margin are above 180 degrees, the logit falls on, as in the authors' code and today's library; MLRC's rises again.

    `margin` is in degrees, as in pytorch-metric-learning up to 2.9. Version 3 has radians, which are `margin_radians`
    here. Shapes and `W` are those of `CosFaceLoss`.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in degrees; default 28.6.
        scale: of the cosines; default 64.
        margin_radians: in radians, takes the place of `margin`; default None.
        **kwargs: those of `CosFaceLoss`.

    Raises:
        ValueError: for both margins, for `margin_radians` above pi, and as `CosFaceLoss`.

    Source: Deng et al., ArcFace, CVPR 2019; pytorch-metric-learning's class, clamped as in 0.9.86.
    """

    VERSION = 2
    """Version 1 was the library's class."""

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 28.6,
        scale: float = 64.0,
        *,
        margin_radians: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, scale, **kwargs)
        self.margin_radians = _margin_in_radians(margin, margin_radians)

    def with_margin(self, cosine: Tensor) -> Tensor:
        """The cosines (B,) of angles plus margin; beyond 180 degrees a line that falls on."""
        angle, margin = cosine.clamp(-_LARGEST_COSINE, _LARGEST_COSINE).acos(), self.margin_radians
        falling = angle.cos() - margin * math.sin(margin)
        return torch.where(angle <= math.pi - margin, (angle + margin).cos(), falling)


def _margin_in_radians(degrees: float, radians: float | None) -> float:
    if radians is None:
        if 0 < degrees < math.pi / 2:
            warnings.warn(
                f"margin={degrees} is in degrees, of which the default has 28.6; a margin in radians, as in "
                f"pytorch-metric-learning 3, is margin_radians={degrees}",
                stacklevel=3,
            )
        return math.radians(degrees)
    if degrees != 28.6:
        raise ValueError(f"give margin={degrees}, in degrees, or margin_radians={radians}, not both")
    if radians > math.pi:
        raise ValueError(f"margin_radians={radians} can only be degrees; give it as margin={radians}")
    return radians


class SubCenterArcFaceLoss(ArcFaceLoss):
    """ArcFace with several vectors for each class, of which the nearest counts.

    Vector k of class c is column `c K + k` of `W` (d, C K).

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in degrees; default 28.6.
        scale: of the cosines; default 64.
        sub_centers: K; default 3.
        **kwargs: those of `ArcFaceLoss`.

    Raises:
        ValueError: as `ArcFaceLoss`.

    Source: Deng et al., Sub-center ArcFace, ECCV 2020; pytorch-metric-learning's class.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 28.6,
        scale: float = 64.0,
        sub_centers: int = 3,
        **kwargs: Any,
    ) -> None:
        self.vectors_per_class = self.sub_centers = sub_centers
        super().__init__(num_classes, embedding_size, margin, scale, **kwargs)

    def cosines(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, C) to the nearest vector of each class."""
        return self._by_center(embeddings).max(2).values

    def _by_center(self, embeddings: Tensor) -> Tensor:
        return super().cosines(embeddings).view(len(embeddings), self.num_classes, self.sub_centers)

    @torch.no_grad()
    def get_outliers(
        self, embeddings: Tensor, labels: Tensor, threshold_degrees: float = 75.0
    ) -> tuple[Tensor, Tensor]:
        """The samples far from the vector of their class to which most of its samples are nearest.

        Args:
            embeddings: (B, d) of any norm.
            labels: (B,) in 0..C-1.
            threshold_degrees: an outlier is at a larger angle than this, in degrees; default 75.

        Returns:
            Rows of the outliers (n,), by class, and these vectors as columns (d, C); that of a class without samples is
            its first.
        """
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        own = self._by_center(at_least_float32(embeddings))[torch.arange(len(labels), device=labels.device), labels]
        votes = functional.one_hot(own.argmax(1), self.sub_centers)
        most = votes.new_zeros(self.num_classes, self.sub_centers).index_add(0, labels, votes).argmax(1)
        far = own.gather(1, most[labels].unsqueeze(1)).squeeze(1) < math.cos(math.radians(threshold_degrees))
        rows = far.nonzero().squeeze(1)
        by_class = self.W.t().view(self.num_classes, self.sub_centers, -1)
        centers = by_class[torch.arange(self.num_classes, device=most.device), most].t()
        return rows[labels[rows].argsort(stable=True)], centers


class TupletMarginLoss(ByCosine):
    """Tuplet margin loss, finite where two images of a class coincide.

    With the angle t between the images of a pair, cosines s, and the negatives n of an anchor a::

        L = mean over positive pairs (a, p) of log(1 + sum_n exp(scale (s_an - cos(t_ap - margin))))

    Args:
        margin: in degrees; default 5.73.
        scale: of the cosines; default 64.
        **kwargs: PML's `distance` (a `CosineSimilarity`; default one up to 1 - 1e-7), `reducer` (default
            `MeanReducer`), `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for a distance that is not the cosine, and without labels and `indices_tuple`.

    Source: Yu and Tao, Deep Metric Learning with Tuplet Margin Loss, ICCV 2019; pytorch-metric-learning's class.
    """

    takes_references = True

    VERSION = 2
    """Version 1 was the library's class."""

    def __init__(self, margin: float = 5.73, scale: float = 64.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_cosine(self)
        self.margin_radians, self.scale = math.radians(margin), scale

    def default_distance(self) -> CosineSimilarity:
        """Cosine similarity up to 1 - 1e-7."""
        return _ClampedCosine()

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, one value per positive pair."""
        anchors, positives, others, negatives = pairs_of(indices_tuple, labels, ref_labels)
        if not min(len(anchors), len(others)) or max(len(anchors), len(others)) == 1:  # One triplet counts as none.
            return self.nothing()
        cosines = self.distance(embeddings, ref_emb)
        own = (cosines[anchors, positives].acos() - self.margin_radians).cos().unsqueeze(1)
        exponents = self.scale * (cosines[others, negatives].repeat(len(anchors), 1) - own)
        losses = log_one_plus_sum(exponents, others == anchors.unsqueeze(1), dim=1)
        return {"loss": term(losses, (anchors, positives), "pos_pair")}


class _ClampedCosine(CosineSimilarity):
    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        cosines: Tensor = super().compute_mat(query_emb, ref_emb)
        return cosines.clamp(-_LARGEST_COSINE, _LARGEST_COSINE)


class HistogramLoss(ByCosine):
    """How often a pair of two classes is more similar than one of a class, by histograms of their cosines.

    It takes images that coincide or are opposite. Only images with a positive and a negative count.

    Args:
        n_bins: number of bins from -1 to 1; default None, 100 unless `delta` is given.
        delta: width of a bin, in cosine units, in place of `n_bins`; default None.
        **kwargs: PML's `distance` (default cosine), `reducer`, `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for `n_bins` and `delta` that differ, and without labels and `indices_tuple`.

    Source: Ustinova and Lempitsky, Learning Deep Embeddings with Histogram Loss, NeurIPS 2016;
    pytorch-metric-learning's class.
    """

    VERSION = 2
    """Version 1 was the library's class."""

    def __init__(self, n_bins: int | None = None, delta: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if n_bins is not None and delta is not None and delta != 2 / n_bins:
            raise ValueError(f"delta must be 2 / n_bins, got delta={delta} and n_bins={n_bins}; give one of them")
        self.delta = delta or 2 / (n_bins or 100)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, a number."""
        anchors, positives, others, negatives = pairs_of(indices_tuple, labels)
        alike, unlike = torch.isin(anchors, others), torch.isin(others, anchors)
        if not alike.any():
            return self.nothing()
        similarity = self.distance(embeddings, embeddings)
        own = similarity[_each_once(anchors[alike], positives[alike], len(embeddings))]
        foreign = similarity[_each_once(others[unlike], negatives[unlike], len(embeddings))]
        return {"loss": term((self.density(foreign) * self.density(own).cumsum(0)).sum())}

    def density(self, similarities: Tensor) -> Tensor:
        """Shares (bins + 1,) of similarities (n,) at the ends of the bins; one between two ends is split."""
        bins = round(2 / self.delta)
        position = (similarities + 1) / self.delta
        below = position.detach().floor().clamp(0, bins - 1)
        share, node = position - below, below.long()
        density = similarities.new_zeros(bins + 1).index_add(0, node, 1 - share).index_add(0, node + 1, share)
        return density / len(similarities)


def _each_once(first: Tensor, second: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Pairs of rows below `count`, each once and with the smaller number first."""
    numbers = torch.unique(torch.minimum(first, second) * count + torch.maximum(first, second))
    return numbers // count, numbers % count


class NCALoss(MetricLoss):
    """Neighbourhood components analysis; 0 for a batch without pairs of a class.

    With squared distances d, the loss is the mean over samples i of `-log sum_{j of its class} p_ij`, where p_i is the
    softmax of `-softmax_scale d_ij` over all other samples j. A sample whose sum underflows has no term.

    Args:
        softmax_scale: inverse temperature of the squared distances; default 1.
        **kwargs: PML's `distance` (default squared Euclidean, of unit vectors), `reducer` (default `MeanReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for every batch that `checked_labels` refuses.

    Source: Goldberger et al., Neighbourhood Components Analysis, NeurIPS 2004; pytorch-metric-learning's class.
    """

    takes_references = True

    VERSION = 2
    """Version 1 was the library's class."""

    distance: Any

    def __init__(self, softmax_scale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.softmax_scale = softmax_scale

    def default_distance(self) -> LpDistance:
        """Squared Euclidean distance of unit vectors."""
        return LpDistance(power=2)

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, of the samples whose softmax does not underflow."""
        labels = checked_labels(embeddings, labels)
        if len(labels) == 1:
            return self.nothing()
        similarity = self.distance(embeddings, ref_emb)
        similarity = similarity if self.distance.is_inverted else -similarity
        if ref_emb is None or ref_emb is embeddings:
            ref_labels, mined = labels, indices_tuple
            similarity.fill_diagonal_(torch.finfo(similarity.dtype).min)
        else:  # Positives and negatives are rows of the references.
            mined = indices_tuple and pairs_of(indices_tuple, labels)[::2]
        same = (labels.unsqueeze(1) == ref_labels).to(similarity.dtype)
        found = ((self.softmax_scale * similarity).softmax(1) * same).sum(1)
        rows = found.nonzero().squeeze(1)
        if not len(rows):
            return self.nothing()
        return {"loss": term(-found[rows].log() * weights_of(mined, labels, found.dtype)[rows], rows, "element")}


class P2SGradLoss(MetricLoss):
    """Mean squared error of the cosines to the classes, which are to be 1 for the own class and 0 for the others.

    Rows of zeros, which have no direction, do not count. The classes are the columns of `weight` (d, C). Every call in
    training mode brings them back to length 1.

    Args:
        descriptors_dim: d.
        num_classes: C.
        **kwargs: PML's `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for an `indices_tuple`, and for every batch that `checked_labels` refuses.

    Source: Zhang et al., P2SGrad, CVPR 2019; pytorch-metric-learning's class.
    """

    VERSION = 2
    """Version 1 was the library's class."""

    def __init__(self, descriptors_dim: int, num_classes: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.descriptors_dim, self.num_classes = descriptors_dim, num_classes
        self.weight = nn.Parameter(torch.empty(descriptors_dim, num_classes).uniform_(-1, 1))
        self._to_length_one()

    @torch.no_grad()
    def _to_length_one(self) -> None:
        self.weight.copy_(self.weight.renorm(2, 1, 1e-5) * 1e5)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-loss `loss`, a number."""
        refuse_mined(indices_tuple)
        labels = checked_labels(embeddings, labels, self.num_classes, self.descriptors_dim)
        counted = embeddings.square().sum(1) > 0
        if not counted.any():
            return self.nothing()
        if self.learns:
            self._to_length_one()
        rows, weight = embeddings[counted], self.weight.to(embeddings.dtype)
        cosines = (rows.mm(weight) / rows.pow(2).sum(1, keepdim=True).pow(0.5)).clamp(-1, 1)
        target = functional.one_hot(labels[counted], self.num_classes).to(cosines.dtype)
        return {"loss": term(functional.mse_loss(cosines, target))}
