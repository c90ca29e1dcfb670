"""What a miner found: pairs of rows, or triplets, as an `indices_tuple`; without one, all pairs of a batch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """Rows of a batch, as anchors, with rows of the batch or of its references."""

    anchors: Tensor
    positives: Tensor
    others: Tensor
    negatives: Tensor


def all_pairs(labels: Tensor, ref_labels: Tensor | None = None) -> Pairs:
    """All pairs of rows with labels (B,) and references with labels (R,); None, the default, is the batch itself.

    In the batch a row is not its own positive.
    """
    same = labels.unsqueeze(1) == (labels if ref_labels is None else ref_labels)
    others = (~same).nonzero().unbind(1)
    if ref_labels is None or ref_labels is labels:
        same = same.fill_diagonal_(False)
    return Pairs(*same.nonzero().unbind(1), *others)


def pairs_of(indices_tuple: Any, labels: Tensor | None, ref_labels: Tensor | None = None) -> Pairs:
    """The pairs that a miner found, or all pairs; raise ValueError if there are neither pairs nor labels."""
    if indices_tuple is None:
        if labels is None:
            raise ValueError("labels and indices_tuple cannot both be None")
        return all_pairs(labels, ref_labels)
    if len(indices_tuple) == 3:
        anchors, positives, negatives = indices_tuple
        return Pairs(anchors, positives, anchors, negatives)
    return Pairs(*indices_tuple)


def weights_of(indices_tuple: Any, labels: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights (B,) of samples: how often each is in what a miner found, divided by the largest number; 1 without."""
    if indices_tuple is None or not any(len(rows) for rows in indices_tuple):
        return torch.ones_like(labels, dtype=dtype)
    counts = torch.bincount(torch.cat(tuple(indices_tuple)), minlength=len(labels))
    return counts.to(dtype) / counts.max()


def mined_offset(indices_tuple: Any, labels: Tensor, dtype: torch.dtype) -> Tensor:
    """What PML 2.9 adds to the exponents of a sample: its weight by a miner minus 1, (B, 1)."""
    return weights_of(indices_tuple, labels, dtype).unsqueeze(1) - 1


def refuse_mined(indices_tuple: Any) -> None:
    """Raise ValueError for what a miner found, where a loss has no use for it."""
    if indices_tuple is not None:
        raise ValueError("indices_tuple is not supported for this loss function")
