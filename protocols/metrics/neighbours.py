"""Exact Euclidean nearest neighbours by matrix products in chunks, on a GPU by faiss if its GPU build is installed."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import util
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocols.metrics.products import equal_parts, memory_of_products, product
from protocols.metrics.symmetric_distances import distances_in_bands, fits

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


CHUNK_ELEMENTS = 1 << 22
"""Number of distances in memory at once; 2^22 float32 are 16 MiB, which fits into the cache of many processors."""

LEAST_ROWS = 128
"""Smallest number of queries at once, even if their distances are more; products with fewer rows are slow."""

_COLUMNS = 4096
"""Largest number of references in one product on a CPU. A search with all 26,000 at once took 1.1 times as long."""

_FAISS_GPU_MAX_K = 2048

_Search = Callable[[Tensor, int, Tensor | None], Tensor]
"""Takes queries (q, d), k and the reference that each query must not find (None allows all); returns indices (q, k)."""


def backend(device: str) -> str:
    """Return the library that searches on a device, for display: `torch 2.13.0`, `faiss 1.8.0 (GPU)` or similar.

    Args:
        device: Name of the device, such as `cpu` or `cuda:0`.
    """
    if device.startswith("cuda") and _has_faiss_gpu():
        import faiss

        return f"faiss {faiss.__version__} (GPU)"
    return f"torch {torch.__version__}"


def nearest(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Tensor:
    """Find the k nearest references of each query.

    torch searches. Of equally near references, the first comes first. On a GPU, faiss searches float32 embeddings if
    its GPU build is installed and k is at most 2,047.

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
    `CHUNK_ELEMENTS` distances. On a CPU, each product within one set is computed once if most of its queries take part
    and `symmetric_distances.fits`.

    Args:
        queries: (q, d).
        references: (r, d).
        depths: (q,) int64 on the CPU, the number of neighbours that each query needs. A query of depth 0 is left out.
        exclude_self: As in `nearest`.

    Yields:
        Indices of the next queries, int64 (part,), and their neighbours, the nearest first, int64 (part, k). k is the
        largest depth of the part. Both are on the CPU.

    Raises:
        ValueError: A depth is above the number of references.
    """
    available = len(references) - int(exclude_self)
    if len(depths) and int(depths.max()) > available:
        raise ValueError(f"cannot find {int(depths.max())} neighbours among {len(references)} references")
    rows_of_a_part = max(LEAST_ROWS, CHUNK_ELEMENTS // max(1, len(references)))
    most_take_part = 2 * int((depths > 0).sum()) > len(depths)
    if exclude_self and most_take_part and queries.device.type == "cpu" and fits(len(queries)):
        yield from _parts_of_one_set(queries, depths, rows_of_a_part)
        return
    search = _search(queries, references, int(depths.max()) + 1 if len(depths) else 1)
    group_of_query = _groups(depths)
    for group in group_of_query[depths > 0].unique():
        of_group = (group_of_query == group).nonzero().flatten()
        k = int(depths[of_group].max())
        for rows in of_group.split(rows_of_a_part):
            yield rows, search(queries[rows.to(queries.device)], k, rows if exclude_self else None).cpu()


def _groups(depths: Tensor) -> Tensor:
    """Group of each depth: depths 1, 2, 3 to 4, 5 to 8, ... are one group each."""
    return depths.double().log2().ceil()


def _parts_of_one_set(points: Tensor, depths: Tensor, rows_of_a_part: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Find neighbours within one set on a CPU, with half of the products."""
    group_of_query = _groups(depths)
    for first, distances in distances_in_bands(points, rows_of_a_part):
        rows = torch.arange(first, first + len(distances))
        distances.diagonal(first).fill_(torch.inf)
        groups = group_of_query[rows]
        for group in groups[depths[rows] > 0].unique():
            in_group = groups == group
            of_group = rows[in_group]
            of_queries = distances if in_group.all() else distances[in_group]
            yield of_group, smallest(of_queries, int(depths[of_group].max()))


def _search(queries: Tensor, references: Tensor, largest_k: int) -> _Search:
    """Choose the library that searches."""
    on_gpu = queries.device.type == "cuda"
    if on_gpu and queries.dtype == torch.float32 and largest_k <= _FAISS_GPU_MAX_K and _has_faiss_gpu():
        return _faiss_search(references)
    return _torch_search(references)


def _torch_search(references: Tensor) -> _Search:
    blocks = equal_parts(references, _COLUMNS if references.device.type == "cpu" else max(1, len(references)))
    columns = len(blocks[0])
    norms = [part.square().sum(1) for part in references.split(columns)]
    # New memory for each part would cost as much time as the selection.
    memory = references.new_empty(0)

    def search(queries: Tensor, k: int, without: Tensor | None) -> Tensor:
        nonlocal memory
        if len(memory) < len(queries):
            memory = memory_of_products(references, len(queries), columns * len(blocks))
        # The squared distance without the query's own norm, which does not change the order.
        distances = memory[: len(queries), : len(references)]
        squares = memory[: len(queries)].split(columns, dim=1)
        for of_part, block, square, part in zip(norms, blocks, squares, distances.split(columns, dim=1), strict=True):
            products = product(queries, block, square)[:, : len(of_part)]
            torch.add(of_part, products, alpha=-2, out=part)
        if without is not None:
            distances[torch.arange(len(queries)), without] = torch.inf
        return smallest(distances, k)

    return search


@cache
def _has_faiss_gpu() -> bool:
    """Whether faiss is installed and can search on a GPU. The names of its packages do not tell."""
    if util.find_spec("faiss") is None:
        return False
    import faiss

    return hasattr(faiss, "StandardGpuResources")


@cache
def _gpu_resources(device: int) -> Any:
    """Memory and streams of faiss on a GPU. Each process makes them once per device, as they are large."""
    import faiss

    return faiss.StandardGpuResources()


def _faiss_search(references: Tensor) -> _Search:
    import faiss

    device = references.device.index or 0
    index: Any = faiss.index_cpu_to_gpu(_gpu_resources(device), device, faiss.IndexFlatL2(references.shape[1]))
    index.add(_float32(references))

    def search(queries: Tensor, k: int, without: Tensor | None) -> Tensor:
        wanted = k if without is None else k + 1
        neighbours = torch.from_numpy(index.search(_float32(queries), wanted)[1])
        return neighbours if without is None else _without(neighbours, without)

    return search


def _float32(rows: Tensor) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return np.ascontiguousarray(rows.detach().cpu().numpy(), dtype=np.float32)


def _without(neighbours: Tensor, indices: Tensor) -> Tensor:
    """Remove index i from row i. A row without it (more than k duplicates are as near) loses its last neighbour."""
    is_self = neighbours == indices[:, None]
    is_self[:, -1] |= ~is_self.any(dim=1)
    return neighbours[~is_self].reshape(len(neighbours), -1)
