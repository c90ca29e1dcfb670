"""Exact Euclidean nearest neighbours, by faiss where it is installed and by chunked matrix products elsewhere."""

from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

import numpy as np
import torch
from torch import Tensor

CHUNK_ELEMENTS = 1 << 26
"""Distances held at once; 2^26 float32 are 256 MiB."""

FOUND_ELEMENTS = 1 << 25
"""Neighbours handed out at once; 2^25 indices are 256 MiB."""

_FAISS_GPU_MAX_K = 2048


def backend() -> str:
    """What searches on this machine, for people: `faiss-gpu 1.8.0`, `faiss-cpu 1.15.1` or `torch`."""
    if util.find_spec("faiss") is None:
        return "torch (faiss is not installed)"
    for package in ("faiss-gpu-cu12", "faiss-gpu", "faiss-cpu", "faiss"):
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return "faiss"


def nearest(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Tensor:
    """Indices of the k nearest `references` of each query, nearest first: int64 (queries, k) on the CPU.

    queries (q, d), references (r, d). With `exclude_self` both are the same set and query i never finds reference i,
    by index and not by rank, so that duplicates of an image still count (specification, 11.21). float32 on the CPU goes
    to faiss if there is one; float64 and other devices to torch.
    """
    return torch.cat(list(nearest_in_parts(queries, references, k, exclude_self=exclude_self)))


def nearest_in_parts(queries: Tensor, references: Tensor, k: int, *, exclude_self: bool) -> Iterator[Tensor]:
    """`nearest` for some queries at a time, in order, so that many neighbours of many queries need not fit in memory.

    Few neighbours come in one part.
    """
    wanted = k + 1 if exclude_self else k
    if not 1 <= wanted <= len(references):
        raise ValueError(f"{k} neighbours asked for among {len(references)} references")
    use_faiss = queries.dtype == torch.float32 and util.find_spec("faiss") is not None
    if queries.device.type == "cuda":
        use_faiss = use_faiss and wanted <= _FAISS_GPU_MAX_K and "gpu" in backend()
    index = _faiss_index(references) if use_faiss else None
    first = 0
    for part in queries.split(max(1, FOUND_ELEMENTS // wanted)):
        found = _by_torch(part, references, wanted) if index is None else _by_faiss(part, index, wanted)
        yield _without_self(found, first) if exclude_self else found
        first += len(part)


def _faiss_index(references: Tensor) -> Any:
    import faiss

    # faiss starts a thread per core by itself; trainings run side by side.
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


def _without_self(found: Tensor, first: int) -> Tensor:
    """Drops each row's own index, counted from `first`; a row that lacks it (more than k duplicates nearer) drops its
    last entry.
    """
    own = found == torch.arange(first, first + len(found))[:, None]
    own[:, -1] |= ~own.any(dim=1)
    return found[~own].reshape(len(found), -1)
