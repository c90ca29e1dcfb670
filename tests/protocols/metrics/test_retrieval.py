"""Retrieval metrics against a query-by-query reference and pytorch-metric-learning (specification, section 8)."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.distances import LpDistance

from protocols.metrics import neighbours, retrieval
from protocols.metrics.neighbours import nearest_in_parts, smallest
from protocols.metrics.retrieval import QueryScores, is_collapsed, normalized, query_scores
from results.records.records import Scores

METRICS = ("precision_at_1", "r_precision", "map_at_r")
many = settings(deadline=None, max_examples=60)


def nearest(queries, references, k, *, exclude_self):
    depths = torch.full((len(queries),), k)
    return torch.cat([part for _, part in nearest_in_parts(queries, references, depths, exclude_self=exclude_self)])


def _naive(
    queries, labels, references = None, reference_labels = None,
    recall_at = (), ties = 0, map_at = ()
):  # fmt: skip
    """Definitions spelled out, one query after another; `ties` 1 puts correct ones first among equals, -1 last."""
    alone = references is None
    others = (queries if references is None else references).double().numpy()
    other_labels = (labels if reference_labels is None else reference_labels).numpy()
    totals = {name: [] for name in (*METRICS, *map(str, recall_at), *(f"mAP@{k}" for k in map_at))}
    for i, (query, label) in enumerate(zip(queries.double().numpy(), labels.numpy(), strict=True)):
        candidates = [j for j in range(len(others)) if not (alone and j == i)]
        relevant = sum(other_labels[j] == label for j in candidates)
        if relevant == 0:
            continue

        def key(j, query=query, label=label):
            return float(((others[j] - query) ** 2).sum()), -ties * int(other_labels[j] == label)

        right = [bool(other_labels[j] == label) for j in sorted(candidates, key=key)]
        totals["precision_at_1"].append(float(right[0]))
        totals["r_precision"].append(sum(right[:relevant]) / relevant)
        precisions = [sum(right[: k + 1]) / (k + 1) for k in range(relevant) if right[k]]
        totals["map_at_r"].append(sum(precisions) / relevant)
        for k in recall_at:
            totals[str(k)].append(float(any(right[:k])))
        for k in map_at:  # The authors' code divides by all images of the class, the query too.
            precisions = [sum(right[: i + 1]) / (i + 1) for i in range(min(k, len(right))) if right[i]]
            totals[f"mAP@{k}"].append(sum(precisions) / (relevant + alone))
    return {name: sum(values) / len(values) for name, values in totals.items()} if totals["map_at_r"] else {}


def _assert_close(scores, expected, tolerance):
    for name in METRICS:
        assert getattr(scores.mean(), name) == pytest.approx(expected[name], abs=tolerance), name
    for k, values in scores.recall_at.items():
        assert values.mean().item() == pytest.approx(expected[str(k)], abs=tolerance), f"recall@{k}"
    for k, values in scores.map_at.items():
        assert values.mean().item() == pytest.approx(expected[f"mAP@{k}"], abs=tolerance), f"mAP@{k}"


def _sample(n, dimensions, classes, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(n, dimensions, generator=generator, dtype=torch.float64).to(dtype)
    return embeddings, torch.randint(0, classes, (n,), generator=generator)


@many
@given(
    n=st.integers(2, 40),
    dimensions=st.integers(1, 6),
    classes=st.integers(1, 12),
    recall_at=st.lists(st.integers(1, 50), max_size=3, unique=True).map(tuple),
    seed=st.integers(0, 10**6),
)
def test_agrees_with_the_definitions(n, dimensions, classes, recall_at, seed):
    embeddings, labels = _sample(n, dimensions, classes, seed)
    asked = {"recall_at": recall_at, "map_at": recall_at}
    expected = _naive(embeddings, labels, **asked)
    assume(expected)
    scores = query_scores(embeddings, labels, **asked)
    _assert_close(scores, expected, 1e-12)
    counts = torch.bincount(labels)
    assert len(scores.labels) == int((counts[labels] > 1).sum())


@many
@given(
    n=st.integers(1, 20),
    m=st.integers(1, 30),
    dimensions=st.integers(1, 4),
    classes=st.integers(1, 8),
    seed=st.integers(0, 10**6),
)
def test_queries_against_a_gallery_agree_with_the_definitions(n, m, dimensions, classes, seed):
    queries, labels = _sample(n, dimensions, classes, seed)
    references, reference_labels = _sample(m, dimensions, classes, seed + 1)
    asked = {"recall_at": (1, 3), "map_at": (2, 40)}
    expected = _naive(queries, labels, references, reference_labels, **asked)
    assume(expected)
    both, of_both = torch.cat([queries, references]), torch.cat([labels, reference_labels])
    # Queries and gallery may stand in any order.
    order = torch.randperm(n + m, generator=torch.Generator().manual_seed(seed))
    scores = query_scores(both[order], of_both[order], (order < n).numpy(), **asked)
    _assert_close(scores, expected, 1e-12)


@many
@given(
    n=st.integers(2, 30),
    side=st.integers(1, 3),
    classes=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_of_equally_near_references_the_wrong_ones_count_first(n, side, classes, seed, dtype):
    # Points of a small grid: most coincide, and their distances are exact in both types.
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randint(1, side + 1, (n, 2), generator=generator).to(dtype)
    labels = torch.randint(0, classes, (n,), generator=generator)
    assume(not is_collapsed(embeddings))
    worst = _naive(embeddings, labels, recall_at=(2,), ties=-1)
    assume(worst)
    _assert_close(query_scores(embeddings, labels, recall_at=(2,)), worst, 1e-12)
    order = torch.randperm(n, generator=generator)
    moved = query_scores(embeddings[order], labels[order], recall_at=(2,))
    _assert_close(moved, worst, 1e-12)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-4, 1e37])
@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_collapsed_embeddings_score_nothing(scale, noise):
    """With two classes of equal size the order of the rows, or rounding, would give every second neighbour right."""
    labels = torch.arange(20) % 2
    rows = scale * (torch.ones(20, 4) + noise * torch.randn(20, 4, generator=torch.Generator().manual_seed(0)))
    scores = query_scores(normalized(rows), labels, recall_at=(5,))
    assert not scores.mlrc.any()
    assert scores.mean().model_dump() == dict.fromkeys(Scores.model_fields, 0.0)
    assert not scores.recall_at[5].any()
    assert len(query_scores(normalized(rows), torch.arange(1, 21) // 2).labels) == 18, "two classes have one image"
    apart = rows.clone()
    apart[::2, 0] += max(scale, 1.0) * 0.01
    for length in (1.0, 1e-3):  # In the ball, embeddings may be short.
        assert is_collapsed(length * normalized(rows))
        assert not is_collapsed(length * normalized(apart)) or scale > 1e36


def test_zeros_have_no_direction_so_they_find_nothing_and_come_last():
    """By their Euclidean distance of 1 they would be nearer than all with a cosine below one half."""
    angles = torch.tensor([0.0, 0.1, 2.0, 2.1])
    embeddings = torch.cat([torch.stack([angles.cos(), angles.sin()], 1), torch.zeros(1, 2)])
    scores = query_scores(embeddings, torch.tensor([0, 0, 1, 1, 1]))
    assert scores.mlrc[:, :2].tolist() == [[1, 1], [1, 1], [1, 0.5], [1, 0.5], [0, 0]]
    asked = query_scores(embeddings, torch.tensor([0, 0, 1, 1, 0]), np.array([True, False, True, False, True]))
    assert asked.mlrc[:, 0].tolist() == [1, 1, 0]


@pytest.mark.parametrize(("spread", "expected"), [(7.9, True), (8.1, False)])
def test_eight_units_of_rounding_are_no_distance(spread, expected):
    rows = torch.tensor([[1.0, 0.0], [1.0, (spread * 2**-52) ** 0.5]], dtype=torch.float64)
    assert is_collapsed(rows) == expected


def test_rows_are_normalised_one_by_one():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert torch.allclose(normalized(rows), torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]]))
    assert torch.allclose(normalized(rows, "ball"), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))


def test_single_images_are_no_queries_but_distract():
    embeddings = torch.tensor([[1.0], [2.0], [1.9], [6.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 2])
    scores = query_scores(embeddings, labels, recall_at=(1, 2))
    assert len(scores.labels) == 2
    assert not scores.mlrc.any()
    assert {k: values.tolist() for k, values in scores.recall_at.items()} == {1: [0.0, 0.0], 2: [1.0, 1.0]}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "classes"), [(60, 4), (300, 40), (50, 30)])
def test_agrees_with_pytorch_metric_learning(n, classes, seed):
    library = "pytorch_metric_learning.utils"
    evaluation = pytest.importorskip(f"{library}.accuracy_calculator", reason="of version 2.9; 3 has it elsewhere")
    inference = pytest.importorskip(f"{library}.inference")
    embeddings, labels = _sample(n, 16, classes, seed, torch.float32)
    embeddings = normalized(embeddings + 2 * torch.nn.functional.one_hot(labels % 16, 16))
    calculator = evaluation.AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"),
        k="max_bin_count",
        device=torch.device("cpu"),
        knn_func=inference.CustomKNN(LpDistance(normalize_embeddings=False)),
    )
    theirs = calculator.get_accuracy(embeddings, labels)
    ours = query_scores(embeddings, labels).mean()
    assert 0.02 < ours.map_at_r < 0.999
    assert ours.precision_at_1 == pytest.approx(theirs["precision_at_1"], abs=1e-6)
    assert ours.r_precision == pytest.approx(theirs["r_precision"], abs=1e-6)
    assert ours.map_at_r == pytest.approx(theirs["mean_average_precision_at_r"], abs=1e-6)


def _grid(n, seed):
    """Points of a small grid, at exact distances with many ties, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randint(0, 3, (n, 3), generator=generator).float()
    return points, torch.randint(0, 8, (n,), generator=generator)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 2, 12, 149])
