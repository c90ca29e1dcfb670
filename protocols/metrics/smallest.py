"""The smallest distances of each row, in order."""

import numpy as np
import torch
from torch import Tensor

_BLOCK = 8
"""Number of distances in a block of the selection."""

_COLUMN = 0xFFFFFFFF
"""The bits of a key that hold the column."""

_SORTED_ROWS = 16
"""Number of rows of distances that are sorted as a whole at once."""


def smallest(distances: Tensor, k: int) -> Tensor:
    """Columns of the k smallest distances of each row (q, r), in order; of equal ones, the first column comes first."""
    if distances.dtype != torch.float32:
        return distances.argsort(dim=1, stable=True)[:, :k]
    n = distances.shape[1]
    if (k + 1) * _BLOCK * 2 > n:
        return _first(_keys(distances, torch.arange(n, device=distances.device)), k) & _COLUMN
    columns = _candidates(distances, k + 1)
    keys = _first(_keys(distances.gather(1, columns), columns), k + 1)
    # If the distance at rank k occurs again at rank k + 1, the first of its columns may not be among the candidates.
    cut_ties = (keys[:, k - 1] >> 32 == keys[:, k] >> 32).nonzero().flatten()
    neighbours = keys[:, :k] & _COLUMN
    for rows in cut_ties.split(_SORTED_ROWS):
        neighbours[rows] = distances[rows].argsort(dim=1, stable=True)[:, :k]
    return neighbours


def _keys(distances: Tensor, columns: Tensor) -> Tensor:
    """Whole numbers in the order of float32 distances and then of columns, int64. The lower 32 bits are the column.

    The distances are overwritten, because new memory for each step would take as long as the steps.
    """
    # Zero is added because -0.0 has other bits than 0.0. Of negative numbers, the larger one has the smaller bits.
    bits = distances.add_(0.0).view(torch.int32)
    bits ^= (bits >> 31).bitwise_and_(0x7FFFFFFF)
    return bits.long().bitwise_left_shift_(32).bitwise_or_(columns)


def _first(keys: Tensor, k: int) -> Tensor:
    """The k smallest keys of each row, in order."""
    least = _least(keys, k)
    # numpy sorts several times faster than torch on a CPU. On a GPU, `_least` has sorted them.
    return least if keys.device.type != "cpu" else torch.from_numpy(np.sort(least.numpy(), axis=1))


def _least(keys: Tensor, k: int) -> Tensor:
    """The k smallest keys of each row. The keys are overwritten."""
    if keys.device.type != "cpu":
        return keys.topk(k, dim=1, largest=False).values
    keys.numpy().partition(k - 1, axis=1)
    return keys[:, :k]


def _candidates(distances: Tensor, k: int) -> Tensor:
    """A few columns of each row, among which are k smallest distances: those of the k blocks with the smallest minima.

    A selection from all columns takes several times as long. A block takes every m-th column, because minima of
    neighbouring columns are slow.
    """
    n = distances.shape[1]
    m = n // _BLOCK
    in_blocks = torch.arange(0, m * _BLOCK, m, device=distances.device)
    minima = distances[:, : m * _BLOCK].unflatten(1, (_BLOCK, m)).amin(1)
    blocks = _least(_keys(minima, torch.arange(m, device=distances.device)), k) & _COLUMN
    columns = distances.new_empty(len(distances), k * _BLOCK + n - m * _BLOCK, dtype=torch.int64)
    torch.add(in_blocks[:, None], blocks[:, None], out=columns[:, : k * _BLOCK].unflatten(1, (_BLOCK, k)))
    columns[:, k * _BLOCK :] = torch.arange(m * _BLOCK, n, device=distances.device)
    return columns
