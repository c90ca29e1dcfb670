"""One answer over several datasets: the cases of the specification, and what must hold for any numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.board_calibration import FILE, consistent, simulate
from results.answer.across_datasets import (
    error_of,
    over_datasets,
    pair_over_datasets,
    rank_correlation,
    same_order,
    side_of,
    surviving,
)
from results.answer.question import AskedMethod
from results.answer.values import MethodValues, Pair
from tests.support.answers import asked


def on_dataset(difference, error=None, degrees=10.0, untested=None):
    half_width = None if error is None else stats.t.ppf(0.975, degrees) * error
    values = [MethodValues((mean,), 3, AskedMethod("a", 1, 3)) for mean in (difference, 0.0)]
    return Pair("a", "b", *values, untested, half_width=half_width, degrees=degrees)


def pair(differences, errors):
    return pair_over_datasets([on_dataset(one, error) for one, error in zip(differences, errors, strict=True)])


def ends(middle, half_width):
    return pytest.approx((middle - half_width, middle + half_width), abs=1e-4)


def test_three_alike_datasets_are_consistent():
    found = pair([1.0, 1.6, 1.2], [0.2, 0.3, 0.25])
    assert found.mean.mean == pytest.approx(1.2667, abs=1e-4)
    assert ends(found.mean.mean, found.mean.half_width) == (0.5078, 2.0256)
    assert ends(found.mean.mean, found.mean.prediction) == (-0.2512, 2.7845)
    assert found.verdict == "consistent"


def test_rows_that_survive_the_correction_over_the_board_are_marked():
    def row(difference):
        return pair_over_datasets([replace(on_dataset(difference, 0.1), p=p) for p in (0.001, 0.009)])

    assert [one.p for one in (row(1.0), row(-1.0))] == [0.009] * 2
    assert surviving([row(1.0)] * 5) == (True,) * 5
    assert surviving([row(1.0)] * 6) == (False,) * 6, "6 x 0.009 > 0.05"
    unsure = pair_over_datasets([replace(on_dataset(0.1, 0.1), p=0.001)] * 2)
    assert surviving([unsure]) == (False,)
    consistent_ones = pair([1.0, 1.6, 1.2], [0.2, 0.3, 0.25])
    assert consistent_ones.mean.p == pytest.approx(
        2 * stats.t.sf(1.2667 / (0.7589 / stats.t.ppf(0.975, 2)), 2), abs=1e-4
    )


def test_intervals_on_opposite_sides_depend_on_the_dataset():
    found = pair([1.0, -1.6, 1.2], [0.2, 0.3, 0.25])
    assert (found.mean.mean, found.verdict) == (pytest.approx(0.2), "depends on the dataset")
    assert ends(found.mean.mean, found.mean.half_width) == (-3.6803, 4.0803)


def test_the_mean_is_no_surer_than_the_datasets():
    found = pair([0.50, 0.51, 0.52], [0.4, 0.4, 0.4])
    assert ends(0.51, found.mean.half_width) == (-0.4837, 1.5037)
    assert found.mean.prediction == found.mean.half_width, "nor is the prediction surer than the mean"
    wide = pair([0.2, 0.9, 0.5, 0.3, 0.7, 0.4], [0.4] * 6).mean
    assert wide.prediction == pytest.approx(1.96 * 0.4 * (1 + 1 / 6) ** 0.5)
    assert wide.half_width < wide.prediction
    assert found.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("differences", "errors", "verdict"),
    [
        ((1.61, 10.75), (0.33, 2.2), "hint: same on both"),
        ((2.03, -12.45), (0.34, 2.18), "depends on the dataset"),
        ((2.03, 1.0), (0.34, 2.18), "cannot tell"),
    ],
)
def test_two_datasets_show_directions_only(differences, errors, verdict):
    found = pair(differences, errors)
    assert (found.verdict, found.mean) == (verdict, None)


def test_all_intervals_are_not_enough_if_that_of_the_mean_holds_zero():
    found = pair([0.6, 0.6, 6.0], [0.1, 0.1, 0.1])
    assert {side_of(one) for one in found.on} == {1}
    assert found.verdict == "cannot tell"


def test_a_dataset_without_a_test_leaves_no_mean_but_can_not_hide_a_contradiction():
    untested = on_dataset(0.5, untested="searches missing")
    sure = [on_dataset(side * 1.0, 0.1) for side in (1, -1)]
    one = pair_over_datasets([sure[0], sure[0], untested])
    assert (one.mean, one.verdict) == (None, "cannot tell")
    assert pair_over_datasets([*sure, untested]).verdict == "depends on the dataset"


numbers = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=3, max_size=6)


@given(numbers, st.floats(0.01, 2))
def test_the_other_way_round_everything_is_the_other_way_round(differences, error):
    errors = [error] * len(differences)
    one, other = pair(differences, errors), pair([-one for one in differences], errors)
    assert one.verdict == other.verdict
    assert one.mean.mean == -other.mean.mean
    assert one.mean.half_width == pytest.approx(other.mean.half_width)


@given(numbers, st.floats(0.01, 2))
def test_pairs_and_simulated_tables_get_the_same_verdict(differences, error):
    errors = np.full(len(differences), error)
    found = pair(differences, errors)
    assert bool(consistent(np.array(differences), errors, 10)) == (found.verdict == "consistent")
    mean = over_datasets(np.array(differences), errors)
    assert (mean.mean, mean.half_width) == pytest.approx((found.mean.mean, found.mean.half_width))
    assert mean.half_width >= stats.t.ppf(0.975, len(errors) - 1) * error / len(errors) ** 0.5 * (1 - 1e-9)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=9))
def test_the_rank_correlation_is_spearmans(pairs):
    first, second = zip(*pairs, strict=True)
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert rank_correlation(first, second) == pytest.approx(stats.spearmanr(first, second)[0])
    else:
        assert np.isnan(rank_correlation(first, second))


def test_the_same_order_is_a_share_of_pairs():
    assert same_order({"one": [1, 2, 3], "other": [1, 3, 2]}) == pytest.approx(2 / 3)
    assert same_order({"one": [1, 2], "other": [1, 1]}) == 0.5


def test_the_error_of_a_difference_is_that_of_its_test():
    values = {"a": (0.500, 0.504), "b": (0.480, 0.482)}
    assert error_of(asked(values).pair("b", "a")) == pytest.approx(13e-6**0.5)
    missing = {**values, "c": (AskedMethod("c", 2, 1), (0.4,))}
    assert error_of(asked(missing).pair("a", "c")) is None


def test_the_recorded_simulation_keeps_what_the_docs_promise():
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    cells = recorded["cells"]
    assert {cell["datasets"] for cell in cells} == {3, 4, 5, 6}
    assert max(cell["wrong"] for cell in cells) <= 0.05
    assert all(0.945 <= cell["prediction covered"] <= 0.99 for cell in cells)
    assert all(cell["prediction of narrow rows covered"] >= 0.87 for cell in cells if cell["spread"] <= 1)
    assert all(cell["mean covered"] >= 0.94 for cell in cells)
    boards = {cell["spread"]: cell["wrong"] for cell in recorded["boards"]["cells"]}
    assert boards[4.0]["best"] > 0.5 > 0.3 > boards[4.0]["one named"], "best is no remedy"
    assert max(wrong["all pairs, surviving"] for wrong in boards.values()) <= 0.05


def test_a_small_simulation_is_near_the_recorded_one():
    (recorded,) = [
        cell
        for cell in json.loads(FILE.read_text(encoding="utf-8"))["cells"]
        if (cell["datasets"], cell["spread"], cell["ratio"]) == (3, 4.0, 1.0)
    ]
    again = simulate(99, 3, 4.0, 1.0, 2_000)
    for name in ("wrong", "mean covered", "prediction covered"):
        assert again[name] == pytest.approx(recorded[name], abs=0.02), name
