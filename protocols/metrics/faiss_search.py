"""The search for neighbours by faiss on a GPU. It reads torch's tensors where they are."""

from collections.abc import Callable
from functools import cache
from importlib import util
from typing import Any

import torch
from torch import Tensor

_MOST = 2048
"""Largest number of neighbours that faiss finds on a GPU."""


def backend(device: str) -> str:
    """Return the library that searches on a device such as `cuda:0`, for display: `faiss 1.8.0 (GPU)` or similar."""
    if device.startswith("cuda") and _has_faiss_gpu():
        import faiss

        return f"faiss {faiss.__version__} (GPU)"
    return f"torch {torch.__version__}"


def searches_by_faiss(queries: Tensor, deepest: int) -> bool:
    """Tell whether faiss searches for at most `deepest` neighbours: float32 on a GPU, with faiss's GPU build."""
    on_gpu = queries.device.type == "cuda" and queries.dtype == torch.float32
    return on_gpu and deepest + 2 <= _MOST and _has_faiss_gpu()


@cache
def _has_faiss_gpu() -> bool:
    # The names of faiss's packages do not tell whether it can search on a GPU.
    if util.find_spec("faiss") is None:
        return False
    import faiss

    return hasattr(faiss, "StandardGpuResources")


@cache
def _gpu_resources(device: int) -> Any:
    """Memory and streams of faiss on a GPU. Each process makes them once per device, as they are large."""
    import faiss

    return faiss.StandardGpuResources()


def faiss_search(
    references: Tensor, exact: Callable[[Tensor, int, Tensor | None], Tensor]
) -> Callable[[Tensor, int, Tensor | None], Tensor]:
    """Prepare a search by faiss with the arguments, the results and the order of ties of `exact`, the one by torch.

    faiss puts equally near references into any order. They are sorted here. Where a tie goes beyond the last neighbour,
    `exact` finds the query's neighbours.
    """
    import faiss
    import faiss.contrib.torch_utils  # Lets an index take torch's tensors.

    index: Any = faiss.IndexFlatL2(references.shape[1])
    if references.device.type == "cuda":
        device = references.device.index or 0
        index = faiss.index_cpu_to_gpu(_gpu_resources(device), device, index)
    index.add(references.detach().contiguous())

    def search(queries: Tensor, k: int, without: Tensor | None) -> Tensor:
        # One more than needed shows ties at the end.
        wanted = min(k + 1 + int(without is not None), len(references))
        distances, neighbours = index.search(queries.detach().contiguous(), wanted)
        if without is not None:
            without = without.to(neighbours.device)
            distances = distances.where(neighbours != without[:, None], torch.inf)
        by_index = neighbours.argsort(dim=1)
        order = by_index.gather(1, distances.gather(1, by_index).argsort(dim=1, stable=True))
        distances, neighbours = distances.gather(1, order), neighbours.gather(1, order)
        found: Tensor = neighbours[:, :k]
        if k < len(references) - int(without is not None):
            unsure = (distances[:, k - 1] == distances[:, k]).nonzero().flatten()
            if len(unsure):
                found[unsure] = exact(queries[unsure], k, None if without is None else without[unsure])
        return found

    return search
