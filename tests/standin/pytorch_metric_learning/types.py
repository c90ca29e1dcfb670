"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED (types page, generic_pair_loss page): fields of PairIndices and TripletIndices; LossDict is a plain dict of
plain dicts; a term has `losses` and `indices`, in DivisorReducer's case `divisor`; SubCenterOutliers.
GUESS: no `reduction_type` (the one published pair term has none, and its dict is closed after `indices`); the kind of
a term is read off `indices` (None, a tensor, two tensors, three tensors); name LossTerm.
"""

from typing import NamedTuple, NotRequired, TypedDict

from torch import Tensor


class PairIndices(NamedTuple):
    pos_anchors: Tensor
    positives: Tensor
    neg_anchors: Tensor
    negatives: Tensor


class TripletIndices(NamedTuple):
    anchors: Tensor
    positives: Tensor
    negatives: Tensor


IndicesTuple = PairIndices | TripletIndices


class LossTerm(TypedDict):
    losses: Tensor
    indices: Tensor | tuple[Tensor, ...] | None
    divisor: NotRequired[Tensor | float]


LossDict = dict[str, LossTerm]


class SubCenterOutliers(NamedTuple):
    outliers: Tensor
    dominant_centers: Tensor
