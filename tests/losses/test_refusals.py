"""Every argument with which a loss could not work is refused in one line, and the line names the remedy."""

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import BaseDistance, LpDistance
from pytorch_metric_learning.regularizers import SparseCentersRegularizer
from torch import nn

import losses
from losses.pair_losses import EuclideanDistance

BALL = EuclideanDistance(normalize_embeddings=False)
PAIRS = (torch.tensor([0]),) * 4
ROWS, LABELS = torch.randn(4, 3), torch.arange(4) % 2

REFUSED = {
    "normalises them; give it a distance with normalize_embeddings=False, such as Dot": lambda: losses.CCPLoss(
        losses.CosineContrastiveLoss(), 3, 4
    ),
    "base_loss must be one of c1, c2, ms, triplet": lambda: losses.CCPLoss.from_card(base="c3", num_classes=3),
    "k must be at least 2": lambda: losses.ContextualLoss(1),
    "must not be negative": lambda: losses.ContextualLoss(eps=-0.1),
    "context_weight must be in": lambda: losses.ContextualLoss(context_weight=1.5),
    "a head of 16 dimensions needs": lambda: losses.ContextualLoss(head_size=16),
    "tau, alpha and hidden must be positive": lambda: losses.HISTLoss(5, 6, alpha=0),
    "batch_size and steps must be at least 1": lambda: losses.MemVirLoss(losses.ProxyAnchorLoss(3, 4), 4, 0),
    "needs a base loss with one proxy per class": lambda: losses.MemVirLoss(pml.TripletMarginLoss(), 4, 8),
    "preset must be one of paper, code": lambda: nir(preset="thesis"),
    "sigma must be one of exp, softplus": lambda: nir(sigma="tanh"),
    "self_regularization must be one of generate": lambda: nir(self_regularization="match"),
    "condition must be one of dense, start, mid, end": lambda: nir(cond="all"),
    "one proxy per class, .* ProxyGMLLoss has": lambda: nir(losses.ProxyGMLLoss(3, 4, proxies_per_class=3, r=0.9)),
    "needs a base loss with one proxy per class, .3, 4.; ProxyAnchorLoss has .3, 5": lambda: nir(
        losses.ProxyAnchorLoss(3, 5)
    ),
    "TripletMarginLoss has none: use one such as": lambda: nir(pml.TripletMarginLoss()),
    "needs unit vectors, CCPLoss has none": lambda: nir(losses.CCPLoss(pml.TripletMarginLoss(distance=BALL), 3, 4)),
    "got 'proxy_nca'; .* NIRLoss.from_card": lambda: nir("proxy_nca"),
    "negatives must be one of images, proxies, both": lambda: losses.NONLLoss(3, 4, negatives="classes"),
    "temperature must be positive, got -1": lambda: losses.NTCELoss(3, 4, temperature=-1),
    "reduction must be one of sum, mean": lambda: losses.PotentialFieldLoss(3, 4, reduction="none"),
    "delta positive, got 15, 3.0 and 0": lambda: losses.PotentialFieldLoss(3, 4, delta=0),
    "r must be in .* got 1.01": lambda: losses.ProxyGMLLoss(4, 2, r=1.01),
    "r must be in .* got 0": lambda: losses.ProxyGMLLoss(4, 2, r=0),
    "V must be at least 1 and tau positive, got V=0.5": lambda: losses.ProxyISALoss(3, 4, V=0.5),
    "V must be at least 1 and tau positive, .* tau=0": lambda: losses.ProxyISALoss(3, 4, tau=0),
    "needs cosines or dot products": lambda: losses.ProxyISALoss(3, 4, distance=BaseDistance(is_inverted=True)),
    "positive_penalty must be one of sigma, v": lambda: losses.ProxyISALoss(3, 4, positive_penalty="w"),
    "takes softmax_scale, not alpha": lambda: losses.ProxyNCALoss(3, 4, alpha=32.0),
    "variant must be one of prob": lambda: losses.ProxyNCALoss(3, 4, "probability"),
    "needs two classes, got 1": lambda: losses.ProxyNCALoss(1, 4, "classic"),
    "proxy_init or weight_init_func, not both": lambda: losses.ProxyNCALoss(
        3, 6, proxy_init="normal", weight_init_func=nn.init.normal_
    ),
    "ks must be numbers from 1 on": lambda: losses.RecallAtKLoss([0, 1]),
    "temperatures must be positive": lambda: losses.RecallAtKLoss(rank_temperature=0),
    "one for each of 2 ks": lambda: losses.RecallAtKLoss([1, 2], [1.0]),
    "needs CosineSimilarity or DotProductSimilarity": lambda: losses.RecallAtKLoss(distance=LpDistance()),
    "tau and delta must be positive": lambda: losses.RoadmapLoss(tau=0),
    "lam must be in": lambda: losses.RoadmapLoss(lam=2),
    "indices_tuple is not supported": lambda: losses.RoadmapLoss()(ROWS, LABELS, PAIRS),
    "temperature must be positive, got 0": lambda: losses.SmoothAPLoss(0),
    "regularizer must be one of halved, mean": lambda: losses.SoftTripleLoss(3, 6, regularizer="doubled"),
    "tau=0 to use it alone": lambda: losses.SoftTripleLoss(3, 6, weight_regularizer=SparseCentersRegularizer(3, 10)),
    "SoftTripleLoss needs CosineSimilarity": lambda: losses.SoftTripleLoss(4, 8, distance=LpDistance()),
    "got 'c1'; .* XBMLoss.from_card": lambda: losses.XBMLoss("c1", 4, 12),
    "no use for distance": lambda: losses.XBMLoss(losses.CosineContrastiveLoss(), 4, 12, distance=BALL),
    "does not fit into a memory of 3": lambda: losses.XBMLoss(losses.CosineContrastiveLoss(), 3, 3)(ROWS, LABELS),
}


def nir(base=None, **settings):
    return losses.NIRLoss(losses.ProxyAnchorLoss(3, 4) if base is None else base, 4, **settings)


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()
