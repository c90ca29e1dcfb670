import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocols.metrics.neighbours import smallest


def _expected(distances: Tensor, k: int) -> Tensor:
    return distances.argsort(dim=1, stable=True)[:, :k]


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 20),
    columns=st.integers(1, 300),
    values=st.sampled_from([2, 5, 50, 10**6]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    data=st.data(),
)
def test_the_order_is_that_of_a_stable_sort(
    rows: int, columns: int, values: int, dtype: torch.dtype, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, columns))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    # With few values there are many ties, also between blocks and at rank k.
    distances = torch.randint(-values, values, (rows, columns), generator=generator).to(dtype) / 3
    distances[torch.rand(rows, columns, generator=generator) < 0.02] = torch.inf
    assert torch.equal(smallest(distances.clone(), k), _expected(distances, k))


@pytest.mark.parametrize("k", [1, 2, 40])
def test_zeros_of_both_signs_are_equal(k: int) -> None:
    distances = torch.tensor([[0.0, -0.0] * 40 + [1.0, -1.0] * 300])
    assert torch.equal(smallest(distances.clone(), k), _expected(distances, k))


def test_only_rows_with_a_tie_at_the_cut_are_sorted_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_rows = []
    argsort = Tensor.argsort

    def watched(distances: Tensor, **options: bool) -> Tensor:
        sorted_rows.append(len(distances))
        return argsort(distances, **options)

    distances = torch.arange(1000.0).flip(0).repeat(20, 1)
    distances[3, 5] = distances[3, -7]
    expected = _expected(distances, 7)
    monkeypatch.setattr(Tensor, "argsort", watched)
    assert torch.equal(smallest(distances, 7), expected)
    assert sorted_rows == [1]
