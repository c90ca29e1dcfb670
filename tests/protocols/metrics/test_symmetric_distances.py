from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocols.metrics import neighbours, symmetric_distances
from protocols.metrics.neighbours import nearest
from protocols.metrics.symmetric_distances import distances_in_bands, fits


def _points(n: int, d: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), rows=st.integers(1, 50), side=st.integers(1, 45), seed=st.integers(0, 99))
def test_bands_are_the_rows_of_all_distances(n: int, rows: int, side: int, seed: int) -> None:
    points = _points(n, 3, seed)
    expected = points.square().sum(1) - 2 * points @ points.T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetric_distances, "SIDE", side)
        bands = [(first, band.clone()) for first, band in distances_in_bands(points, rows)]
    assert [first for first, _ in bands] == list(accumulate((len(band) for _, band in bands[:-1]), initial=0))
    assert max(len(band) for _, band in bands) <= min(rows, side)
    assert torch.allclose(torch.cat([band for _, band in bands]), expected, atol=1e-12, rtol=0)


def test_a_band_may_be_overwritten() -> None:
    points = _points(30, 3, 0)
    expected = torch.cat([band.clone() for _, band in distances_in_bands(points, 7)])
    overwritten = []
    for _, band in distances_in_bands(points, 7):
        overwritten.append(band.clone())
        band.fill_(torch.nan)
    assert torch.equal(torch.cat(overwritten), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [5, 40])
def test_neighbours_are_those_of_all_products(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, k: int) -> None:
    points = _points(1300, 16, 1, dtype)
    found = nearest(points, points, k, exclude_self=True)
    monkeypatch.setattr(symmetric_distances, "MOST_KEPT", 0)
    assert not fits(len(points))
    assert (found == nearest(points, points, k, exclude_self=True)).float().mean() > 0.9999


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d", [128, 2048])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.usefixtures("same_threads_afterwards")
def test_duplicates_in_different_squares_are_equally_near(
    threads: int, d: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With two threads, MKL on an Intel Xeon rounds long points otherwise in a square of 512 than in one of 376.
    torch.set_num_threads(threads)
    if not kept:
        monkeypatch.setattr(symmetric_distances, "MOST_KEPT", 0)
        monkeypatch.setattr(neighbours, "_COLUMNS", 512)
    n = 700
    # Rows and columns of products must round alike, or the second of two equal images could come first.
    half = _points(n, d, 2, torch.float32)
    found = nearest(torch.cat([half, half]), torch.cat([half, half]), 60, exclude_self=True)
    others = found[:, 1:]
    pairs = others[:, :58].unflatten(1, (29, 2))
    assert torch.equal(found[:, 0], torch.arange(2 * n).roll(n))
    assert torch.equal(pairs[..., 0] + n, pairs[..., 1])


def test_what_is_kept_is_limited() -> None:
    assert fits(22_000)
    assert not fits(23_000)
