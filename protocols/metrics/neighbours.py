"""Exact Euclidean nearest neighbours: torch's matrix products in chunks, or faiss on a GPU."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from protocols.metrics.faiss_search import faiss_search, searches_by_faiss
from protocols.training.torch_state import exact_products

CHUNK_ELEMENTS = 1 << 22
"""Number of distances in memory at once; 2^22 float32 are 16 MiB, which fits into the cache of many processors."""

GPU_CHUNK_ELEMENTS = 1 << 27
"""The same on a GPU, where the host waits after every part: 512 MiB of distances. Chosen without a measurement."""

_GPU_BYTES = 16
"""Bytes on a GPU for each distance, its keys and the selection; a part takes at most a quarter of the free memory."""

LEAST_ROWS = 128
"""Smallest number of queries at once, even if their distances are more; products with fewer rows are slow."""

_ALIGNED = 16
"""The number of references is filled up to a multiple of it, as the last columns of other products round otherwise."""

_Search = Callable[[Tensor, int, Tensor | None], Tensor]
"""Takes queries (q, d), k and the reference that each query must not find (None allows all); returns indices (q, k)."""


def checked(points: Tensor) -> Tensor:
    """Return embeddings without their gradient, as no score has one; raise ValueError unless all are finite."""
    points = points.detach()
    # `torch.isfinite` of each number takes ten times as long on a CPU.
    if points.numel() and not torch.isfinite(torch.stack(torch.aminmax(points))).all():
        raise ValueError("embeddings are not finite")
    return points


def nearest(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Tensor:
    """Find the k nearest references of each query. Of equally near references, the first comes first.

    Args:
        queries: (q, d).
        references: (r, d).
        k: Number of neighbours.
        exclude_self: Whether queries and references are the same set and query i must not find reference i. It is
            excluded by index and not by rank, so that duplicates of an image still count (specification, 11.21).

    Returns:
        Indices of the neighbours, the nearest first: int64 (q, k) on the CPU.

    Raises:
        ValueError: There are fewer than k references.
    """
    if not 1 <= k <= len(references) - int(exclude_self):
        raise ValueError(f"cannot find {k} neighbours among {len(references)} references")
    depths = torch.full((len(queries),), k)
    return torch.cat([part for _, part in nearest_in_parts(queries, references, depths, exclude_self=exclude_self)])


def nearest_in_parts(
    queries: Tensor, references: Tensor, depths: Tensor, *, exclude_self: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Find neighbours like `nearest`, as many as each query needs, for a part of the queries at a time.

    Queries that need few neighbours are searched apart from those that need many. A part has at most about
    `CHUNK_ELEMENTS` distances, on a GPU `GPU_CHUNK_ELEMENTS`.

    Args:
        queries: (q, d).
        references: (r, d).
        depths: (q,) int64 on the CPU, the number of neighbours that each query needs. A query of depth 0 is left out.

    Yields:
        Indices of the next queries, int64 (part,), and their neighbours, the nearest first, int64 (part, k). k is the
        largest depth of the part. Both are on the CPU.
    """
    queries, references = queries.detach(), references.detach()
    deepest = int(depths.max()) if len(depths) else 0
    if deepest > len(references) - int(exclude_self):
        raise ValueError(f"cannot find {deepest} neighbours among {len(references)} references")
    search = torch_search(references)
    if searches_by_faiss(queries, deepest):
        search = faiss_search(references, search)
    rows_of_a_part = max(LEAST_ROWS, _elements_at_once(queries.device) // max(1, len(references)))
    # Depths 1, 2, 3 to 4, 5 to 8, ... are one group each.
    group_of_query = depths.double().log2().ceil()
    for group in group_of_query[depths > 0].unique():
        of_group = (group_of_query == group).nonzero().flatten()
        k = int(depths[of_group].max())
        for rows in of_group.split(rows_of_a_part):
            there = rows.to(queries.device)
            yield rows, search(queries[there], k, there if exclude_self else None).cpu()


def _elements_at_once(device: torch.device) -> int:
    if device.type != "cuda":
        return CHUNK_ELEMENTS
    return min(GPU_CHUNK_ELEMENTS, torch.cuda.mem_get_info(device)[0] // (4 * _GPU_BYTES))


def torch_search(references: Tensor) -> _Search:
    """Prepare a search by torch. References with equal coordinates are equally near, wherever they stand."""
    columns = functional.pad(references, (0, 0, 0, -len(references) % _ALIGNED)).T
    norms = columns.square().sum(0)
    # New memory for each part would cost as much time as the selection.
    memory = references.new_empty(0, len(norms))

    def search(queries: Tensor, k: int, without: Tensor | None) -> Tensor:
        nonlocal memory
        if len(memory) < len(queries):
            memory = references.new_empty(len(queries), len(norms))
        with exact_products():
            products = torch.mm(queries, columns, out=memory[: len(queries)])
        # The squared distance without the query's own norm, which does not change the order.
        distances = torch.add(norms, products, alpha=-2, out=products)[:, : len(references)]
        if without is not None:
            distances[torch.arange(len(queries), device=queries.device), without] = torch.inf
        return smallest(distances, k)

    return search


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
