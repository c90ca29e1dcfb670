"""Honest selection and peeking choose among the same models."""

import pytest

from results.records.records import Scores, TestCurve, TestPoint
from results.statistics.peeking import honest_choice, peeked_choice
from tests.support.sample_records import some_result, some_spec


def curve(*scores: tuple[int, float, float]) -> TestCurve:
    points = (
        TestPoint(iteration=i, scores=Scores(map_at_r=m, precision_at_1=p, r_precision=0.0)) for i, m, p in scores
    )
    return TestCurve(fingerprint="f", points=tuple(points))


def result(best_iteration: int):
    return some_result(some_spec(), 0.5).model_copy(update={"best_iteration": best_iteration})


TESTED = curve((0, 0.9, 0.9), (100, 0.2, 0.5), (200, 0.3, 0.4), (300, 0.25, 0.6))


def test_validation_selection_takes_the_checkpoint_whatever_the_test_says():
    assert honest_choice(result(100), TESTED).scores.map_at_r == 0.2
    assert honest_choice(result(150), TESTED) is None


@pytest.mark.parametrize(("metric", "iteration"), [("map_at_r", 200), ("precision_at_1", 300)])
def test_the_oracle_takes_the_best_trained_model_by_its_metric(metric, iteration):
    assert peeked_choice(result(100), TESTED, metric).iteration == iteration


def test_the_untrained_model_is_a_choice_only_where_it_is_the_model():
    assert peeked_choice(result(0), TESTED).iteration == 0
    assert peeked_choice(result(0), curve()) is None
