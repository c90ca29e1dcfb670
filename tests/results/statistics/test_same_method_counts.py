"""A method against itself, on simulated searches whose truth is known."""

import numpy as np
import pytest

from results.records.records import ClassScores
from results.statistics.run_values import SearchKey
from tests.benchmarks import same_method_counts as same_method
from tests.benchmarks.same_method_counts import (
    COMPARISON,
    PAIRED_T_TEST,
    T_TEST,
    search_variance_interval,
    variance_components,
    wrong_calls,
)
from tests.support.sample_records import scores, some_run

SEARCH, RUN = 0.012, 0.004


def simulated(generator, searches=12, runs=5, of_search=SEARCH, of_run=RUN):
    return {
        SearchKey("d", 0, number): list(generator.normal(0.3 + generator.normal(0, of_search), of_run, runs))
        for number in range(searches)
    }


def components(runs, monkeypatch):
    monkeypatch.setattr(same_method, "_of_classes", lambda *_: 0.0)
    return variance_components(runs, [], "map_at_r", "concatenated")


def test_the_components_are_those_of_the_simulation(monkeypatch):
    generator = np.random.default_rng(0)
    found = [components(simulated(generator), monkeypatch) for _ in range(400)]
    search, run, _ = np.mean(found, axis=0)
    # 400 estimates with a relative error of about (2 / 11) ** 0.5 each.
    assert search == pytest.approx(SEARCH**2, rel=0.07)
    assert run == pytest.approx(RUN**2, rel=0.03)


def test_searches_that_find_the_same_have_no_variance_of_their_own(monkeypatch):
    generator = np.random.default_rng(1)
    found = [components(simulated(generator, of_search=0.0), monkeypatch).search for _ in range(200)]
    assert np.mean(found) < 0.2 * RUN**2
    assert min(found) == 0


@pytest.mark.long
@pytest.mark.parametrize("of_search", [0.0, 0.5 * RUN, SEARCH])
def test_the_interval_covers_the_variance_of_the_simulated_searches(of_search):
    generator = np.random.default_rng(7)
    intervals = [search_variance_interval(simulated(generator, of_search=of_search)) for _ in range(1000)]
    covered = np.mean([low <= of_search**2 <= high for low, high in intervals])
    # A share of 95 % among 1,000 has a standard error of 0.7 %. A variance of 0 cannot lie below an interval.
    assert covered > 0.93
    assert np.mean([low > of_search**2 for low, _ in intervals]) < 0.045
    assert of_search == 0 or covered < 0.975


def test_the_variance_over_classes_is_that_of_a_bootstrap():
    generator = np.random.default_rng(6)
    of_classes = tuple(scores(float(value)) for value in generator.uniform(0, 1, 40))
    queries = tuple(int(count) for count in generator.integers(0, 30, 40))
    record = some_run(class_scores=ClassScores(queries=queries, separated=of_classes, concatenated=of_classes))
    expected = bootstrap_variance(record)
    estimated = same_method._of_classes([record], "map_at_r", "concatenated")
    assert estimated == pytest.approx(expected, rel=0.1)


def bootstrap_variance(record):
    queries, of_runs = same_method.scores_by_class([record], "map_at_r", "concatenated")
    queries, values = queries[queries > 0], of_runs[0][queries > 0]
    drawn = np.random.default_rng(2).integers(0, len(queries), (20_000, len(queries)))
    means = (queries[drawn] * values[drawn]).sum(1) / queries[drawn].sum(1)
    return means.var() * len(queries) / (len(queries) - 1)


def mean_shares(searches, of_search):
    generator = np.random.default_rng(3)
    calls = [wrong_calls(simulated(generator, of_search=of_search), searches) for _ in range(25)]
    return {test: np.mean([call.shares[test] for call in calls]) for test in calls[0].shares}


def test_without_a_search_effect_all_tests_keep_their_level(monkeypatch):
    monkeypatch.setattr(same_method, "MOST_SPLITS", 100)
    for searches in (1, 3):
        shares = mean_shares(searches, 0.0)
        assert 0.02 < shares[T_TEST] < 0.09
        assert 0.02 < shares[PAIRED_T_TEST] < 0.09
        assert shares[COMPARISON] < 0.06


def test_a_search_effect_misleads_tests_over_runs_but_not_the_comparison_of_searches(monkeypatch):
    monkeypatch.setattr(same_method, "MOST_SPLITS", 100)
    one, three = mean_shares(1, SEARCH), mean_shares(3, SEARCH)
    assert min(one[T_TEST], one[PAIRED_T_TEST], three[T_TEST], three[PAIRED_T_TEST]) > 0.4
    assert max(one[COMPARISON], three[COMPARISON]) < 0.06


def test_all_splits_are_tried_where_they_are_few():
    runs = simulated(np.random.default_rng(4), searches=5)
    assert wrong_calls(runs, 1).splits == 10
    assert wrong_calls(runs, 2).splits == 15
    with pytest.raises(ValueError, match="two sides with 3 searches each need 6 searches, and there are 5"):
        wrong_calls(runs, 3)


def test_a_method_with_too_little_is_refused(monkeypatch):
    runs = simulated(np.random.default_rng(5), searches=2)
    with pytest.raises(ValueError, match="equally many runs"):
        wrong_calls({**runs, SearchKey("d", 0, 9): [0.3]}, 1)
