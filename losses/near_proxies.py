"""Leave out the proxies that cannot add to a pair loss, before pairs are listed."""

from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.distances import DotProductSimilarity, LpDistance
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MultipleReducers
from torch import Tensor

from .pair_losses import BatchSumReducer, EuclideanDistance
from .waitless_reducers import WaitlessMeanAboveZero

_KNOWN_REDUCERS = (AvgNonZeroReducer, WaitlessMeanAboveZero, BatchSumReducer)
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
        proxies: (K C, d) of any norm, row k C + c of class c; the loss compares their projections into the unit ball.
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
        radius = _radius(base_loss, products, squares, labels, norms, num_classes)
        # |x - q / scale| < radius, rearranged so that only sums of rows and columns are needed.
        bound = (radius.square() - squares) / 2
        near = (products + bound * scale).amax(0) > norms.square() / (2 * scale)
    own = torch.zeros(num_classes, dtype=torch.bool, device=labels.device).index_fill_(0, labels, True)
    near |= own.repeat(len(proxies) // num_classes)
    near[:3] = True  # PML's pair losses are 0 if there is only one pair; there must not be fewer pairs than that
    rows: Tensor = near.nonzero().squeeze(1)
    return rows


def _radius(
    base_loss: Any, products: Tensor, squares: Tensor, labels: Tensor, norms: Tensor, num_classes: int
) -> Tensor:
    """Distance (B or 1, 1) from a sample up to which a proxy of another class adds to the loss, plus the slack."""
    if isinstance(base_loss, pml_losses.ContrastiveLoss):
        return products.new_full((1, 1), max(base_loss.neg_margin, 0.0) + _SLACK)
    own = labels.unsqueeze(1) + torch.arange(0, products.shape[1], num_classes, device=labels.device)
    scale = norms[own].clamp(min=1)
    squared = squares + (norms[own] / scale).square() - 2 * products.gather(1, own) / scale
    # A triplet adds while the negative is nearer than the farthest own proxy plus the margin.
    farthest = squared.clamp(min=0).sqrt().amax(1, keepdim=True)
    radius: Tensor = (farthest + base_loss.margin + _SLACK).clamp(min=0)
    return radius


def _zero_beyond_margin(base_loss: Any) -> bool:
    """Whether this is a loss of pytorch-metric-learning in which pairs beyond the margin neither add nor count."""
    reducer, distance = base_loss.reducer, base_loss.distance
    reducers = list(reducer.reducers.values()) if isinstance(reducer, MultipleReducers) else [reducer]
    if base_loss.collect_stats or any(type(r) not in _KNOWN_REDUCERS for r in reducers):
        return False
    if distance.p != 2 or distance.power != 1 or distance.normalize_embeddings:
        return False
    euclidean = type(distance) in (LpDistance, EuclideanDistance)
    if type(base_loss) is pml_losses.TripletMarginLoss:
        plain = not base_loss.swap and not base_loss.smooth_loss and base_loss.triplets_per_anchor == "all"
        return euclidean and plain and isinstance(reducers[0], AvgNonZeroReducer)
    return type(base_loss) is pml_losses.ContrastiveLoss and (euclidean or type(distance) is DotProductSimilarity)
