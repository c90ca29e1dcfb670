"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED: BaseMetricLossFunction (keyword-only options; forward, loss_terms, objective_terms, compute_loss,
regularization_terms, default_distance, default_reducer; {} for nothing), BaseProxyLoss (weight (rows, d), row c K +
k, default_weight_init, weight_reg_loss added after reduction; built-in subclasses refuse another device or dtype
outside autocast), GenericPairLoss (pair_loss, pair_values, pair_masks), the equations, defaults and "implementation
notes" of the losses below, CrossBatchMemory's contract.
GUESS: messages and exception types of validation; names of the terms; which reducers are the defaults where a page
was cut before it; that ArcFace keeps kinks of 2.9 (angle clamped to [-1, 1]); default starts of ProxyAnchor and
SoftTriple; P2SGrad, Histogram, Circle, LiftedStructure and IntraPairVariance (pages not seen: as 2.9); unknown
keywords raise TypeError; no zero_losses, sub_loss_names, collect_stats, get_default_*; no
CrossBatchMemory.supported_losses; no get_angles and the like.
Left out: PNPLoss, RankedListLoss, ThresholdConsistentMarginLoss, and losses that no card uses.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from ..distances import CosineSimilarity, DotProductSimilarity, LpDistance, SNRDistance
from ..reducers import AvgNonZeroReducer, DivisorReducer, MeanReducer
from ..types import PairIndices, SubCenterOutliers
from ..utils import indexing

__all__ = [
    *("ArcFaceLoss", "BaseMetricLossFunction", "BaseProxyLoss", "CircleLoss", "ContrastiveLoss", "CosFaceLoss"),
    *("CrossBatchMemory", "FastAPLoss", "GenericPairLoss", "HistogramLoss", "IntraPairVarianceLoss"),
    *("LiftedStructureLoss", "MarginLoss", "MultiSimilarityLoss", "MultipleLosses", "NCALoss", "NTXentLoss"),
    *("NormalizedSoftmaxLoss", "P2SGradLoss", "ProxyAnchorLoss", "ProxyNCALoss", "SignalToNoiseRatioContrastiveLoss"),
    *("SmoothAPLoss", "SoftTripleLoss", "SubCenterArcFaceLoss", "SupConLoss", "TripletMarginLoss", "TupletMarginLoss"),
]


def _validated(embeddings, labels, indices_tuple, ref_emb, ref_labels):
    for name, x in (("embeddings", embeddings), ("ref_emb", ref_emb)):
        if x is not None and (x.ndim != 2 or not x.is_floating_point()):
            raise ValueError(f"{name} must be a two-dimensional floating-point tensor")
    for name, y, x in (("labels", labels, embeddings), ("ref_labels", ref_labels, ref_emb)):
        if y is None:
            continue
        if x is None:
            raise ValueError(f"{name} without ref_emb")
        if y.shape != x.shape[:1]:
            raise ValueError(f"{name} must have one entry for each row")
        if y.device != x.device:
            raise ValueError(f"{name} and embeddings are on different devices")
    if ref_emb is not None and (ref_emb.shape[1] != embeddings.shape[1] or ref_emb.device != embeddings.device):
        raise ValueError("ref_emb does not fit the embeddings")
    if ref_emb is not None and (labels is None) != (ref_labels is None):
        raise ValueError("labels and ref_labels go together")
    return indexing.as_indices(indices_tuple)


