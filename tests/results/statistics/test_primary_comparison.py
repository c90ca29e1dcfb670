"""The comparison of an experiment: what its file asks, which methods are complete, and what its values are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results.statistics.compare import ALPHA
from results.statistics.primary_comparison import (
    comparison_on,
    method_intervals,
    method_values,
    planned_score,
    primary_comparison,
    primary_score,
    resolution,
    score_of,
)

from results.answer.intervals import Interval, student_t_interval
from tests.support.sample_searches import searched

THREE = {
    "good": [[0.40, 0.42], [0.41, 0.41], [0.42, 0.40]],
    "near": [[0.40, 0.41], [0.42, 0.42], [0.40, 0.40]],
    "poor": [[0.20, 0.22], [0.21, 0.21], [0.22, 0.20]],
}


def test_the_data_are_means_of_searches():
    measured = searched(THREE)
    values = method_values(measured, primary_score(measured))
    assert values["good"].units == pytest.approx((0.41, 0.41, 0.41))
    assert values["near"].units == pytest.approx((0.405, 0.42, 0.40))
    assert (values["near"].runs, values["near"].missing, values["near"].searched) == (6, None, True)
    two = searched({key: own[:2] for key, own in THREE.items()}, searches=2)
    assert primary_comparison(two).values["near"].units == pytest.approx((0.405, 0.42))
    assert primary_comparison(measured).unit == "search"
    assert {pair.better for pair in primary_comparison(measured).pairs} == {"good", "near", None}


def test_a_file_asks_for_score_margin_and_comparisons():
    measured = searched(THREE, primary={"metric": "precision_at_1", "margin": 2.0, "compare": "poor"})
    result = primary_comparison(measured)
    assert [(pair.a, pair.b) for pair in result.pairs] == [("poor", "good"), ("poor", "near")]
    assert (result.margin, result.alpha) == (pytest.approx(0.02), ALPHA)
    assert result.values["good"].mean == 1.0


def test_further_scores_share_a_second_level():
    measured = searched(THREE)
    other = comparison_on(measured, score_of(measured, "precision_at_1", "separated"))
    assert other.alpha == pytest.approx(0.01)
    assert comparison_on(measured, score_of(measured, "map_at_r", "concatenated")).alpha == ALPHA


def test_a_file_cannot_compare_with_a_method_that_it_does_not_have():
    with pytest.raises(
        ValueError, match="compare: best_loss is no method of this experiment; add it, or use all, best, or one of"
    ):
        searched(THREE, primary={"compare": "best_loss"})


def test_a_method_with_missing_searches_is_interim_and_untested():
    measured = searched({**THREE, "half": [[0.6, 0.6], [0.6]]})
    result = primary_comparison(measured)
    assert result.interim
    assert result.values["half"].units == (0.6,)
    assert {pair.untested for pair in result.pairs if pair.b == "half"} == {"searches missing"}
    assert result.pair("good", "poor").better == "good"


def test_a_constant_trunk_is_compared_without_error_and_planned_methods_count():
    measured = searched({**THREE, "untrained": [[0.03]], "planned": []}, constant=["untrained"])
    result = primary_comparison(measured)
    assert result.pair("good", "untrained").better == "good"
    assert result.values["planned"].missing == "searches missing"
    assert "planned" not in result.methods


def test_without_a_search_the_runs_are_the_data():
    measured = searched({key: [np.ravel(own)] for key, own in THREE.items()}, searches=1, runs=6, trials=0)
    result = primary_comparison(measured)
    assert (result.unit, result.settings) == ("run", None)
    assert not any(own.searched for own in result.values.values())
    assert result.pair("good", "poor").better == "good"
    assert len(result.pair("good", "poor").of_a.units) == 6
    values = measured.values("map_at_r", "concatenated")
    runs = student_t_interval(np.ravel(THREE["near"]).tolist())
    assert method_intervals(measured, values)["near"] == runs
    single = searched({key: [np.ravel(own)] for key, own in THREE.items()}, searches=1, runs=6)
    assert primary_comparison(single).unit == "single search"
    assert all(own.searched for own in primary_comparison(single).values.values())
    assert method_intervals(single, values)["near"] == runs


def test_intervals_are_over_searches_for_every_value_of_a_run():
    measured = searched(THREE)
    intervals = method_intervals(measured, measured.values("map_at_r", "concatenated"))
    alone = np.std([0.405, 0.42, 0.40], ddof=1)
    assert intervals["near"].n == 3
    assert intervals["near"].half_width == pytest.approx(2.446911851 * alone * (1.175 / 3) ** 0.5)
    assert intervals["good"].half_width > 0, "searches that agree by chance borrow the others' deviation"
    one = searched({"good": [[0.40, 0.42]], "near": THREE["near"], "begun": [[0.3]]})
    intervals = method_intervals(one, one.values("map_at_r", "concatenated"))
    assert intervals["good"].half_width is None
    assert intervals["begun"] == Interval(0.3, None, 0)


def test_the_interval_of_equal_searches_is_that_of_rounding():
    measured = searched({"good": [[0.40]] * 3, "near": [[0.39]] * 3}, runs=1)
    intervals = method_intervals(measured, measured.values("map_at_r", "concatenated"), step=0.01)
    assert intervals["good"].half_width == pytest.approx(2.776445105 * 0.01 * (1.175 / 36) ** 0.5)


def test_the_smallest_step_of_a_score_is_that_of_one_neighbour():
    measured = searched(THREE)
    steps = [resolution(measured, metric, "concatenated") for metric in ("precision_at_1", "r_precision", "map_at_r")]
    assert steps[0] == pytest.approx(1 / 1498)
    neighbours = 1498 / 104 - 1
    assert steps[1:] == pytest.approx([steps[0] / neighbours, steps[0] / neighbours**2])
    assert resolution(measured, "precision_at_1", "separated") == steps[0] / 4


def test_a_plan_names_the_score_that_the_runs_will_have():
    experiment = searched(THREE).summary.experiment
    assert planned_score(experiment).embeddings == "concatenated"
    for changes in ({"folds": 1}, {"protocol": "standard"}):
        assert planned_score(experiment.model_copy(update=changes)).embeddings == "separated"


values_of_searches = st.lists(st.lists(st.floats(0, 0.25), min_size=2, max_size=2), max_size=3)
stores = st.dictionaries(st.sampled_from("abcdef"), values_of_searches, min_size=2).filter(
    lambda methods: any(methods.values())
)


@settings(max_examples=60, deadline=None)
@given(stores)
def test_of_a_half_finished_experiment_only_complete_methods_get_verdicts(methods):
    result = primary_comparison(searched(methods))
    complete = {key for key, searches in methods.items() if len(searches) == 3}
    assert result.interim == (len(complete) < len(methods))
    for pair in result.pairs:
        both = {pair.a, pair.b} <= complete
        assert (pair.untested == "searches missing") != both
        assert (pair.p is None) != both
        assert pair.p is None or pair.p > 0
    # The correction is that of the finished experiment.
    if len(complete) > 1 and result.tested:
        assert min(pair.p_better / pair.p for pair in result.pairs if pair.p) >= 1
