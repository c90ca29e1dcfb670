"""Metrics by name, each against what computes it alone; NMI against its formula."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.metrics.metric_registry import check_metric_names, measure, nmi
from protocols.metrics.retrieval import query_scores
from protocols.metrics.structure import class_concentration_variance, density, spectral_decay, uniformity
from tests.support.clusters import embeddings_in_clusters

NAMES = (
    *("recall@1", "nmi", "recall@10", "map@1000", "spectral_decay", "density", "uniformity"),
    "class_concentration_variance",
)


def test_names_lead_to_the_metrics():
    embeddings, labels = embeddings_in_clusters(1.0)
    retrieved = query_scores(embeddings, labels, recall_at=(1, 10), map_at=(1000,))
    measured = measure(NAMES, embeddings, labels, None)
    assert tuple(measured) == NAMES
    assert measured == {
        "recall@1": retrieved.recall_at[1].mean().item(),
        "recall@10": retrieved.recall_at[10].mean().item(),
        "map@1000": retrieved.map_at[1000].mean().item(),
        "nmi": nmi(embeddings, labels),
        "spectral_decay": spectral_decay(embeddings),
        "density": density(embeddings, labels),
        "uniformity": uniformity(embeddings),
        "class_concentration_variance": class_concentration_variance(embeddings, labels),
    }
    assert len(set(measured.values())) == len(NAMES)
    assert all(type(value) is float and math.isfinite(value) for value in measured.values())
    assert measure((), embeddings, labels, None) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure(NAMES, embeddings.clone().requires_grad_() * 1, labels, None) == measured


def test_only_retrieval_tells_queries_from_the_gallery():
    embeddings, labels = embeddings_in_clusters(1.0)
    is_query = np.random.default_rng(0).random(len(labels)) < 0.4
    measured = measure(("nmi", "recall@2", "map@1000"), embeddings, labels, is_query)
    expected = query_scores(embeddings, labels, is_query, recall_at=(2,), map_at=(1000,))
    assert measured["nmi"] == nmi(embeddings, labels)
    assert measured["recall@2"] == expected.recall_at[2].mean().item()
    assert measured["map@1000"] == expected.map_at[1000].mean().item()
    assert measured["map@1000"] != measure(("map@1000",), embeddings, labels, None)["map@1000"]


@pytest.mark.parametrize(
    "name", ["recall", "recall@", "recall@0", "recall@1.5", "Recall@1", "map@10", "nmi ", "", "rp"]
)
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match="is not known; known are recall@K") as caught:
        check_metric_names(("nmi", name))
    message = str(caught.value)
    assert repr(name) in message
    assert "\n" not in message
    for known in NAMES[3:]:
        assert known in message


def test_clusters_need_faiss(monkeypatch):
    monkeypatch.setattr("protocols.metrics.metric_registry.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="'nmi' clusters with faiss, which is not installed; run `pip install faiss"):
        check_metric_names(("nmi",))


def _entropy(counts):
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c)


def test_nmi_of_an_imperfect_clustering_is_the_formulas():
    # Two groups on a line; one image of class 1 lies with class 0, so clusters of 4 and 2 against classes of 3 and 3.
    embeddings, labels = torch.tensor([[0.0], [0.1], [0.2], [0.1], [9.0], [9.1]]), torch.tensor([0, 0, 0, 1, 1, 1])
    mutual = _entropy([3, 3]) + _entropy([4, 2]) - _entropy([3, 1, 2])
    assert nmi(embeddings, labels) == pytest.approx(2 * mutual / (_entropy([3, 3]) + _entropy([4, 2])), abs=1e-9)


def test_nmi_is_the_same_every_time_and_does_not_touch_random_numbers():
    embeddings, labels = embeddings_in_clusters(1.0)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert len({nmi(embeddings, labels) for _ in range(3)}) == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 20), classes=st.integers(1, 20), side=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_nmi_of_any_input_is_between_none_and_all(n, classes, side, seed):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randint(0, side, (n, 2), generator=generator).float()
    labels = torch.randint(0, classes, (n,), generator=generator)
    assert -1e-12 <= nmi(embeddings, labels) <= 1 + 1e-12


def test_a_group_of_equal_points_is_split_without_end():
    labels = torch.arange(5).repeat(8)
    assert nmi(torch.ones(40, 2), labels) == pytest.approx(0, abs=1e-12)