class BaseMetricLossFunction(nn.Module):
    def __init__(self, *, distance=None, reducer=None, embedding_regularizer=None, embedding_reg_weight=1.0):
        super().__init__()
        self.distance = self.default_distance() if distance is None else distance
        self.reducer = self.default_reducer() if reducer is None else reducer
        self.embedding_regularizer, self.embedding_reg_weight = embedding_regularizer, embedding_reg_weight

    def default_distance(self):
        return LpDistance()

    def default_reducer(self):
        return MeanReducer()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        raise NotImplementedError

    def regularization_terms(self, embeddings):
        if self.embedding_regularizer is None:
            return {}
        penalty = self.embedding_reg_weight * self.embedding_regularizer(embeddings)
        return {"embedding_reg_loss": {"losses": penalty, "indices": None}}

    def objective_terms(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):
        indices_tuple = _validated(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        return self.compute_loss(embeddings, labels, indices_tuple, ref_emb, ref_labels)

    def loss_terms(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):
        terms = self.objective_terms(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        return {**terms, **self.regularization_terms(embeddings)}

    def forward(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):
        terms = self.objective_terms(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        value = self.reducer(terms, embeddings, labels)
        for term in self.regularization_terms(embeddings).values():
            value = value + term["losses"]
        return value


def _term(losses, indices, **more):
    return {"losses": losses, "indices": indices, **more}


def _elements(losses, **more):
    return _term(losses, torch.arange(len(losses), device=losses.device), **more)


def _required(labels, name="labels"):
    if labels is None:
        raise ValueError(f"{name} are required")


def _no_references(ref_emb, ref_labels):
    if ref_emb is not None or ref_labels is not None:
        raise ValueError("ref_emb is not supported by this loss")


# --- pairs and triplets ---


class GenericPairLoss(BaseMetricLossFunction):
    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        if labels is None and indices_tuple is None:
            raise ValueError("labels or an indices_tuple are required")
        pairs = indexing.to_pairs(indices_tuple, labels, ref_labels)
        if not len(pairs.pos_anchors) and not len(pairs.neg_anchors):
            return {}
        return self.pair_loss(self.distance(embeddings, ref_emb), pairs)

    def pair_loss(self, mat, pairs):
        raise NotImplementedError

    @staticmethod
    def pair_values(mat, pairs):
        return mat[pairs.pos_anchors, pairs.positives], mat[pairs.neg_anchors, pairs.negatives]

    @staticmethod
    def pair_masks(mat, pairs):
        same, other = torch.zeros_like(mat, dtype=torch.bool), torch.zeros_like(mat, dtype=torch.bool)
        same[pairs.pos_anchors, pairs.positives] = True
        other[pairs.neg_anchors, pairs.negatives] = True
        return same, other


class ContrastiveLoss(GenericPairLoss):
    def __init__(self, pos_margin=0.0, neg_margin=1.0, **options):
        super().__init__(**options)
        self.pos_margin, self.neg_margin = pos_margin, neg_margin

    def default_reducer(self):
        return AvgNonZeroReducer()

    def pair_loss(self, mat, pairs):
        own, foreign = self.pair_values(mat, pairs)
        pull = self.distance.margin(own, self.pos_margin).relu()
        push = self.distance.margin(self.neg_margin, foreign).relu()
        return {"pos_loss": _term(pull, tuple(pairs[:2])), "neg_loss": _term(push, tuple(pairs[2:]))}


class SignalToNoiseRatioContrastiveLoss(ContrastiveLoss):
    def default_distance(self):
        return SNRDistance()


class _Softmax(GenericPairLoss):
    def __init__(self, temperature, **options):
        super().__init__(**options)
        self.temperature = temperature

    def default_distance(self):
        return CosineSimilarity()

    def _logits(self, mat):
        return (mat if self.distance.is_inverted else -mat) / self.temperature


class NTXentLoss(_Softmax):
    def __init__(self, temperature=0.07, **options):
        super().__init__(temperature, **options)

    def pair_loss(self, mat, pairs):
        if not len(pairs.pos_anchors):
            return {}
        logits = self._logits(mat)
        _, other = self.pair_masks(mat, pairs)
        repelled = logits.masked_fill(~other, -torch.inf).logsumexp(1)[pairs.pos_anchors]
        own = logits[pairs.pos_anchors, pairs.positives]
        return {"loss": _term(functional.softplus(repelled - own), tuple(pairs[:2]))}


class SupConLoss(_Softmax):
    def __init__(self, temperature=0.1, **options):
        super().__init__(temperature, **options)

    def default_reducer(self):
        return AvgNonZeroReducer()

    def pair_loss(self, mat, pairs):
        same, other = self.pair_masks(mat, pairs)
        logits = self._logits(mat)
        log_p = logits - logits.masked_fill(~(same | other), -torch.inf).logsumexp(1, keepdim=True)
        rows = same.any(1)
        mean = torch.where(same, log_p, 0.0).sum(1)[rows] / same.sum(1)[rows]
        return {"loss": _term(-mean, rows.nonzero().flatten())}


class MultiSimilarityLoss(GenericPairLoss):
    def __init__(self, alpha=2, beta=50, base=0.5, **options):
        super().__init__(**options)
        self.alpha, self.beta, self.base = alpha, beta, base

    def default_distance(self):
        return CosineSimilarity()

    def pair_loss(self, mat, pairs):
        same, other = self.pair_masks(mat, pairs)
        pull = _log_one_plus(self.alpha * self.distance.margin(mat, self.base), same, 1) / self.alpha
        push = _log_one_plus(self.beta * self.distance.margin(self.base, mat), other, 1) / self.beta
        rows = (same.any(1) | other.any(1)).nonzero().flatten()
        return {"loss": _term((pull + push)[rows], rows)}


def _log_one_plus(exponents, mask, dim):
    exponents = exponents.masked_fill(~mask, -torch.inf)
    zero = torch.zeros_like(exponents.narrow(dim, 0, 1))
    return torch.cat([exponents, zero], dim).logsumexp(dim)


class CircleLoss(GenericPairLoss):
    def __init__(self, m=0.4, gamma=80, **options):
        super().__init__(**options)
        self.m, self.gamma = m, gamma

    def default_distance(self):
        return CosineSimilarity()

    def default_reducer(self):
        return AvgNonZeroReducer()

    def pair_loss(self, mat, pairs):
        same, other = self.pair_masks(mat, pairs)
        pull = -self.gamma * (1 + self.m - mat.detach()).relu() * (mat - 1 + self.m)
        push = self.gamma * (mat.detach() + self.m).relu() * (mat - self.m)
        value = functional.softplus(
            pull.masked_fill(~same, -torch.inf).logsumexp(1) + push.masked_fill(~other, -torch.inf).logsumexp(1)
        )
        rows = (same.any(1) & other.any(1)).nonzero().flatten()
        return {"loss": _term(value[rows], rows)}


class LiftedStructureLoss(GenericPairLoss):
    def __init__(self, neg_margin=1, pos_margin=0, **options):
        super().__init__(**options)
        self.neg_margin, self.pos_margin = neg_margin, pos_margin

    def pair_loss(self, mat, pairs):
        if not len(pairs.pos_anchors) or not len(pairs.neg_anchors):
            return {}
        own, _ = self.pair_values(mat, pairs)
        _, other = self.pair_masks(mat, pairs)
        push = self.distance.margin(self.neg_margin, mat).masked_fill(~other, -torch.inf)
        both = torch.cat([push[pairs.pos_anchors], push[pairs.positives]], 1).logsumexp(1)
        value = (self.distance.margin(own, self.pos_margin) + both).relu().square() / 2
        return {"loss": _term(value, tuple(pairs[:2]))}


class IntraPairVarianceLoss(GenericPairLoss):
    def __init__(self, pos_eps=0.01, neg_eps=0.01, **options):
        super().__init__(**options)
        self.pos_eps, self.neg_eps = pos_eps, neg_eps

    def default_distance(self):
        return CosineSimilarity()

    def pair_loss(self, mat, pairs):
        own, foreign = self.pair_values(mat, pairs)
        terms = {}
        if len(own):
            limit = (1 - self.pos_eps) * own.mean()
            terms["pos_loss"] = _term(self.distance.margin(own, limit).relu().square(), tuple(pairs[:2]))
        if len(foreign):
            limit = (1 + self.neg_eps) * foreign.mean()
            terms["neg_loss"] = _term(self.distance.margin(limit, foreign).relu().square(), tuple(pairs[2:]))
        return terms


class TupletMarginLoss(GenericPairLoss):
    def __init__(self, margin=5.73, scale=64, **options):
        super().__init__(**options)
        self.margin, self.scale = math.radians(margin), scale

    def default_distance(self):
        return CosineSimilarity()

    def pair_loss(self, mat, pairs):
        if not len(pairs.pos_anchors):
            return {}
        cosine = mat.clamp(-1, 1)
        own, _ = self.pair_values(cosine, pairs)
        inside = own.abs() < 1
        angle = torch.where(inside, own, 0.0).acos()
        angle = torch.where(inside, angle, own.detach().acos())
        _, other = self.pair_masks(mat, pairs)
        push = (self.scale * mat).masked_fill(~other, -torch.inf).logsumexp(1)[pairs.pos_anchors]
        return {"loss": _term(functional.softplus(push - self.scale * (angle - self.margin).cos()), tuple(pairs[:2]))}


class HistogramLoss(BaseMetricLossFunction):
    def __init__(self, n_bins=None, delta=None, **options):
        super().__init__(**options)
        n_bins = n_bins or (round(2 / delta) if delta else 100)
        self.n_bins, self.delta = n_bins, 2 / n_bins

    def default_distance(self):
        return CosineSimilarity()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        pairs = indexing.to_pairs(indices_tuple, labels, ref_labels)
        if not len(pairs.pos_anchors) or not len(pairs.neg_anchors):
            return {}
        # As 2.9 (GUESS): of the negative pairs those with an end that has a positive, and the reverse.
        a1, p, a2, n = pairs
        first = torch.isin(a1, a2)
        second = torch.isin(a2, a1) | torch.isin(n, a1)
        pairs = PairIndices(a1[first], p[first], a2[second], n[second])
        own, foreign = GenericPairLoss.pair_values(self.distance(embeddings, ref_emb), pairs)
        below = self._density(own).cumsum(0)
        return {"loss": _term((self._density(foreign) * below).sum(), None)}

    def _density(self, values):
        place = ((values + 1) / self.delta).clamp(0, self.n_bins)
        node = place.detach().floor().clamp(max=self.n_bins - 1)
        share = place - node
        zeros = values.new_zeros(self.n_bins + 1)
        return zeros.index_add(0, node.long(), 1 - share).index_add(0, node.long() + 1, share) / len(values)


class TripletMarginLoss(BaseMetricLossFunction):
    def __init__(self, margin=0.2, swap=False, smooth_loss=False, triplets_per_anchor="all", **options):
        super().__init__(**options)
        self.margin, self.swap, self.smooth_loss = margin, swap, smooth_loss
        self.triplets_per_anchor = triplets_per_anchor

    def default_reducer(self):
        return AvgNonZeroReducer()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        a, p, n = triplets = indexing.to_triplets(indices_tuple, labels, ref_labels)
        if self.triplets_per_anchor != "all":
            chosen = [each[torch.randperm(len(each))[: self.triplets_per_anchor]] for each in _rows_of(a)]
            a, p, n = triplets = tuple(each[torch.cat(chosen)] for each in triplets) if chosen else triplets
        if not len(a):
            return {}
        mat = self.distance(embeddings, ref_emb)
        foreign = mat[a, n]
        if self.swap:
            between = (mat if ref_emb is None else self.distance(ref_emb))[p, n]
            foreign = torch.where(self.distance.margin(foreign, between) > 0, between, foreign)
        violation = self.distance.margin(mat[a, p], foreign) + self.margin
        value = functional.softplus(violation) if self.smooth_loss else violation.relu()
        return {"loss": _term(value, tuple(triplets))}


def _rows_of(anchors):
    return [(anchors == each).nonzero().flatten() for each in anchors.unique()]


class MarginLoss(BaseMetricLossFunction):
    def __init__(
        self, margin=0.2, nu=0, beta=1.2, triplets_per_anchor="all", learn_beta=False, num_classes=None, **options
    ):
        super().__init__(**options)
        self.margin, self.nu, self.learn_beta, self.num_classes = margin, nu, learn_beta, num_classes
        start = torch.full((num_classes or 1,), float(beta))
        if learn_beta:
            self.beta = nn.Parameter(start)
        else:
            self.register_buffer("beta", start)

    def default_reducer(self):
        return DivisorReducer()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        a, p, n = triplets = indexing.to_triplets(indices_tuple, labels, ref_labels)
        if not len(a):
            return {}
        mat = self.distance(embeddings, ref_emb)
        beta = self.beta if len(self.beta) == 1 else self.beta[labels[a]]
        pull = (self.distance.margin(mat[a, p], beta) + self.margin).relu()
        push = (self.distance.margin(beta, mat[a, n]) + self.margin).relu()
        active = (pull > 0).sum() + (push > 0).sum()
        terms = {"margin_loss": _term(pull + push, tuple(triplets), divisor=active)}
        if self.learn_beta:
            terms["beta_reg_loss"] = _elements(self.nu * self.beta, divisor=active)
        return terms


# --- queries ---


class _Weighted(BaseMetricLossFunction):
    @staticmethod
    def _weights(indices_tuple, labels, like, ref_emb=None):
        if indices_tuple is not None and ref_emb is not None:  # Only anchors are rows of the batch.
            indices_tuple = tuple(indexing.to_pairs(indices_tuple, labels)[place] for place in (0, 0, 2, 2))
        return indexing.to_weights(indices_tuple, labels, like.dtype)


class NCALoss(_Weighted):
    def __init__(self, softmax_scale=1, **options):
        super().__init__(**options)
        self.softmax_scale = softmax_scale

    def default_distance(self):
        return LpDistance(power=2)

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        _required(labels)
        mat = self.distance(embeddings, ref_emb)
        logits = self.softmax_scale * (mat if self.distance.is_inverted else -mat)
        same, _ = indexing.masks(labels, ref_labels)
        compared = torch.ones_like(same) if ref_emb is not None else ~torch.eye(len(same), dtype=torch.bool)
        rows = same.any(1)
        if not rows.any():
            return {}
        every = logits.masked_fill(~compared.to(logits.device), -torch.inf)[rows].logsumexp(1)
        own = logits.masked_fill(~same, -torch.inf)[rows].logsumexp(1)
        weights = self._weights(indices_tuple, labels, logits, ref_emb)[rows]
        return {"loss": _term(weights * (every - own), rows.nonzero().flatten())}


class FastAPLoss(_Weighted):
    def __init__(self, num_bins=10, **options):
        super().__init__(**options)
        self.num_bins = num_bins

    def default_distance(self):
        return LpDistance(power=2)

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        _required(labels)
        mat = self.distance(embeddings, ref_emb)
        same, other = indexing.masks(labels, ref_labels)
        width = 2**self.distance.power / self.num_bins
        nodes = torch.arange(self.num_bins + 1, dtype=mat.dtype, device=mat.device) * width
        soft = (1 - (mat[:, :, None] - nodes).abs() / width).relu()
        own = (soft * same[:, :, None]).sum(1)
        every = own + (soft * other[:, :, None]).sum(1)
        top, bottom = own * own.cumsum(1), every.cumsum(1)
        used = (top > 0) & (bottom > 0)
        precision = torch.where(used, top / torch.where(used, bottom, 1.0), 0.0).sum(1)
        rows = same.any(1)
        value = self._weights(indices_tuple, labels, mat)[rows] * (1 - precision[rows] / same.sum(1)[rows])
        return {"loss": _term(value, rows.nonzero().flatten())} if rows.any() else {}


class SmoothAPLoss(_Weighted):
    def __init__(self, temperature=0.01, **options):
        super().__init__(**options)
        self.temperature = temperature

    def default_distance(self):
        return CosineSimilarity()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        _required(labels)
        _no_references(ref_emb, ref_labels)
        mat = self.distance(embeddings)
        same = labels[:, None] == labels[None]
        ahead = ((mat[:, None, :] - mat[:, :, None]) / self.temperature).sigmoid()
        ahead = ahead * ~torch.eye(len(labels), dtype=torch.bool, device=mat.device)
        precision = (1 + (ahead * same[:, None]).sum(2)) / (1 + ahead.sum(2))
        rows = same.sum(1) > 1
        value = (1 - (precision * same).sum(1) / same.sum(1)) * self._weights(indices_tuple, labels, mat)
        return {"loss": _term(value[rows], rows.nonzero().flatten())} if rows.any() else {}


# --- proxies and classes ---


class BaseProxyLoss(BaseMetricLossFunction):
    def __init__(
        self,
        num_weights,
        embedding_size,
        *,
        weight_regularizer=None,
        weight_reg_weight=1.0,
        weight_init_func=None,
        **options,
    ):
        super().__init__(**options)
        self.weight_regularizer, self.weight_reg_weight = weight_regularizer, weight_reg_weight
        self.weight = nn.Parameter(torch.empty(num_weights, embedding_size))
        (self.default_weight_init if weight_init_func is None else weight_init_func)(self.weight)

    def default_weight_init(self, weight):
        nn.init.normal_(weight)

    def regularization_terms(self, embeddings):
        terms = super().regularization_terms(embeddings)
        if self.weight_regularizer is not None:
            penalty = self.weight_reg_weight * self.weight_regularizer(self.weight)
            terms["weight_reg_loss"] = {"losses": penalty, "indices": None}
        return terms


class _Classification(BaseProxyLoss):
    """What the built-in proxy losses have in common: their checks."""

    def _checked(self, embeddings, labels, ref_emb, ref_labels):
        _required(labels)
        _no_references(ref_emb, ref_labels)
        if self.weight.device != embeddings.device:
            raise ValueError("weight and embeddings are on different devices")
        cast = torch.is_autocast_enabled(embeddings.device.type)
        if self.weight.dtype != embeddings.dtype and not cast:
            raise ValueError("weight and embeddings have different dtypes")
        return embeddings.to(self.weight.dtype) if cast else embeddings

    def _of_samples(self, logits, labels, indices_tuple):
        value = functional.cross_entropy(logits, labels, reduction="none")
        return {"loss": _elements(value * indexing.to_weights(indices_tuple, labels, value.dtype))}


class NormalizedSoftmaxLoss(_Classification):
    def __init__(self, num_classes, embedding_size, temperature=0.05, **options):
        super().__init__(num_classes, embedding_size, **options)
        self.num_classes, self.temperature = num_classes, temperature

    def default_distance(self):
        return DotProductSimilarity(normalize_embeddings=True)

    def get_logits(self, embeddings):
        mat = self.distance(embeddings, functional.normalize(self.weight, dim=1))
        return (mat if self.distance.is_inverted else -mat) / self.temperature

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        embeddings = self._checked(embeddings, labels, ref_emb, ref_labels)
        return self._of_samples(self.get_logits(embeddings), labels, indices_tuple)


class CosFaceLoss(_Classification):
    def __init__(self, num_classes, embedding_size, margin=0.35, scale=64, **options):
        super().__init__(num_classes, embedding_size, **options)
        self.num_classes, self.margin, self.scale = num_classes, margin, scale

    def default_distance(self):
        return CosineSimilarity()

    def _cosines(self, embeddings):
        return self.distance(embeddings, self.weight)

    def get_logits(self, embeddings):
        return self.scale * self._cosines(embeddings)

    def _target(self, cosine):
        return cosine - self.margin

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        embeddings = self._checked(embeddings, labels, ref_emb, ref_labels)
        cosines, own = self._cosines(embeddings), labels.long()[:, None]
        cosines = cosines.scatter(1, own, self._target(cosines.gather(1, own)))
        return self._of_samples(self.scale * cosines, labels.long(), indices_tuple)


class ArcFaceLoss(CosFaceLoss):
    def __init__(self, num_classes, embedding_size, margin=0.5, scale=64, **options):
        super().__init__(num_classes, embedding_size, margin, scale, **options)

    def _target(self, cosine):
        """Margin in RADIANS; linear beyond pi - m, with the derivative of the cosine there."""
        inside = cosine.abs() < 1
        angle = torch.where(inside, cosine, 0.0).acos()
        angle = torch.where(inside, angle, cosine.detach().clamp(-1, 1).acos())
        linear = cosine - self.margin * math.sin(self.margin)
        return torch.where(angle <= math.pi - self.margin, (angle + self.margin).cos(), linear)


class SubCenterArcFaceLoss(ArcFaceLoss):
    def __init__(self, num_classes, embedding_size, margin=0.5, scale=64, sub_centers=3, **options):
        super().__init__(num_classes * sub_centers, embedding_size, margin, scale, **options)
        self.num_classes, self.sub_centers = num_classes, sub_centers

    def _cosines(self, embeddings):
        return super()._cosines(embeddings).view(len(embeddings), self.num_classes, self.sub_centers).amax(2)

    def get_outliers(self, embeddings, labels, threshold_radians=75 * math.pi / 180):
        by_center = self.distance(embeddings, self.weight).view(len(embeddings), self.num_classes, self.sub_centers)
        own = by_center[torch.arange(len(labels)), labels]
        votes = torch.zeros(self.num_classes, self.sub_centers).index_put_(
            (labels, own.argmax(1)), torch.tensor(1.0), accumulate=True
        )
        dominant = votes.argmax(1)
        far = own.gather(1, dominant[labels][:, None]).squeeze(1) < math.cos(threshold_radians)
        return SubCenterOutliers(far.nonzero().flatten(), dominant)


class ProxyNCALoss(_Classification):
    def __init__(self, num_classes, embedding_size, softmax_scale=1, **options):
        super().__init__(num_classes, embedding_size, **options)
        self.num_classes, self.softmax_scale = num_classes, softmax_scale

    def default_distance(self):
        return LpDistance(power=2)

    def get_logits(self, embeddings):
        return self.distance(embeddings, self.weight)

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        embeddings = self._checked(embeddings, labels, ref_emb, ref_labels)
        mat = self.get_logits(embeddings)
        logits = self.softmax_scale * (mat if self.distance.is_inverted else -mat)
        return self._of_samples(logits, labels.long(), indices_tuple)


class ProxyAnchorLoss(_Classification):
    def __init__(self, num_classes, embedding_size, margin=0.1, alpha=32, **options):
        super().__init__(num_classes, embedding_size, **options)
        self.num_classes, self.margin, self.alpha = num_classes, margin, alpha

    def default_distance(self):
        return CosineSimilarity()

    def default_reducer(self):
        return DivisorReducer()

    def default_weight_init(self, weight):
        nn.init.kaiming_normal_(weight, mode="fan_out")

    def get_logits(self, embeddings):
        return self.distance(embeddings, self.weight)

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        embeddings = self._checked(embeddings, labels, ref_emb, ref_labels)
        mat = self.get_logits(embeddings)
        own = functional.one_hot(labels.long(), self.num_classes).bool()
        log_weights = indexing.to_weights(indices_tuple, labels, mat.dtype)[:, None].log()
        pull = self.alpha * self.distance.margin(mat, self.margin) + log_weights
        push = self.alpha * self.distance.margin(-self.margin, mat) + log_weights
        return {
            "pos_loss": _elements(_log_one_plus(pull, own, 0), divisor=own.any(0).sum()),
            "neg_loss": _elements(_log_one_plus(push, ~own, 0), divisor=self.num_classes),
        }


class SoftTripleLoss(_Classification):
    def __init__(self, num_classes, embedding_size, centers_per_class=10, la=20, gamma=0.1, margin=0.01, **options):
        super().__init__(num_classes * centers_per_class, embedding_size, **options)
        self.num_classes, self.centers_per_class = num_classes, centers_per_class
        self.la, self.gamma, self.margin = la, gamma, margin

    def default_distance(self):
        return CosineSimilarity()

    def get_logits(self, embeddings):
        by_center = self.distance(embeddings, self.weight).view(-1, self.num_classes, self.centers_per_class)
        return ((by_center / self.gamma).softmax(2) * by_center).sum(2)

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        embeddings = self._checked(embeddings, labels, ref_emb, ref_labels)
        logits, own = self.get_logits(embeddings), labels.long()[:, None]
        margins = torch.zeros_like(logits).scatter(1, own, self.margin)
        return self._of_samples(self.la * (logits - margins), labels.long(), indices_tuple)


class P2SGradLoss(BaseMetricLossFunction):
    def __init__(self, descriptors_dim, num_classes, **options):
        super().__init__(**options)
        self.num_classes = num_classes
        self.weight = nn.Parameter(torch.empty(num_classes, descriptors_dim))
        nn.init.normal_(self.weight)

    def default_distance(self):
        return CosineSimilarity()

    def compute_loss(self, embeddings, labels, indices_tuple, ref_emb, ref_labels):
        _required(labels)
        _no_references(ref_emb, ref_labels)
        target = functional.one_hot(labels.long(), self.num_classes)
        return {"loss": _term((self.distance(embeddings, self.weight) - target).square().mean(), None)}


# --- wrappers ---


class CrossBatchMemory(nn.Module):
    def __init__(
        self,
        loss,
        embedding_size,
        memory_size=1024,
        miner=None,
        *,
        label_dtype=torch.long,
        label_shape=(),
        pair_function=None,
    ):
        super().__init__()
        if label_shape or pair_function is not None:
            raise NotImplementedError("the stand-in has class labels only")
        self.loss, self.miner, self.memory_size = loss, miner, memory_size
        self.register_buffer("embedding_memory", torch.zeros(memory_size, embedding_size))
        self.register_buffer("label_memory", torch.zeros(memory_size, dtype=label_dtype))
        self.register_buffer("filled", torch.tensor(0))
        self.register_buffer("next_row", torch.tensor(0))

    def forward(self, embeddings, labels, indices_tuple=None, enqueue_mask=None):
        if indices_tuple is not None and enqueue_mask is not None:
            raise ValueError("indices_tuple and enqueue_mask exclude each other")
        stored = torch.ones_like(labels, dtype=torch.bool) if enqueue_mask is None else enqueue_mask
        count = int(stored.sum())
        if count > self.memory_size:
            raise ValueError("more rows than the memory holds")
        memory, memory_labels = self.embedding_memory.clone(), self.label_memory.clone()
        slots = (int(self.next_row) + torch.arange(count)) % self.memory_size
        memory[slots] = embeddings[stored].detach().to(memory.dtype)
        memory_labels[slots] = labels[stored].to(memory_labels.dtype)
        filled = min(int(self.filled) + count, self.memory_size)
        rows = torch.arange(len(labels)) if enqueue_mask is None else (~stored).nonzero().flatten()
        if not len(rows) or not filled:
            value = (embeddings * 0).sum()
        else:
            anchors, anchor_labels = embeddings[rows], labels[rows]
            refs, ref_labels = memory[:filled].to(embeddings.dtype), memory_labels[:filled]
            pairs = self._pairs(anchor_labels, ref_labels, slots if enqueue_mask is None else None, indices_tuple)
            if self.miner is not None:
                pairs = self.miner(anchors, anchor_labels, pairs, refs, ref_labels)
            value = self.loss(anchors, anchor_labels, pairs, refs, ref_labels)
        self.embedding_memory.copy_(memory)
        self.label_memory.copy_(memory_labels)
        self.filled.fill_(filled)
        self.next_row.fill_((int(self.next_row) + count) % self.memory_size)
        return value

    def _pairs(self, labels, ref_labels, own_slots, indices_tuple):
        a1, p, a2, n = indexing.all_pairs(labels, ref_labels)
        if own_slots is not None:
            kept = p != own_slots[a1]
            a1, p = a1[kept], p[kept]
        if indices_tuple is not None and own_slots is not None:
            b1, q, b2, m = indexing.to_pairs(indices_tuple, labels)
            a1, p = torch.cat([a1, b1]), torch.cat([p, own_slots[q]])
            a2, n = torch.cat([a2, b2]), torch.cat([n, own_slots[m]])
        return PairIndices(a1, p, a2, n)


class MultipleLosses(nn.Module):
    """Named losses (DOCUMENTED); a list, as in 2.9, is refused here (GUESS)."""

    def __init__(self, losses, miners=None, weights=None):
        super().__init__()
        if not isinstance(losses, dict):
            raise TypeError("losses must be a dict of named losses")
        self.losses, self.miners = nn.ModuleDict(losses), nn.ModuleDict(miners or {})
        self.weights = weights or {}

    def forward(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):
        total = (embeddings * 0).sum()
        for name, loss in self.losses.items():
            found = indices_tuple
            if name in self.miners:
                found = self.miners[name](embeddings, labels, indices_tuple, ref_emb, ref_labels)
            total = total + self.weights.get(name, 1.0) * loss(embeddings, labels, found, ref_emb, ref_labels)
        return total
