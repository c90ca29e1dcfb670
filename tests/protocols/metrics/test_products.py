from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from protocols.metrics import products
from protocols.metrics.products import equal_parts, product


def _points(n: int, d: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def _products(left: Tensor, right: Tensor) -> Tensor:
    # As in a band of distances, the memory is a part of wider rows.
    memory = torch.full((len(left), len(right) + 3), torch.nan, dtype=left.dtype)[:, : len(right)]
    return product(left, right, memory)


@pytest.fixture(params=["oneDNN", "MKL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both libraries, whatever the processor."""
    name: str = request.param
    monkeypatch.setattr(products, "_onednn_is_better", lambda: name == "oneDNN")
    return name


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(1, 70), m=st.integers(1, 70), d=st.integers(1, 600), seed=st.integers(0, 99))
def test_products_round_like_sums_in_float32(library: str, n: int, m: int, d: int, seed: int) -> None:
    left, right = _points(n, d, seed), _points(m, d, seed + 100)
    exact = left.double() @ right.double().T
    # A sum of d products has an error of at most d roundings of the sum of their sizes.
    bound = d * torch.finfo(torch.float32).eps * (left.abs().double() @ right.abs().double().T)
    found = _products(left, right)
    assert found.dtype == torch.float32
    assert found.layout == torch.strided
    assert ((found - exact).abs() <= bound).all()


@pytest.mark.usefixtures("library")
def test_errors_are_as_small_as_those_of_torchs_own_product() -> None:
    left, right = _points(300, 512, 0), _points(400, 512, 1)
    exact = left.double() @ right.double().T
    ours, torchs = ((found - exact).square().mean().sqrt() for found in (_products(left, right), left @ right.T))
    assert ours < 4 * torchs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.usefixtures("library")
def test_other_numbers_are_multiplied_by_torch(dtype: torch.dtype) -> None:
    left, right = _points(5, 8, 0).to(dtype), _points(6, 8, 1).to(dtype)
    assert torch.equal(_products(left, right), left @ right.T)


def _multiplies_by_onednn() -> bool:
    with profile(activities=[ProfilerActivity.CPU]) as operations:
        product(_points(5, 8, 0), _points(6, 8, 1))
    names = {operation.key for operation in operations.key_averages()}
    return not names & {"aten::mm", "aten::addmm"}


def test_each_library_multiplies(library: str) -> None:
    assert _multiplies_by_onednn() == (library == "oneDNN")


@pytest.mark.parametrize(
    ("has_onednn", "has_operation", "has_mkl", "of_intel", "by_onednn"),
    [
        (True, True, True, True, False),
        (True, True, True, False, True),
        (True, True, False, True, True),
        (True, False, True, False, False),
        (False, True, True, False, False),
    ],
)
def test_the_processor_and_torchs_libraries_decide(
    has_onednn: bool,
    has_operation: bool,
    has_mkl: bool,
    of_intel: bool,
    by_onednn: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: has_onednn)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    monkeypatch.setattr(products, "of_intel", lambda: of_intel)
    if not has_operation:
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    assert _multiplies_by_onednn() == by_onednn
    if not by_onednn:
        left, right = _points(5, 8, 0), _points(6, 8, 1)
        assert torch.equal(_products(left, right), left @ right.T)


def test_equal_points_have_equal_products_wherever_they_are() -> None:
    # Otherwise two equal images would not be equally near.
    left, right = _points(512, 128, 0), _points(300, 128, 1)
    found = _products(left, torch.cat([right, right[:150]]))
    assert torch.equal(found[:, :150], found[:, 300:])
    assert torch.equal(_products(right, left), found[:, :300].T)


@pytest.mark.usefixtures("library")
def test_points_need_not_lie_one_after_another_in_memory() -> None:
    points = _points(64, 40, 0)
    assert torch.equal(_products(points.T, points.T), _products(points.T.contiguous(), points.T.contiguous()))


@given(n=st.integers(0, 200), most=st.sampled_from([1, 7, 16, 50, 64, 512]))
def test_parts_have_one_size_and_all_points_in_order(n: int, most: int) -> None:
    points = 1 + torch.arange(n, dtype=torch.float64)[:, None].repeat(1, 3)
    parts = equal_parts(points, most)
    together = torch.cat(parts)
    assert len({len(part) for part in parts}) == 1
    assert 1 <= len(parts[0]) <= most
    assert torch.equal(together[:n], points)
    assert not together[n:].any()
    assert n == 0 or len(together) - n < len(parts[0])
