"""Chance-constrained programming: a sequence of proxy problems; each starts from the solution of the one before it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.distances import DotProductSimilarity, LpDistance
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MultipleReducers
from torch import Tensor, nn

from .base import MetricLoss, already_reduced, checked_labels
from .k_center import greedy_k_center
from .pair_losses import COPY, BatchSumReducer, EuclideanDistance
from .plugin import Clock, Needs, PluginWrapper, ScaleCheck, TrainingContext, require_references, warn_without_hooks

_RISE = 1e-5  # a validation score must rise by more than this, as in the authors' code
_SLACK = 0.01  # far above the rounding error of a distance; a proxy too many changes nothing


@torch.no_grad()
def near_proxies(base_loss: Any, samples: Tensor, labels: Tensor, proxies: Tensor, num_classes: int) -> Tensor | None:
    """Find the proxies that can change a pair loss between samples and proxies.

    A negative pair beyond its margin adds 0 to the sum and is not counted, so a proxy without any nearer pair can be
    left out. Proxies of the classes in the batch always stay. One product of all samples and all proxies decides, and
    no list of pairs is made.

    Args:
        base_loss: the pair loss.
        samples: (B, d) in the unit ball.
        labels: (B,) in 0..C-1.
        proxies: (K C, d) of any norm, row k C + c of class c; the loss compares them as `ball(proxies)`.
        num_classes: C.

    Returns:
        Rows of `proxies`, in order; None if every proxy can add to this loss, as in multi-similarity.
    """
    if not _zero_beyond_margin(base_loss):
        return None
    norms = torch.linalg.vector_norm(proxies, dim=1)
    scale = norms.clamp(min=1)
    products = samples @ proxies.t()
    if isinstance(base_loss.distance, DotProductSimilarity):
        near = products.amax(0) > (base_loss.neg_margin - _SLACK) * scale
    else:
        squares = samples.square().sum(1, keepdim=True)
        if isinstance(base_loss, pml_losses.ContrastiveLoss):
            radius = products.new_full((1, 1), max(base_loss.neg_margin, 0.0))
        else:
            # A triplet adds while the negative is nearer than the farthest own proxy plus the margin.
            own = labels.unsqueeze(1) + torch.arange(0, len(proxies), num_classes, device=labels.device)
            squared = squares + (norms[own] / scale[own]).square() - 2 * products.gather(1, own) / scale[own]
            radius = squared.clamp(min=0).sqrt().amax(1, keepdim=True) + base_loss.margin
        # |x - q / scale| < radius, rearranged so that only sums of rows and columns are needed.
        bound = ((radius + _SLACK).clamp(min=0).square() - squares) / 2
        near = (products + bound * scale).amax(0) > norms.square() / (2 * scale)
    own_class = torch.zeros(num_classes, dtype=torch.bool, device=labels.device).index_fill_(0, labels, True)
    near |= own_class.repeat(len(proxies) // num_classes)
    near[:3] = True  # PML's pair losses are 0 if there is only one pair; there must not be fewer pairs than that
    rows: Tensor = near.nonzero().squeeze(1)
    return rows


def _zero_beyond_margin(base_loss: Any) -> bool:
    """Whether this is a loss of pytorch-metric-learning in which pairs beyond the margin neither add nor count."""
    reducer, distance = base_loss.reducer, base_loss.distance
    reducers = list(reducer.reducers.values()) if isinstance(reducer, MultipleReducers) else [reducer]
    known = (AvgNonZeroReducer, BatchSumReducer)
    if getattr(base_loss, "collect_stats", False) or any(type(r) not in known for r in reducers):
        return False
    if distance.p != 2 or distance.power != 1 or distance.normalize_embeddings:
        return False
    euclidean = type(distance) in (LpDistance, EuclideanDistance)
    if type(base_loss) is pml_losses.TripletMarginLoss:
        plain = not base_loss.swap and not base_loss.smooth_loss and base_loss.triplets_per_anchor == "all"
        return euclidean and plain and isinstance(reducers[0], AvgNonZeroReducer)
    return type(base_loss) is pml_losses.ContrastiveLoss and (euclidean or type(distance) is DotProductSimilarity)


def ball(vectors: Tensor) -> Tensor:
    """Project every row of `vectors` (n, d) into the unit ball: `v / max(1, |v|)`."""
    norm = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / torch.where(norm > 1, norm, 1.0)


def _c1(margin: float = 0.5) -> Any:
    dot = DotProductSimilarity(normalize_embeddings=False)
    return pml_losses.ContrastiveLoss(1 - COPY, margin, distance=dot, reducer=BatchSumReducer())


def _c2(pos_margin: float = 0.0, neg_margin: float = 0.3841) -> Any:
    return pml_losses.ContrastiveLoss(pos_margin, neg_margin, distance=EuclideanDistance(normalize_embeddings=False))


def _ms(alpha: float = 2.0, beta: float = 40.0, threshold: float = 0.5) -> Any:
    dot = DotProductSimilarity(normalize_embeddings=False)
    return pml_losses.MultiSimilarityLoss(alpha, beta, threshold, distance=dot)


def _triplet(margin: float = 0.0961) -> Any:
    return pml_losses.TripletMarginLoss(margin, distance=EuclideanDistance(normalize_embeddings=False))


class CCPLoss(PluginWrapper, MetricLoss):
    """A pair loss between samples and K proxies per class, solved repeatedly with new proxies.

    With `ball(v) = v / max(1, |v|)`, raw embeddings e (B, d), proxies Q (K C, d; row k C + c is proxy k of class c)::

        L = L_pair(ball(e); ball(Q)) + w_sample L_pair(ball(e); ball(e))
        gradient of the trunk's weights += lam (theta - theta_prev)         from the second problem on

    Greedy k-center picks the first proxies from a pool of embeddings. A problem ends when the validation score
    (`map_at_r`) has not risen by more than 1e-5 for `patience` evaluations. Then theta_prev becomes the best weights of
    this problem, greedy k-center picks new proxies far from its best proxies, and the next problem begins. The weights
    themselves are not reset. `indices_tuple` chooses pairs or triplets within the batch.

    All state is in buffers; `bind` gives `previous_weights` and `best_weights` the size of the trunk. `bind` on a loss
    with loaded state keeps that state. Every hook is also called on the base loss.

    A card may name the base loss: `c1` (dot products, sum over pairs / B; `margin` 0.5), `c2`
    (Euclidean, mean over active pairs; `pos_margin` 0, `neg_margin` 0.3841), `ms` (multi-similarity without miner;
    `alpha` 2, `beta` 40, `threshold` 0.5) or `triplet` (all triplets; `margin` 0.0961). Without a name it is `c2`.

    Args:
        base_loss: L_pair, a pair loss that takes `ref_emb` and whose distance does not normalise.
        num_classes: C.
        embedding_size: d.
        proxies_per_class: K; default 8 (the paper: 4 for SOP and In-Shop).
        pool_size: b, embeddings per class in the pool; default 12 (the paper: 7 for SOP and In-Shop). With 1 < b < K
            the pool has b K per class. With b = 1 it has K, which become the proxies without a choice.
        lam: strength of the proximal term; default 2e-4.
        w_sample: weight of the term between samples; default 0.1.
        patience: number of evaluations without a rise that end a problem; default 3.
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Raises:
        ValueError: for a base loss that is not built, takes no references or normalises, and for every batch that
            `checked_labels` refuses.
        KeyError: if the metrics lack `map_at_r`.

    Source: Gurbuz et al., Deep Metric Learning with Chance Constraints, as specified by its supplement and the authors'
    code.
    """

    VERSION = 2
    """Version 1 compared the samples with all proxies in one list of pairs, with other rounding errors."""

    _scale: ScaleCheck | None = None
    sub_losses = ("proxy_loss", "sample_loss")
    needs = Needs(normalization="ball", validation=True)
    named_bases = MappingProxyType({"c1": _c1, "c2": _c2, "ms": _ms, "triplet": _triplet})
    default_base = "c2"

    proxy_labels: Tensor
    best_proxies: Tensor
    best_weights: Tensor
    previous_weights: Tensor
    best_score: Tensor
    instance: Tensor
    stale: Tensor
    started: Tensor

    def __init__(
        self,
        base_loss: nn.Module,
        num_classes: int,
        embedding_size: int,
        proxies_per_class: int = 8,
        pool_size: int = 12,
        lam: float = 2e-4,
        w_sample: float = 0.1,
        *,
        patience: int = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(base_loss, **kwargs)
        _check_base(base_loss)
        self.num_classes, self.embedding_size = num_classes, embedding_size
        self.proxies_per_class, self.pool_size = proxies_per_class, pool_size
        self.lam, self.w_sample, self.patience = lam, w_sample, patience
        self.proxies = nn.Parameter(torch.empty(proxies_per_class * num_classes, embedding_size))
        nn.init.kaiming_normal_(self.proxies)
        self.register_buffer("proxy_labels", torch.arange(self.num_classes).repeat(self.proxies_per_class))
        self.register_buffer("best_proxies", torch.zeros_like(self.proxies.data))
        self.register_buffer("best_weights", torch.zeros(0))
        self.register_buffer("previous_weights", torch.zeros(0))
        self.register_buffer("best_score", torch.tensor(-torch.inf, dtype=torch.float64))
        self.register_buffer("instance", torch.tensor(0))
        self.register_buffer("stale", torch.tensor(0))
        self.register_buffer("started", torch.tensor(False))
        self.register_load_state_dict_pre_hook(_take_sizes)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the weighted sub-losses `proxy_loss` and `sample_loss`, both already reduced."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        if self.training and self._context is None and not self.started:
            warn_without_hooks(self, "random proxies, and no further problems")
        samples = ball(embeddings)
        proxy_loss = self._proxy_loss(samples, labels)
        if self._scale is not None:
            self._scale.watch(proxy_loss)
        return already_reduced(
            proxy_loss=proxy_loss,
            sample_loss=self.w_sample * self.base_loss(samples, labels, indices_tuple),
        )

    def _proxy_loss(self, samples: Tensor, labels: Tensor) -> Tensor:
        proxies, proxy_labels = self.proxies.to(samples.dtype), self.proxy_labels
        near = near_proxies(self.base_loss, samples, labels, proxies, self.num_classes)
        if near is not None:
            proxies, proxy_labels = proxies[near], proxy_labels[near]
        listed: Tensor = self.base_loss(samples, labels, None, ball(proxies), proxy_labels)
        return listed

    def strength(self) -> float:
        """The coefficient of the proximal term in the current problem."""
        return self.lam if self.instance > 0 else 0.0

    def bind(self, context: TrainingContext) -> None:
        """Pick the first proxies, far from the origin. A loss with loaded state keeps it and only takes the trunk."""
        super().bind(context)
        self._scale = ScaleCheck(context.trunk_parameters[-1])  # Of the embedder, which no warm-up freezes.
        if self.started:
            return
        self.best_weights = _in_one_vector(context.trunk_parameters)
        self.previous_weights = torch.zeros_like(self.best_weights)
        self._pick_proxies()
        self.started.fill_(True)

    def on_gradients(self, clock: Clock) -> bool:
        """Add the gradient of `lam / 2 |theta - theta_prev|^2` to that of the trunk."""
        if self._scale is not None:
            self._scale(type(self).__name__)
        strength = self.strength()
        if strength > 0 and self._context:
            trunk = self._context.trunk_parameters
            for parameter, before in zip(trunk, self.previous_weights.split([p.numel() for p in trunk]), strict=True):
                if parameter.grad is not None:
                    parameter.grad.add_(parameter.detach() - before.view_as(parameter), alpha=strength)
        return super().on_gradients(clock)

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        """Keep the best solution of the current problem; begin the next problem when the score no longer rises."""
        assert self._context is not None, "bind the loss before evaluations"
        super().on_evaluation(clock, metrics)
        score = metrics["map_at_r"]
        if score > self.best_score + _RISE:
            self.best_score.fill_(score)
            self.stale.zero_()
            self.best_proxies.copy_(self.proxies.detach())
            self.best_weights.copy_(_in_one_vector(self._context.trunk_parameters))
        else:
            self.stale += 1
        if self.stale == self.patience:
            self.previous_weights.copy_(self.best_weights)
            self.instance += 1
            self._pick_proxies()
            self.stale.zero_()
            self.best_score.fill_(-torch.inf)

    @torch.no_grad()
    def _pick_proxies(self) -> None:
        """Pick new proxies from current embeddings, far from the best proxies of the last problem."""
        assert self._context is not None
        k, b = self.proxies_per_class, self.pool_size
        points = self._context.embed_pool(b if b >= k else b * k)
        if b > 1:
            # `best_proxies` is zero before the first problem: then the origin counts as chosen.
            initial = self.best_proxies.view(k, self.num_classes, -1).transpose(0, 1)
            picks, _ = greedy_k_center(points, initial.to(points), k)
            points = points.gather(1, picks.unsqueeze(2).expand(-1, -1, points.shape[2]))
        self.proxies.copy_(points.transpose(0, 1).reshape(self.proxies.shape))


def _take_sizes(loss: CCPLoss, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Torch calls it before a state is loaded: give the buffers the size of the trunk, which the state knows."""
    for name in ("best_weights", "previous_weights"):
        if (stored := state_dict.get(prefix + name)) is not None:
            setattr(loss, name, getattr(loss, name).new_zeros(stored.shape))


def _in_one_vector(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.cat([p.detach().flatten() for p in parameters])


def _check_base(base_loss: Any) -> None:
    require_references(CCPLoss, base_loss)
    distance = getattr(base_loss, "distance", None)
    if getattr(distance, "normalize_embeddings", False):
        raise ValueError(
            f"CCPLoss compares vectors of length 1 or less, but {type(base_loss).__name__} normalises them; "
            "give it a distance with normalize_embeddings=False, such as DotProductSimilarity"
        )