def test_of_equally_near_references_the_first_comes_first(seed, exclude_self, dtype, k):
    # k of 1, 2 and 12 take the way over blocks of distances, 149 that over all.
    points = torch.cat([_grid(150, seed)[0], _sample(150, 3, 1, seed)[0].round().float()]).to(dtype)
    distances = torch.cdist(points.double(), points.double(), compute_mode="donot_use_mm_for_euclid_dist")
    if exclude_self:
        distances.fill_diagonal_(torch.inf)
    expected = distances.square().round().argsort(dim=1, stable=True)[:, :k]
    assert torch.equal(nearest(points, points, k, exclude_self=exclude_self), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d", [128, 2048])
@pytest.mark.parametrize("queries", [1, 5, 1402])
@pytest.mark.usefixtures("same_threads_afterwards")
def test_duplicates_are_equally_near_wherever_they_are(threads, d, queries):
    torch.set_num_threads(threads)
    half = _sample(701, d, 1, 2, torch.float32)[0]
    found = nearest(torch.cat([half, half])[:queries], torch.cat([half, half]), 60, exclude_self=False)
    pairs = found.unflatten(1, (30, 2))
    # A few points that are no twins are equally near by chance.
    assert (pairs[..., 0] + 701 == pairs[..., 1]).double().mean() > 0.999
    assert torch.equal(pairs[:, 0, 0], torch.arange(queries) % 701)


@pytest.mark.parametrize(("d", "n"), [(64, 151), (130, 105)])
@pytest.mark.usefixtures("same_threads_afterwards")
def test_duplicates_among_the_last_references_are_equally_near(d, n):
    """At these sizes, the last columns of a product with one row round otherwise unless it is filled up."""
    torch.set_num_threads(1)
    half = _sample(n, d, 1, 2, torch.float32)[0]
    for query in half.split(1):
        pairs = nearest(query, torch.cat([half, half]), 20, exclude_self=False).unflatten(1, (10, 2))
        assert torch.equal(pairs[..., 0] + n, pairs[..., 1])


@pytest.mark.parametrize("elements", [1, 41, 42, 83, 84, 41 * 41, 10**6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gallery", [False, True])
def test_parts_of_queries_do_not_matter(monkeypatch, elements, dtype, gallery):
    # Whole numbers, so that products with few rows round like those with many. Class 4 has one image.
    embeddings, labels = _sample(41, 4, 4, 0, dtype)
    labels[5] = 4
    embeddings = (16 * embeddings).round()
    embeddings += torch.arange(41, dtype=dtype)[:, None] * 8
    is_query = None
    if gallery:
        is_query = np.arange(62) < 41
        embeddings, labels = torch.cat([embeddings, embeddings[::2] + 3]), torch.cat([labels, labels[::2]])
    whole = query_scores(embeddings, labels, is_query, recall_at=(2,), map_at=(9,))
    monkeypatch.setattr(neighbours, "CHUNK_ELEMENTS", elements)
    monkeypatch.setattr(neighbours, "LEAST_ROWS", 1)
    monkeypatch.setattr(retrieval, "SCORED_ELEMENTS", elements)
    done = []
    parts = query_scores(
        embeddings, labels, is_query, recall_at=(2,), map_at=(9,), progress=lambda *now: done.append(now)
    )
    assert done[-1] == (len(parts.labels), len(parts.labels))
    assert torch.equal(parts.labels, whole.labels)
    assert torch.allclose(parts.mlrc, whole.mlrc, atol=1e-12, rtol=0)
    assert torch.equal(parts.recall_at[2], whole.recall_at[2])
    assert torch.allclose(parts.map_at[9], whole.map_at[9], atol=1e-12, rtol=0)
    assert 0.01 < float(whole.map_at[9].mean()) < 0.99


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("where", ["queries", "references"])
def test_embeddings_that_are_not_finite_are_refused(bad, where):
    embeddings, labels = _sample(20, 3, 2, 0)
    embeddings[4 if where == "queries" else 14, 1] = bad
    with pytest.raises(ValueError, match="not finite"):
        query_scores(embeddings, labels, np.arange(20) < 10)


def test_without_a_pair_a_gallery_or_enough_neighbours_there_is_no_score():
    for exclude_self in (False, True):
        with pytest.raises(ValueError, match="neighbours among 4 references"):
            nearest(torch.eye(4), torch.eye(4), 5 - exclude_self, exclude_self=exclude_self)
    for all_are in (True, False):
        with pytest.raises(ValueError, match="both queries and a gallery"):
            query_scores(torch.eye(4), torch.tensor([0, 0, 1, 1]), np.full(4, all_are))
    with pytest.raises(ValueError, match="no query has another image"):
        query_scores(torch.eye(4), torch.arange(4))
    with pytest.raises(ValueError, match="no query has another image"):
        query_scores(torch.eye(4), torch.tensor([0, 1, 5, 6]), np.arange(4) < 2)


def test_map_at_1000_of_a_perfect_ranking_counts_the_query_as_its_authors_do():
    embeddings, labels = torch.eye(3).repeat_interleave(5, dim=0), torch.arange(3).repeat_interleave(5)
    assert query_scores(embeddings, labels, map_at=(1000,)).map_at[1000].mean().item() == pytest.approx(0.8, abs=1e-12)
    both, of_both = embeddings.repeat(2, 1), labels.repeat(2)
    whole = query_scores(both, of_both, np.arange(30) < 15, map_at=(1000,)).map_at[1000].mean().item()
    assert whole == pytest.approx(1, abs=1e-12)


@many
@given(n=st.integers(2, 40), classes=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_scores_of_classes(n, classes, seed):
    embeddings, labels = _sample(n, 3, classes, seed)
    values, sizes = labels.unique(return_counts=True)
    assume((sizes > 1).any())
    counts, means = query_scores(embeddings, labels).of_classes(values)
    assert counts.tolist() == [int(size) if size > 1 else 0 for size in sizes]
    for value, size, mean in zip(values, sizes, means, strict=True):
        own = labels == value
        if size == 1:
            assert mean.tolist() == [0, 0, 0]
            continue
        # A class's queries alone, each against all other images.
        alone = [
            _naive(embeddings[i : i + 1], labels[i : i + 1], embeddings[rest], labels[rest])
            for i in own.nonzero().flatten().tolist()
            if len(rest := torch.tensor([j for j in range(n) if j != i]))
        ]
        for column, name in enumerate(METRICS):
            assert mean[column] == pytest.approx(sum(scores[name] for scores in alone) / len(alone), abs=1e-12)


def test_a_class_can_have_one_query_or_none():
    scores = QueryScores(torch.tensor([3]), torch.tensor([[1.0, 0.5, 0.25]], dtype=torch.float64), {}, {})
    counts, means = scores.of_classes(torch.tensor([2, 3]))
    assert (counts.tolist(), means.tolist()) == ([0, 1], [[0, 0, 0], [1, 0.5, 0.25]])


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 20),
    columns=st.integers(1, 300),
    values=st.sampled_from([2, 5, 50, 10**6]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    data=st.data(),
)
def test_the_order_is_that_of_a_stable_sort_with_late_columns_last(rows, columns, values, dtype, data):
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
