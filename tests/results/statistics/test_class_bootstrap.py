"""Intervals over classes: against scipy's own bootstrap, simulation, and what a weighted mean must satisfy."""

import numpy as np
import pytest
from scipy import stats

from results.records.records import ClassScores, Scores
from results.statistics.class_bootstrap import class_difference, class_interval
from tests.support.sample_records import some_run


def run_of(queries, values, run=0, method="triplet", concatenated=None):
    def scores(of):
        return tuple(Scores(precision_at_1=value, r_precision=value / 2, map_at_r=value / 4) for value in of)

    kept = ClassScores(
        queries=tuple(int(count) for count in queries),
        separated=scores(values),
        concatenated=scores(values if concatenated is None else concatenated),
    )
    return some_run(method, run, class_scores=kept)


@pytest.fixture(scope="module")
def world():
    """Classes of different sizes, the larger ones easier: skewed, as test sets are."""
    rng = np.random.default_rng(1)
    queries = rng.integers(2, 60, 80)
    a = np.clip(rng.beta(2, 4, 80) + queries / 200, 0, 1)
    return queries, a, np.clip(a + rng.normal(0.02, 0.05, 80), 0, 1)


def scipys(queries, values, resamples=20_000):
    found = stats.bootstrap(
        (queries * values, queries),
        lambda products, counts, axis: products.sum(axis=axis) / counts.sum(axis=axis),
        paired=True,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(99),
    )
    return found.confidence_interval, found.standard_error


def test_it_is_scipys_interval(world):
    queries, values, _ = world
    expected, error = scipys(queries, values)
    found = class_interval([run_of(queries, values)], "precision_at_1", resamples=20_000, seed=5)
    assert found.mean == pytest.approx(np.average(values, weights=queries))
    # Both ends are quantiles of 20,000 draws, each known to a few hundredths of the standard error.
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.08 * error)
    assert (found.classes, found.runs, found.resamples) == (80, 1, 20_000)


def test_the_paired_interval_is_scipys_of_the_differences(world):
    queries, a, b = world
    expected, error = scipys(queries, b - a)
    found = class_difference([run_of(queries, b)], [run_of(queries, a)], "precision_at_1", resamples=20_000)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.08 * error)
    assert found.mean == pytest.approx(np.average(b - a, weights=queries))


def test_pairing_takes_away_what_classes_have_in_common(world):
    queries, a, b = world
    alone = [class_interval([run_of(queries, values)], "precision_at_1") for values in (a, b)]
    paired = class_difference([run_of(queries, b)], [run_of(queries, a)], "precision_at_1")
    assert paired.high - paired.low < 0.7 * min(one.high - one.low for one in alone)


def test_runs_are_averaged_before(world):
    queries, a, b = world
    both = class_interval([run_of(queries, a, 0), run_of(queries, b, 1)], "map_at_r")
    mean = class_interval([run_of(queries, (a + b) / 2)], "map_at_r")
    assert (both.mean, both.low, both.high) == pytest.approx((mean.mean, mean.low, mean.high))
    assert both.runs == 2


def test_the_variant_is_the_one_that_is_asked_for(world):
    queries, a, b = world
    run = run_of(queries, a, concatenated=b)
    assert class_interval([run], "map_at_r", "separated").mean == pytest.approx(np.average(a, weights=queries) / 4)
    assert class_interval([run], "r_precision").mean == pytest.approx(np.average(b, weights=queries) / 2)


def test_equal_seeds_give_equal_intervals_and_others_nearly_so(world):
    queries, values, _ = world
    one, again, other = (class_interval([run_of(queries, values)], seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert one != other
    assert one.low == pytest.approx(other.low, abs=0.1 * (one.high - one.low))


def test_many_classes_are_drawn_in_parts_without_another_result(world, monkeypatch):
    queries, values, _ = world
    whole = class_interval([run_of(queries, values)], resamples=1000)
    monkeypatch.setattr("results.statistics.class_bootstrap._DRAWS_AT_ONCE", 80 * 7)
    assert class_interval([run_of(queries, values)], resamples=1000) == whole


def test_the_other_way_round_is_the_same_with_the_other_sign(world):
    queries, a, b = world
    one = class_difference([run_of(queries, a)], [run_of(queries, b)])
    two = class_difference([run_of(queries, b)], [run_of(queries, a)])
    assert (one.mean, one.low, one.high) == pytest.approx((-two.mean, -two.high, -two.low))


def test_a_class_without_queries_does_not_count():
    full = class_interval([run_of([3, 4, 5], [0.1, 0.5, 0.6])])
    assert class_interval([run_of([3, 4, 0, 5], [0.1, 0.5, 0.9, 0.6])]) == full
    assert full.classes == 3


def test_a_single_class_has_no_interval():
    found = class_interval([run_of([7], [0.5])], "precision_at_1")
    assert (found.mean, found.low, found.high) == (0.5, None, None)


def test_equal_classes_have_an_interval_of_no_width():
    found = class_interval([run_of([3, 9, 4], [0.3, 0.3, 0.3])], "precision_at_1")
    assert (found.low, found.high) == pytest.approx((0.3, 0.3))
    zero = class_difference([run_of([3, 9], [0.3, 0.4])], [run_of([3, 9], [0.3, 0.4])])
    assert (zero.mean, zero.low, zero.high) == (0.0, 0.0, 0.0)


@pytest.mark.long
def test_the_interval_covers_the_mean_of_all_classes():
    """Classes drawn from a world whose mean over images is known; BCa falls a little short with 60 classes."""
    rng = np.random.default_rng(12)
    sizes = rng.integers(2, 60, 200_000)
    world_values = np.clip(rng.beta(2, 4, 200_000) + sizes / 200, 0, 1)
    truth = np.average(world_values, weights=sizes)
    covered = 0
    for trial in range(800):
        chosen = rng.integers(200_000, size=60)
        run = run_of(sizes[chosen], world_values[chosen])
        found = class_interval([run], "precision_at_1", resamples=1000, seed=trial)
        covered += found.low <= truth <= found.high
    assert 0.92 < covered / 800 < 0.97


def test_what_cannot_be_resampled_is_said(world):
    queries, values, _ = world
    run = run_of(queries, values)
    with pytest.raises(ValueError, match="run 3 of triplet was kept without class scores"):
        class_interval([run, some_run(run=3)])
    with pytest.raises(ValueError, match="run 1 of triplet was tested on other classes"):
        class_interval([run, run_of(queries[:-1], values[:-1], 1)])
    with pytest.raises(ValueError, match="margin and triplet were tested on different classes"):
        class_difference([run_of(queries[::-1], values, method="margin")], [run])
    with pytest.raises(ValueError, match="not nmi"):
        class_interval([run], "nmi")
    with pytest.raises(ValueError, match="at least one run"):
        class_interval([])
