"""The average covering radius against every choice of centres, and against a loop over images."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocols.metrics import covering
from protocols.metrics.covering import covering_radius

many = settings(deadline=None, max_examples=40)


def _sample(n: int, d: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return embeddings, 5 * torch.randint(0, classes, (n,), generator=generator)


def _distances(points: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def _radius(distances: np.ndarray, chosen: tuple[int, ...]) -> float:
    return float(distances[:, list(chosen)].min(1).max())


def _greedy(points: np.ndarray) -> list[float]:
    distances = _distances(points)
    chosen = [int(distances.max(1).argmin())]
    radii = [_radius(distances, tuple(chosen))]
    while len(chosen) < len(points):
        chosen.append(int(distances[:, chosen].min(1).argmax()))
        radii.append(_radius(distances, tuple(chosen)))
    return radii


@many
@given(n=st.integers(1, 40), d=st.integers(1, 4), classes=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_agrees_with_a_loop(n: int, d: int, classes: int, seed: int) -> None:
    embeddings, labels = _sample(n, d, classes, seed)
    expected = np.mean([np.mean(_greedy(embeddings[labels == label].numpy())) for label in labels.unique()])
    assert covering_radius(embeddings, labels) == pytest.approx(expected, abs=1e-9)


def test_a_worked_example() -> None:
    # On a line: 1 covers all within 4; then the far end within 1; then all.
    embeddings = torch.tensor([[0.0], [1.0], [5.0], [7.0]])
    assert covering_radius(embeddings, torch.zeros(4, dtype=torch.int64)) == pytest.approx((5 + 2 + 1 + 0) / 4)
    # A class of one image is covered by it.
    assert covering_radius(embeddings, torch.tensor([0, 0, 0, 9])) == pytest.approx((4 + 1 + 0) / 3 / 2)


@pytest.mark.parametrize("elements", [1, 12, 10**6])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch, elements: int, rows: int) -> None:
    embeddings, labels = _sample(60, 3, 12, 0)
    whole = covering_radius(embeddings, labels)
    monkeypatch.setattr(covering, "POOL_ELEMENTS", elements)
    monkeypatch.setattr(covering, "_ROWS", rows)
    assert covering_radius(embeddings, labels) == pytest.approx(whole, rel=1e-12)
