"""Distances within one set of points. Each product of two points is computed once, for the rows of both."""

from collections.abc import Iterator

import torch
from torch import Tensor

from protocols.metrics.products import equal_parts, memory_of_products, product

SIDE = 512
"""Largest side of a square of products. Smaller products are slow, and of larger ones more is computed twice."""

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
        rows_at_once: Largest number of rows in a band.

    Yields:
        The index of the first row of a band, and its distances (rows, n). They may be overwritten; later bands take the
        same memory.
    """
    blocks = equal_parts(points, SIDE)
    side = len(blocks[0])
    norms = [part.square().sum(1) for part in points.split(side)]
    memory = memory_of_products(points, side, side * len(blocks))
    kept: dict[tuple[int, int], Tensor] = {}
    for i, block in enumerate(blocks):
        distances = memory[: len(norms[i]), : len(points)]
        for j, part in enumerate(distances.split(side, dim=1)):
            if j < i:
                products = kept.pop((j, i)).T
            else:
                products = product(block, blocks[j])
                if j > i:
                    kept[i, j] = products
            torch.add(norms[j], products[: len(norms[i]), : len(norms[j])], alpha=-2, out=part)
        for top, band in enumerate(distances.split(rows_at_once)):
            yield i * side + top * rows_at_once, band
