"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED (indexing page): ref_labels None is self-comparison without a row as its own positive, a supplied
ref_labels is another set and nothing is excluded; plain tuples of 4 or 3 int64/int32 tensors are taken; TypeError for
another dtype or a non-tensor; another length, shape or unequal lengths are refused (ValueError: GUESS); results are
long.
GUESS: every function NAME here, and how weights are computed (as 2.9: appearances divided by the most frequent one).
Our losses should therefore not use this module.
"""

import torch
from torch import Tensor

from ..types import PairIndices, TripletIndices


def as_indices(indices_tuple):
    if indices_tuple is None or isinstance(indices_tuple, (PairIndices, TripletIndices)):
        return indices_tuple
    if not isinstance(indices_tuple, (tuple, list)) or len(indices_tuple) not in (3, 4):
        raise ValueError("indices_tuple must have three or four tensors")
    for each in indices_tuple:
        if not torch.is_tensor(each) or each.dtype not in (torch.int64, torch.int32):
            raise TypeError("indices must be int64 or int32 tensors")
        if each.ndim != 1:
            raise ValueError("indices must be one-dimensional")
    if len({len(each) for each in indices_tuple[:2]}) > 1 or (
        len({len(each) for each in (indices_tuple[2:] if len(indices_tuple) == 4 else indices_tuple)}) > 1
    ):
        raise ValueError("anchors and partners differ in number")
    kind = PairIndices if len(indices_tuple) == 4 else TripletIndices
    return kind(*(each.long() for each in indices_tuple))


def masks(labels: Tensor, ref_labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    same = labels[:, None] == (labels if ref_labels is None else ref_labels)[None]
    other = ~same
    if ref_labels is None:
        same = same.clone().fill_diagonal_(False)
    return same, other


def all_pairs(labels: Tensor, ref_labels: Tensor | None = None) -> PairIndices:
    same, other = masks(labels, ref_labels)
    return PairIndices(*same.nonzero().unbind(1), *other.nonzero().unbind(1))


def to_pairs(indices_tuple, labels: Tensor | None, ref_labels: Tensor | None = None) -> PairIndices:
    found = as_indices(indices_tuple)
    if found is None:
        return all_pairs(labels, ref_labels)
    if isinstance(found, TripletIndices):
        return PairIndices(found.anchors, found.positives, found.anchors, found.negatives)
    return found


def to_triplets(indices_tuple, labels: Tensor | None, ref_labels: Tensor | None = None) -> TripletIndices:
    found = as_indices(indices_tuple)
    if isinstance(found, TripletIndices):
        return found
    a1, p, a2, n = to_pairs(found, labels, ref_labels)
    first, second = (a1[:, None] == a2[None]).nonzero().unbind(1)
    return TripletIndices(a1[first], p[first], n[second])


def to_weights(indices_tuple, labels: Tensor, dtype: torch.dtype) -> Tensor:
    found = as_indices(indices_tuple)
    if found is None or not any(len(each) for each in found):
        return torch.ones(len(labels), dtype=dtype, device=labels.device)
    rows = torch.cat([found[0], found[1], found[2]] if len(found) == 3 else [found[0], found[1], found[2], found[3]])
    counts = torch.bincount(rows, minlength=len(labels)).to(dtype)
    return counts / counts.max()
