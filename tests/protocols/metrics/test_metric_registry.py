"""Metrics by name, NMI among them; each against what computes it alone or in another library."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from protocols.metrics import metric_registry as registry
from protocols.metrics.clustering import nmi
from protocols.metrics.covering import covering_radius
from protocols.metrics.metric_registry import check_metric_names, measure
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.metrics.structure import class_concentration_variance, density, spectral_decay, uniformity

NAMES = (
    *("recall@1", "nmi", "recall@10", "map@1000", "spectral_decay", "density", "uniformity"),
    *("class_concentration_variance", "covering_radius"),
)


def _clusters(spread: float, classes: int = 12, per_class: int = 15, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)
    centres = torch.randn(classes, 16, generator=generator)[labels]
    embeddings = normalized(centres + spread * torch.randn(len(labels), 16, generator=generator))
    mixed = torch.randperm(len(labels), generator=generator)
    return embeddings[mixed], 7 * labels[mixed]


def _entropy(counts: list[int]) -> float:
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c)


def test_nmi_of_groups_far_apart_is_one() -> None:
    # As many starts as classes hit each group only by luck; two groups cannot be missed.
    embeddings, labels = _clusters(0.01, classes=2)
    assert nmi(embeddings, labels) == pytest.approx(1, abs=1e-12)


def test_nmi_of_an_imperfect_clustering_is_the_formulas() -> None:
    # Two groups on a line; one image of class 1 lies with class 0, so clusters of 4 and 2 against classes of 3 and 3.
    embeddings, labels = torch.tensor([[0.0], [0.1], [0.2], [0.1], [9.0], [9.1]]), torch.tensor([0, 0, 0, 1, 1, 1])
    mutual = _entropy([3, 3]) + _entropy([4, 2]) - _entropy([3, 1, 2])
    assert nmi(embeddings, labels) == pytest.approx(2 * mutual / (_entropy([3, 3]) + _entropy([4, 2])), abs=1e-9)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_nmi_is_near_that_of_scikit_learns_k_means(spread: float) -> None:
    embeddings, labels = _clusters(spread)
    theirs = [
        normalized_mutual_info_score(
            labels, KMeans(12, init="random", n_init=1, random_state=s).fit_predict(embeddings)
        )
        for s in range(10)
    ]
    assert min(theirs) - 0.05 <= nmi(embeddings, labels) <= max(theirs) + 0.05
    assert np.mean(theirs) < 0.99


def test_nmi_is_the_same_every_time_and_does_not_touch_random_numbers() -> None:
    embeddings, labels = _clusters(1.0)
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


def test_nmi_refuses_embeddings_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="not finite"):
        nmi(torch.full((3, 2), torch.nan), torch.arange(3))


def test_names_lead_to_the_metrics() -> None:
    embeddings, labels = _clusters(1.0)
    retrieved = retrieval_scores(embeddings, labels, recall_at=(1, 10), map_at=(1000,))
    measured = measure(NAMES, embeddings, labels, None)
    assert tuple(measured) == NAMES
    assert measured == {
        "recall@1": retrieved.recall_at[1],
        "recall@10": retrieved.recall_at[10],
        "map@1000": retrieved.map_at[1000],
        "nmi": nmi(embeddings, labels),
        "spectral_decay": spectral_decay(embeddings),
        "density": density(embeddings, labels),
        "uniformity": uniformity(embeddings),
        "class_concentration_variance": class_concentration_variance(embeddings, labels),
        "covering_radius": covering_radius(embeddings, labels),
    }
    assert len(set(measured.values())) == len(NAMES)
    assert all(type(value) is float and math.isfinite(value) for value in measured.values())
    assert measure((), embeddings, labels, None) == {}


def test_only_retrieval_tells_queries_from_the_gallery() -> None:
    embeddings, labels = _clusters(1.0)
    is_query = np.random.default_rng(0).random(len(labels)) < 0.4
    measured = measure(("nmi", "recall@2", "map@1000"), embeddings, labels, is_query)
    there = torch.from_numpy(is_query)
    expected = retrieval_scores(
        embeddings[there], labels[there], embeddings[~there], labels[~there], recall_at=(2,), map_at=(1000,)
    )
    assert measured["nmi"] == nmi(embeddings, labels)
    assert measured["recall@2"] == expected.recall_at[2]
    assert measured["map@1000"] == expected.map_at[1000]
    assert measured["map@1000"] != measure(("map@1000",), embeddings, labels, None)["map@1000"]


def test_neighbours_are_searched_once_and_only_for_retrieval(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def counting(*arguments: object, **keywords: object) -> object:
        searched.append(keywords)
        return retrieval_scores(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(registry, "retrieval_scores", counting)
    embeddings, labels = _clusters(1.0)
    measure(("density", "uniformity"), embeddings, labels, None)
    assert searched == []
    measure(NAMES, embeddings, labels, None)
    assert searched == [{"recall_at": (1, 10), "map_at": (1000,)}]


@pytest.mark.parametrize(
    "name", ["recall", "recall@", "recall@0", "recall@1.5", "Recall@1", "map@10", "nmi ", "", "rp"]
)
def test_unknown_names_are_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="is not known; known are recall@K") as caught:
        check_metric_names(("nmi", name))
    message = str(caught.value)
    assert repr(name) in message
    assert "\n" not in message
    for known in NAMES[3:]:
        assert known in message
    with pytest.raises(ValueError, match="is not known"):
        measure((name,), torch.eye(2), torch.zeros(2), None)


def test_a_name_given_twice_is_refused() -> None:
    check_metric_names(NAMES)
    with pytest.raises(ValueError, match="'nmi' is named twice"):
        check_metric_names(("nmi", "recall@1", "nmi"))
