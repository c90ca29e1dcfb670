import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch
from torch import Tensor

from protocols.metrics import faiss_search as module
from protocols.metrics.faiss_search import backend, faiss_search, searches_by_faiss
from protocols.metrics.neighbours import torch_search

pytest.importorskip("faiss", reason="the search needs faiss")


def _grid(seed: int) -> Tensor:
    """Points of a small grid, at exact distances with many ties."""
    return torch.randint(0, 3, (150, 3), generator=torch.Generator().manual_seed(seed)).float()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 12, 148])
def test_faiss_finds_the_same_in_the_same_order(seed: int, k: int) -> None:
    points, by_torch = _grid(seed), torch_search(_grid(seed))
    by_faiss = faiss_search(points, by_torch)
    itself = torch.arange(10, 60)
    assert torch.equal(by_faiss(points[10:60], k, itself), by_torch(points[10:60], k, itself))
    assert torch.equal(by_faiss(points, k, None), by_torch(points, k, None))


@pytest.mark.parametrize("exclude_self", [False, True])
def test_all_references_can_be_wanted(exclude_self: bool) -> None:
    points = _grid(0)
    itself = torch.arange(150) if exclude_self else None
    k = 150 - int(exclude_self)
    assert torch.equal(
        faiss_search(points, torch_search(points))(points, k, itself), torch_search(points)(points, k, itself)
    )


def test_a_search_for_many_duplicates_leaves_out_the_query_itself() -> None:
    points = torch.ones(40, 3)
    found = faiss_search(points, torch_search(points))(points, 3, torch.arange(40))
    assert found[0].tolist() == [1, 2, 3]
    assert found[1:].tolist() == [[i for i in range(5) if i != row][:3] for row in range(1, 40)]


@pytest.mark.parametrize(("builds", "usable"), [({}, False), ({"StandardGpuResources": object}, True)])
def test_a_gpu_build_of_faiss_is_known_by_what_it_can_do(
    monkeypatch: pytest.MonkeyPatch, builds: dict[str, object], usable: bool
) -> None:
    installed = ModuleType("faiss")
    vars(installed).update({"__version__": "1.9", **builds})
    installed.__spec__ = ModuleSpec("faiss", None)
    monkeypatch.setitem(sys.modules, "faiss", installed)
    module._has_faiss_gpu.cache_clear()
    try:
        assert backend("cpu").startswith("torch")
        assert backend("cuda:0") == ("faiss 1.9 (GPU)" if usable else f"torch {torch.__version__}")
        assert not searches_by_faiss(torch.ones(3, 2), 1)
    finally:
        module._has_faiss_gpu.cache_clear()
