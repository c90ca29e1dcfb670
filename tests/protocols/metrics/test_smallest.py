import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.metrics.neighbours import smallest


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 20),
    columns=st.integers(1, 300),
    values=st.sampled_from([2, 5, 50, 10**6]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    data=st.data(),
)
def test_the_order_is_that_of_a_stable_sort_with_late_columns_last(
    rows: int, columns: int, values: int, dtype: torch.dtype, data: st.DataObject
) -> None:
    k, share = data.draw(st.integers(1, columns)), data.draw(st.sampled_from([None, 0.1, 0.9]))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    # With few values there are many ties, also at rank k; zeros of both signs are equal.
    distances = torch.randint(-values, values, (rows, columns), generator=generator).to(dtype) / 3
    distances[torch.rand(rows, columns, generator=generator) < 0.02] = torch.inf
    distances[torch.rand(rows, columns, generator=generator) < 0.02] = -0.0
    late = None if share is None else torch.rand(rows, columns, generator=generator) < share
    keys = [
        [(row[column].item(), late is not None and bool(late[number, column]), column) for column in range(columns)]
        for number, row in enumerate(distances)
    ]
    expected = [[column for *_, column in sorted(row)[:k]] for row in keys]
    assert smallest(distances.clone(), k, late).tolist() == expected
