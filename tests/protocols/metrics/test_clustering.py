"""NMI against its formula and against scikit-learn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.metrics.metric_registry import nmi
from tests.support.clusters import embeddings_in_clusters


def _entropy(counts: list[int]) -> float:
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c)


def test_nmi_of_an_imperfect_clustering_is_the_formulas() -> None:
    # Two groups on a line; one image of class 1 lies with class 0, so clusters of 4 and 2 against classes of 3 and 3.
    embeddings, labels = torch.tensor([[0.0], [0.1], [0.2], [0.1], [9.0], [9.1]]), torch.tensor([0, 0, 0, 1, 1, 1])
    mutual = _entropy([3, 3]) + _entropy([4, 2]) - _entropy([3, 1, 2])
    assert nmi(embeddings, labels) == pytest.approx(2 * mutual / (_entropy([3, 3]) + _entropy([4, 2])), abs=1e-9)


def test_nmi_is_the_same_every_time_and_does_not_touch_random_numbers() -> None:
    embeddings, labels = embeddings_in_clusters(1.0)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert len({nmi(embeddings, labels) for _ in range(3)}) == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 20), classes=st.integers(1, 20), side=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_nmi_of_any_input_is_between_none_and_all(n: int, classes: int, side: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randint(0, side, (n, 2), generator=generator).float()
    labels = torch.randint(0, classes, (n,), generator=generator)
    assert -1e-12 <= nmi(embeddings, labels) <= 1 + 1e-12


def test_a_group_of_equal_points_is_split_without_end() -> None:
    labels = torch.arange(5).repeat(8)
    assert nmi(torch.ones(40, 2), labels) == pytest.approx(0, abs=1e-12)
