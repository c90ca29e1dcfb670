import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocols.metrics.products import product, ready


def _points(n: int, d: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def _products(left: Tensor, right: Tensor) -> Tensor:
    return product(ready(left), ready(right))


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 70), m=st.integers(1, 70), d=st.integers(1, 600), seed=st.integers(0, 99))
def test_products_round_like_sums_in_float32(n: int, m: int, d: int, seed: int) -> None:
    left, right = _points(n, d, seed), _points(m, d, seed + 100)
    exact = left.double() @ right.double().T
    # A sum of d products has an error of at most d roundings of the sum of their sizes.
    bound = d * torch.finfo(torch.float32).eps * (left.abs().double() @ right.abs().double().T)
    found = _products(left, right)
    assert found.dtype == torch.float32
    assert found.layout == torch.strided
    assert ((found - exact).abs() <= bound).all()


def test_errors_are_as_small_as_those_of_torchs_own_product() -> None:
    left, right = _points(300, 512, 0), _points(400, 512, 1)
    exact = left.double() @ right.double().T
    ours, torchs = ((found - exact).square().mean().sqrt() for found in (_products(left, right), left @ right.T))
    assert ours < 4 * torchs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_numbers_are_multiplied_by_torch(dtype: torch.dtype) -> None:
    left, right = _points(5, 8, 0).to(dtype), _points(6, 8, 1).to(dtype)
    assert ready(left) is left
    assert torch.equal(_products(left, right), left @ right.T)


def test_a_torch_without_onednn_multiplies_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    left, right = _points(5, 8, 0), _points(6, 8, 1)
    assert ready(left) is left
    assert torch.equal(_products(left, right), left @ right.T)


def test_equal_points_have_equal_products_wherever_they_are() -> None:
    # Otherwise two equal images would not be equally near.
    left, right = _points(512, 128, 0), _points(300, 128, 1)
    found = _products(left, torch.cat([right, right[:150]]))
    assert torch.equal(found[:, :150], found[:, 300:])
    assert torch.equal(_products(right, left), found[:, :300].T)


def test_points_need_not_lie_one_after_another_in_memory() -> None:
    points = _points(64, 40, 0)
    assert torch.equal(_products(points.T, points.T), _products(points.T.contiguous(), points.T.contiguous()))
