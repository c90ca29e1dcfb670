"""Exact Euclidean nearest neighbours, with faiss if it is installed, else with matrix products in chunks."""

from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

import numpy as np
import torch
from torch import Tensor

CHUNK_ELEMENTS = 1 << 26
"""Largest number of distances in memory at once; 2^26 float32 are 256 MiB."""

FOUND_ELEMENTS = 1 << 23
"""Largest number of neighbours in one part; 2^23 indices are 64 MiB."""

_FAISS_GPU_MAX_K = 2048


def backend() -> str:
    """Return the library that searches on this machine, for display: `faiss-gpu 1.8.0`, `torch (...)` or similar."""
    if util.find_spec("faiss") is None:
        return "torch (faiss is not installed)"
    for package in ("faiss-gpu-cu12", "faiss-gpu", "faiss-cpu", "faiss"):
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return "faiss"


def nearest(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Tensor:
    """Find the k nearest references of each query.

    faiss searches float32 embeddings if it is installed (on a GPU: the GPU version, for few neighbours); torch searches
    the others.

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
    return torch.cat(list(nearest_in_parts(queries, references, k, exclude_self=exclude_self)))


def nearest_in_parts(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Iterator[Tensor]:
    """Find neighbours like `nearest`, for a part of the queries at a time, so that the memory is limited.

    Args:
        queries: (q, d).
        references: (r, d).
        k: Number of neighbours.
        exclude_self: As in `nearest`.

    Yields:
        Indices for the next queries, in order: int64 (part, k) on the CPU.

    Raises:
        ValueError: There are fewer than k references.
    """
    wanted = k + 1 if exclude_self else k
    if not 1 <= wanted <= len(references):
        raise ValueError(f"cannot find {k} neighbours among {len(references)} references")
    use_faiss = queries.dtype == torch.float32 and util.find_spec("faiss") is not None
    if queries.device.type == "cuda":
        use_faiss = use_faiss and wanted <= _FAISS_GPU_MAX_K and "gpu" in backend()
    index = _faiss_index(references) if use_faiss else None
    first = 0
    for part in queries.split(max(1, FOUND_ELEMENTS // wanted)):
        neighbours = _by_torch(part, references, wanted) if index is None else _by_faiss(part, index, wanted)
        yield _without_self(neighbours, first) if exclude_self else neighbours
        first += len(part)


def _faiss_index(references: Tensor) -> Any:
    import faiss

    # By default, faiss starts one thread per core, but several trainings share the cores.
    faiss.omp_set_num_threads(torch.get_num_threads())
    index: Any = faiss.IndexFlatL2(references.shape[1])
    if references.device.type == "cuda":
        index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), references.device.index or 0, index)
    index.add(_float32(references))
    return index


def _by_faiss(queries: Tensor, index: Any, k: int) -> Tensor:
    return torch.from_numpy(index.search(_float32(queries), k)[1])


def _float32(rows: Tensor) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return np.ascontiguousarray(rows.detach().cpu().numpy(), dtype=np.float32)


def _by_torch(queries: Tensor, references: Tensor, k: int) -> Tensor:
    norms = references.square().sum(1)
    rows = max(1, CHUNK_ELEMENTS // len(references))
    chunks = []
    for part in queries.split(rows):
        distances = torch.addmm(norms, part, references.T, alpha=-2)
        chunks.append(distances.topk(k, dim=1, largest=False).indices.cpu())
    return torch.cat(chunks)


def _without_self(neighbours: Tensor, first: int) -> Tensor:
    """Remove the index `first` + i from row i. A row without it (more than k duplicates are as near) loses its last."""
    is_self = neighbours == torch.arange(first, first + len(neighbours))[:, None]
    is_self[:, -1] |= ~is_self.any(dim=1)
    return neighbours[~is_self].reshape(len(neighbours), -1)
