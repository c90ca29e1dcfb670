"""Exact Euclidean nearest neighbours by torch's matrix products in chunks."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from protocols.machine.torch_state import exact_products

CHUNK_ELEMENTS = 1 << 22
"""Number of distances in memory at once; 2^22 float32 are 16 MiB, which fits into the cache of many processors."""

GPU_CHUNK_ELEMENTS = 1 << 25
"""The same on a GPU, where the host waits after every part: 128 MiB of distances."""

LEAST_ROWS = 128
"""Smallest number of queries at once, even if their distances are more; products with fewer rows are slow."""

_ALIGNED = 16
"""The number of references is filled up to a multiple of it, as the last columns of other products round otherwise."""

_SORTED_ROWS = 16
"""Number of rows of distances that are sorted as a whole at once."""


def checked(points: Tensor) -> Tensor:
    """Return embeddings without their gradient, as no score has one; raise ValueError unless all are finite."""
    points = points.detach()
    # `torch.isfinite` of each number takes ten times as long on a CPU.
    if points.numel() and not torch.isfinite(torch.stack(torch.aminmax(points))).all():
        raise ValueError("embeddings are not finite")
    return points


def nearest_in_parts(
    queries: Tensor,
    references: Tensor,
    depths: Tensor,
    *,
    exclude_self: bool,
    labels: tuple[Tensor, Tensor] | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Find the nearest references of each query, as many as it needs, for a part of the queries at a time.

    Of equally near references, the first comes first.

    Queries that need few neighbours are searched separately from those that need many. A part has at most about
    `CHUNK_ELEMENTS` distances, on a GPU `GPU_CHUNK_ELEMENTS`.

    Args:
        queries: (q, d).
        references: (r, d). Those with equal coordinates are equally near, wherever they stand.
        depths: (q,) int64 on the CPU, the number of neighbours that each query needs. A query of depth 0 is left out.
        exclude_self: Whether queries and references are the same set and query i must not find reference i. It is
            excluded by index and not by rank, so that duplicates of an image still count (specification, 11.21).
        labels: Classes of queries (q,) and of references (r,). Of equally near references, those of the query's class
            then come last. None goes by their order alone.

    Yields:
        Indices of the next queries, int64 (part,), and their neighbours, the nearest first, int64 (part, k). k is the
        largest depth of the part. Both are on the CPU.

    Raises:
        ValueError: There are fewer references than a query needs.
    """
    queries, references = queries.detach(), references.detach()
    deepest = int(depths.max()) if len(depths) else 0
    if deepest > len(references) - int(exclude_self):
        raise ValueError(f"cannot find {deepest} neighbours among {len(references)} references")
    elements = GPU_CHUNK_ELEMENTS if queries.device.type == "cuda" else CHUNK_ELEMENTS
    rows_of_a_part = max(LEAST_ROWS, elements // max(1, len(references)))
    columns = functional.pad(references, (0, 0, 0, -len(references) % _ALIGNED)).T
    norms = columns.square().sum(0)
    # New memory for each part would cost as much time as the selection.
    memory = references.new_empty(min(rows_of_a_part, len(queries)), len(norms))
    # Depths 1, 2, 3 to 4, 5 to 8, ... are one group each.
    group_of_query = depths.double().log2().ceil()
    classes = None if labels is None else [each.to(queries.device) for each in labels]
    for group in group_of_query[depths > 0].unique():
        of_group = (group_of_query == group).nonzero().flatten()
        k = int(depths[of_group].max())
        for rows in of_group.split(rows_of_a_part):
            there = rows.to(queries.device)
            with exact_products():
                products = torch.mm(queries[there], columns, out=memory[: len(rows)])
            # The squared distance without the query's own norm, which does not change the order.
            distances = torch.add(norms, products, alpha=-2, out=products)[:, : len(references)]
            if exclude_self:
                distances[torch.arange(len(rows), device=there.device), there] = torch.inf
            late = None if classes is None else classes[1] == classes[0][there].unsqueeze(1)
            yield rows, smallest(distances, k, late).cpu()


def smallest(distances: Tensor, k: int, late: Tensor | None = None) -> Tensor:
    """Columns of the k smallest distances of each row (q, r), in order; of equal ones, the first column comes first.

    Of equal distances, those in the mask `late` (q, r) come after the others.

    `topk` puts equal distances into any order, so they are sorted here. One distance more than needed shows where a tie
    goes beyond the last neighbour; these rows are sorted as a whole, and with `late` all rows with a tie.
    """
    columns = distances.topk(min(k + 1, distances.shape[1]), dim=1, largest=False).indices.sort(dim=1).values
    found, order = distances.gather(1, columns).sort(dim=1, stable=True)
    neighbours = columns.gather(1, order)[:, :k]
    ties = found[:, k:] == found[:, k - 1 : -1] if late is None else found[:, 1:] == found[:, :-1]
    for rows in ties.any(1).nonzero().flatten().split(_SORTED_ROWS):
        first = torch.zeros_like(distances[rows]) if late is None else late[rows].byte()
        first = first.sort(dim=1, stable=True).indices
        neighbours[rows] = first.gather(1, distances[rows].gather(1, first).argsort(dim=1, stable=True))[:, :k]
    return neighbours
