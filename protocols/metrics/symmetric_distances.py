"""Distances within one set of points. Each product of two points is computed once, for the rows of both."""

from collections.abc import Iterator

import torch
from torch import Tensor

SIDE = 512
"""Side of a square of products. Smaller products are slow, and of larger ones more is computed twice."""

MOST_KEPT = 1 << 27
"""Largest number of products that are kept for later rows; 2^27 float32 are 512 MiB, enough for 22,000 points."""


def fits(n: int) -> bool:
    """Whether the products of n points that must be kept are at most `MOST_KEPT`.

    Args:
        n: Number of points. At most a quarter of their products is kept at once, beside one row of squares.
    """
    return n * n // 4 + n * SIDE <= MOST_KEPT


def distances_in_bands(points: Tensor, rows_at_once: int) -> Iterator[tuple[int, Tensor]]:
    """Compute the distances of all pairs of points, some rows at a time.

    The distance of points i and j in row i is `|x_j|^2 - 2 x_i x_j`, the squared distance without `|x_i|^2`, which does
    not change the order within the row. A square of products above the diagonal is kept until the rows below need it.

    Args:
        points: (n, d).
        rows_at_once: Largest number of rows in memory at once.

    Yields:
        The index of the first row of a band, and its distances (rows, n). They may be overwritten; the next band takes
        the same memory.
    """
    norms, doubled = points.square().sum(1).split(SIDE), (-2 * points).split(SIDE)
    squares = points.split(SIDE)
    band = points.new_empty(min(rows_at_once, SIDE), len(points))
    kept: dict[tuple[int, int], Tensor] = {}
    for i, left in enumerate(doubled):
        for j in range(i, len(squares)):
            kept[i, j] = left @ squares[j].T
        for top in range(0, len(left), rows_at_once):
            rows = slice(top, top + rows_at_once)
            distances = band[: len(left[rows])]
            for j, part in enumerate(distances.split(SIDE, dim=1)):
                products = kept[i, j][rows] if i <= j else kept[j, i][:, rows].T
                torch.add(products, norms[j], out=part)
            yield i * SIDE + top, distances
        for j in range(i + 1):
            del kept[j, i]
