"""The comparison of methods equals the worked-out cases of its design, and keeps what must not change."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from results.statistics.compare import compare_at_looks, compare_methods, mean_half_widths, power_words
from results.statistics.comparison import ComparedPair, MethodValues, place_words
from results.statistics.deviations import SearchDeviation
from results.statistics.pair_tests import adjusted as adjusted_of
from results.statistics.pair_tests import adjusted_in_one_step, least_factor
from results.statistics.primary_comparison import primary_comparison
from scipy import stats

from results.spec.search_settings import LOOKS
from results.store.experiment_results import MeasuredExperiment


def of(*units):
    return MethodValues(tuple(map(float, units)), len(units))


def with_moments(mean, variance, count):
    steps = np.arange(count) - (count - 1) / 2
    return of(*(mean + math.sqrt(variance) * steps / steps.std(ddof=1)))


def table(count, **moments):
    return {name: with_moments(mean, variance, count) for name, (mean, variance) in moments.items()}


def adjusted(values, compare="all", **settings):
    return [pair.p_better for pair in compare_methods(values, compare=compare, margin=0.5, **settings).pairs]


THREE = {"A": of(30.0, 30.6, 30.3), "B": of(29.1, 29.5, 29.0), "C": of(27.9, 28.4, 28.6)}
SIX = table(3, **{name: (mean, 0.09) for name, mean in zip("ABCDEF", (40, 38.8, 38.7, 38.6, 38.5, 38.4), strict=True)})
FOUR = table(3, A=(40, 0.3), B=(37.6, 0.2), C=(37.5, 0.25), D=(37.4, 0.15))
ONE_APART = {"A": of(60, 50, 55), "B": of(48.0, 48.2, 48.1), "C": of(47.0, 47.4, 47.2)}


@pytest.mark.parametrize(
    ("values", "compare", "expected"),
    [
        (THREE, "all", [0.019040, 0.002125, 0.062346]),
        (THREE, "best", [0.019040, 0.002125]),
        (THREE, "C", [0.001417, 0.031173]),
        ({"A": of(50.0, 50.4), "B": of(48.0, 48.2)}, "all", [0.032203]),
        (ONE_APART, "all", [0.297051, 0.297051, 1.0]),
        (table(5, A=(30, 0.04), B=(29, 0.09), C=(28, 0.02)), "all", [0.000209, 0.0, 0.000209]),
        (FOUR, "best", [0.002940] * 3),
        (FOUR, "all", [0.004377, 0.004377, 0.003497, 1, 1, 1]),
        (SIX, "best", [0.004683, 0.003929, 0.002101, 0.001432, 0.001195]),
        (SIX, "all", [0.010303, 0.005894, 0.003414, 0.002005, 0.001195, *[1] * 10]),
    ],
)
def test_adjusted_p_values_are_those_of_the_design(values, compare, expected):
    assert adjusted(values, compare) == pytest.approx(expected, abs=1e-6)


def test_the_parts_of_a_pair_are_those_of_the_design():
    pairs = compare_methods(THREE, margin=0.5).pairs
    assert [pair.p for pair in pairs] == pytest.approx([0.007140, 0.000531, 0.023380], abs=1e-6)
    assert [pair.degrees for pair in pairs] == [6, 6, 6]
    assert [pair.direction for pair in pairs] == ["a better", "a better", "cannot tell"]
    errors = [pair.half_width / 2.446911851 for pair in pairs]  # t(0.975, 6)
    assert errors == pytest.approx([0.275177, 0.297956, 0.297956], abs=1e-6)


def test_no_p_value_is_zero_where_nothing_varies():
    assert adjusted(table(2, A=(100, 0), B=(100, 0), C=(99, 0)), resolution=1.0) == pytest.approx(
        [1, 0.306179, 0.306179], abs=1e-6
    )
    exact = compare_methods(table(2, A=(100, 0), B=(99, 0)))
    assert 0 < exact.pairs[0].p < 1e-9
    assert (exact.margin, exact.alpha) == (0.005, 0.05)


def error_of(pair):
    return pair.half_width / stats.t.ppf(0.975, pair.degrees)


def test_no_error_is_smaller_than_that_of_rounding():
    rounding = 0.6**2 / 12
    constant = MethodValues((99.0,), 1, searched=False, constant=True)
    values = {"A": of(100, 100), "constant": constant, "given": MethodValues((99.0, 99.0), 2, searched=False)}
    pair = compare_methods(values, resolution=0.6).pair("A", "constant")
    assert error_of(pair) == pytest.approx((1.7 * rounding / 2 + rounding) ** 0.5)
    single = compare_methods(values, "single search", resolution=0.6, assumed=ASSUMED)
    search = (2 * ASSUMED.deviation) ** 2
    expected = [search + 1.5 * rounding, search + rounding, 1.5 * rounding]
    assert [error_of(pair) ** 2 for pair in single.pairs] == pytest.approx(expected)


def test_equal_methods_are_within_the_margin_as_far_as_the_design_says():
    far = compare_methods(table(3, A=(40, 0.1), B=(40, 0.2), C=(40, 0.1), D=(40, 0.2)), margin=0.5)
    assert {(pair.p_better, pair.p_equal, pair.size) for pair in far.pairs} == {(1.0, 1.0, "cannot tell")}
    near = compare_methods(table(5, A=(40, 0.01), B=(40.05, 0.02), C=(40.1, 0.015)), margin=0.5)
    assert [pair.p_better for pair in near.pairs] == pytest.approx([1, 0.921415, 1], abs=1e-6)
    assert [pair.p_equal for pair in near.pairs] == pytest.approx([0.001197] * 3, abs=1e-6)
    assert {(pair.direction, pair.size) for pair in near.pairs} == {("cannot tell", "within")}


def test_degrees_have_a_bound_in_large_tables():
    large = compare_methods({str(i): with_moments(40 - 0.1 * i, 0.2, 3) for i in range(31)}, margin=0.5)
    assert large.pair("0", "30").degrees == 40
    assert large.pair("0", "30").p_better == pytest.approx(1.8376e-06, rel=1e-4)
    assert large.pair("0", "1").p_better == 1


ASSUMED = SearchDeviation(0.27, 11)


def test_with_one_search_the_deviation_is_assumed():
    values = table(5, A=(30, 0.04), B=(28, 0.04), C=(27, 0.04))
    result = compare_methods(values, "single search", margin=0.5, assumed=ASSUMED)
    assert [pair.p_better for pair in result.pairs] == pytest.approx([0.097980, 0.009379, 0.886211], abs=1e-6)
    assert {round(pair.degrees, 4) for pair in result.pairs} == {11.5998}
    assert [pair.direction for pair in result.pairs] == ["cannot tell", "a better", "cannot tell"]
    # The settings found differ clearly, which says nothing about the methods.
    assert {pair.direction for pair in result.settings.pairs} == {"a better"}
    assert result.settings.unit == "run"


def test_with_one_search_and_no_record_nothing_is_said_about_methods():
    untrained = MethodValues((3.4,), 1, searched=False, constant=True)
    result = compare_methods({**THREE, "untrained": untrained}, "single search", margin=0.5)
    assert {pair.untested for pair in result.pairs} == {"search not known"}
    assert {pair.p for pair in result.pairs} == {None}
    assert result.rank_intervals == {}
    assert result.settings.tested == 6
    given = {**THREE, "untrained": untrained, "given": MethodValues((3.3, 3.2), 2, searched=False)}
    assert [pair.b for pair in compare_methods(given, "single search").pairs if pair.p is not None] == ["given"]


PILOT = {
    "proxy_anchor": of(40.17, 38.33, 38.05),
    "normalized_softmax": of(39.13, 32.19, 34.77),
    "contrastive": of(29.26, 28.01, 8.13),
    "untrained": MethodValues((3.41,), 1, searched=False, constant=True),
}


def test_one_failed_search_does_not_hide_what_the_others_show():
    result = compare_methods(PILOT, margin=0.5)
    expected = {
        ("proxy_anchor", "untrained"): 0.0017,
        ("normalized_softmax", "untrained"): 0.0026,
        ("contrastive", "untrained"): 0.2552,
        ("proxy_anchor", "contrastive"): 0.3869,
    }
    for names, p in expected.items():
        assert result.pair(*names).p_better == pytest.approx(p, rel=0.03)
    assert {(pair.a, pair.b) for pair in result.pairs if pair.better} == {
        ("proxy_anchor", "untrained"),
        ("normalized_softmax", "untrained"),
    }


@pytest.mark.parametrize(
    ("searches", "others", "failed"),
    [
        ((0.30, 0.29, 0.26), (0.40, 0.402, 0.398), (0.26,)),  # 3 points are more than 5 deviations of 0.2 points.
        ((0.30, 0.29, 0.275), (0.40, 0.402, 0.398), ()),  # 1.5 points below the median is too little.
        ((0.30, 0.29, 0.245), (0.40, 0.41, 0.39), ()),  # 4.5 points are less than 5 deviations of 1 point.
        ((0.30, 0.29, 0.235), (0.40, 0.41, 0.39), (0.235,)),
        ((0.30, 0.29, 0.26), (0.50, 0.50, 0.50), ()),  # A deviation of 0 says nothing.
        ((0.30, 0.14), (0.40, 0.41, 0.39), (0.14,)),  # Less than half of the best.
        ((0.50, 0.25), (0.40, 0.41, 0.39), ()),  # Half of the best is not less than half.
        ((0.30, 0.24), (0.40, 0.402, 0.398), ()),  # Two searches have no median of their own.
        ((0.30, 0.29, 0.26), (0.40, 0.41), ()),  # The deviation of two searches has one degree of freedom.
    ],
)
def test_a_search_failed_if_it_lies_far_below_its_methods_others(searches, others, failed):
    values = {"a": of(*searches), "b": of(*others), "c": MethodValues((0.1, 0.01), 2, searched=False)}
    assert compare_methods(values).failed == ({"a": failed} if failed else {})
    assert compare_methods(values, "run").failed == {}


def test_searches_of_the_kept_records_that_failed_are_found():
    found = {
        name: primary_comparison(MeasuredExperiment.kept(f"search_variance_{name}")).failed
        for name in ("birds_subset", "glyphs", "handwriting")
    }
    shown = {name: {key: [round(100 * one, 1) for one in own] for key, own in of.items()} for name, of in found.items()}
    assert shown == {"birds_subset": {"triplet": [24.9]}, "glyphs": {}, "handwriting": {"contrastive": [14.5]}}


def test_three_answers_of_a_pair_stand_apart():
    pair = compare_methods(table(5, A=(30.15, 0.001), B=(30, 0.001)), margin=0.5).pairs[0]
    assert (pair.direction, pair.size, pair.claimed_size(1.5), pair.claimed_size(0.15)) == (
        *("a better", "within", "excluded", "compatible"),
    )
    assert ComparedPair("a", "b", of(1), of(0), half_width=0.5).claimed_size(1.5) == "compatible"
    turned = compare_methods(table(5, B=(30, 0.001), A=(30.15, 0.001)), margin=0.5).pair("A", "B")
    assert (turned.a, turned.better, turned.direction) == ("A", "A", "a better")
    assert turned.difference == pytest.approx(pair.difference)


def test_methods_that_are_not_complete_get_no_verdict_but_count_in_the_correction():
    half = replace(of(20.0, 20.1), missing="searches missing")
    result = compare_methods({**THREE, "D": half}, margin=0.5)
    assert result.interim
    assert {pair.untested for pair in result.pairs if "D" in (pair.a, pair.b)} == {"searches missing"}
    assert {(pair.half_width, pair.claimed_size(1)) for pair in result.pairs if pair.untested} == {(None, None)}
    alone = compare_methods(THREE, margin=0.5)
    for pair in alone.pairs:
        assert result.pair(pair.a, pair.b).p == pair.p
        assert result.pair(pair.a, pair.b).p_better >= pair.p_better
    # A planned method without any search counts too.
    absent = compare_methods({**THREE, "D": MethodValues((), 0, missing="searches missing")}, margin=0.5)
    assert absent.pair("A", "B").p_better == result.pair("A", "B").p_better
    assert "D" not in absent.methods


def test_a_score_that_is_not_a_number_neither_leads_nor_is_tested():
    result = compare_methods({**THREE, "D": of(math.nan, 60, 60)}, margin=0.5)
    assert result.highest == "A"
    assert result.best_first[-1] == "D"
    assert {pair.untested for pair in result.pairs if "D" in (pair.a, pair.b)} == {"runs missing"}
    assert compare_methods({**THREE, "D": of(math.nan, 60, 60)}, compare="best").reference == "A"


def test_a_single_run_is_not_tested():
    result = compare_methods({"A": of(30), "B": of(29)}, "run")
    assert result.pairs[0].untested == "single runs"


def test_a_name_that_is_no_method_is_refused():
    with pytest.raises(ValueError, match="compare 'D': use all, best, or one of the methods A, B, C"):
        compare_methods(THREE, compare="D")


def test_the_comparisons_that_were_asked_for_are_the_only_ones():
    assert [(p.a, p.b) for p in compare_methods(THREE).pairs] == list(combinations("ABC", 2))
    best = compare_methods({"C": THREE["C"], "A": THREE["A"], "B": THREE["B"]}, compare="best")
    assert [(p.a, p.b) for p in best.pairs] == [("A", "B"), ("A", "C")]
    assert best.pair("C", "B") is None
    assert best.reference == "A"
    named = compare_methods(THREE, compare="B")
    assert [(p.a, p.b) for p in named.pairs] == [("B", "A"), ("B", "C")]


EIGHT = np.random.default_rng(3).standard_normal((3, 8)) * 0.004 + np.array([[0.30], [0.29], [0.285]])


def until(searches, **settings):
    units = dict(zip("abc", EIGHT[:, :searches].tolist(), strict=True))
    return compare_at_looks({name: MethodValues(tuple(own), searches) for name, own in units.items()}, **settings)


def test_each_planned_look_has_its_share_of_the_level_and_claims_stay():
    found = {}
    for look in LOOKS:
        result = until(look)
        plain = compare_methods(
            {name: of(*own) for name, own in zip("abc", EIGHT[:, :look], strict=True)}, alpha=0.05 * look / sum(LOOKS)
        )
        assert result.look_level == plain.alpha
        for pair, alone in zip(result.pairs, plain.pairs, strict=True):
            at_once = min(1, alone.p_better * sum(LOOKS) / look)
            found[pair.a, pair.b] = min(found.get((pair.a, pair.b), 1), at_once)
            assert pair.p_better == pytest.approx(found[pair.a, pair.b])
            assert (pair.better is not None) == (pair.p_better < 0.05)
    assert until(3).pair("a", "c").better is None
    assert until(8).pair("a", "c").better == "a"
    assert not until(8).decided, "b and c are neither different nor equal"


def test_a_claim_of_an_early_look_stays_when_later_searches_disagree():
    early = {"a": (0.3, 0.301, 0.302, 0.1), "b": (0.2, 0.201, 0.202, 0.2)}
    values = {name: MethodValues(units, 8) for name, units in early.items()}
    assert (values["a"].units, compare_at_looks(values, looks=(3, 8)).pair("a", "b").of_a.runs) == (early["a"], 6)
    assert compare_methods(values).pair("a", "b").better is None
    assert compare_at_looks(values).pair("a", "b").better == "a"
    assert compare_at_looks(values).decided
    started = {**values, "a": MethodValues(early["a"][:2], 2, missing="searches missing")}
    assert (compare_at_looks(started).tested, compare_at_looks(started).decided) == (0, False)


def test_ranks_follow_from_the_claims():
    values = table(3, D=(30, 0.04), A=(40, 0.04), B=(39.6, 0.04), C=(39.2, 0.04))
    ranks = compare_methods(values, margin=0.5).rank_intervals
    assert ranks == {"A": (1, 2), "B": (1, 3), "C": (2, 3), "D": (4, 4)}
    assert (place_words(ranks["B"]), place_words(ranks["D"])) == ("1 to 3", "4")
    assert compare_methods(values, margin=0.5, compare="best").rank_intervals == {}


def test_an_interval_of_a_mean_is_no_narrower_than_the_pool_says():
    widths = mean_half_widths(THREE)
    assert widths["A"] == widths["B"] == pytest.approx(2.446911851 * math.sqrt(0.113583 / 3), rel=1e-5)
    assert widths["C"] > widths["A"]


means = st.floats(0, 100).map(lambda x: round(x, 2))
tables_of_searches = st.integers(2, 5).flatmap(
    lambda count: st.lists(st.lists(means, min_size=count, max_size=count), min_size=2, max_size=6)
)


@given(tables_of_searches, st.sampled_from(["all", "best", "m1"]), st.sampled_from([0.5, 5.0, 20.0]))
def test_claims_are_in_order_and_follow_the_means(rows, compare, margin):
    values = {f"m{number}": of(*row) for number, row in enumerate(rows)}
    result = compare_methods(values, compare=compare, margin=margin, resolution=0.01)
    for pair in result.pairs:
        assert pair.p <= pair.p_better <= pair.p_beyond
        assert pair.better is None or pair.difference * (1 if pair.better == pair.a else -1) > 0
        assert pair.size != "beyond" or pair.better
        assert pair.size != "within" or abs(pair.difference) < margin
    assert power_words(compare) == ("about 70 %" if compare == "best" else "80 %")
    assert result.highest == max(values, key=lambda name: values[name].mean)
    numbers = {key: [getattr(one, key) for one in result.pairs] for key in ("p", "p_better", "p_beyond", "p_equal")}
    ts = [stats.t(pair.degrees) for pair in result.pairs]
    away = [t.sf((abs(one.difference) - margin) / error_of(one)) for t, one in zip(ts, result.pairs, strict=True)]
    assert numbers["p"] == pytest.approx(
        [2 * t.sf(abs(one.difference) / error_of(one)) for t, one in zip(ts, result.pairs, strict=True)]
    )
    asked = compare, len(rows)
    better, beyond = (adjusted_of(np.array(p), *asked) / 0.75 for p in (numbers["p"], away))
    equal = (adjusted_in_one_step if compare == "best" else adjusted_of)(1 - np.array(away), *asked) / 0.25
    assert numbers["p_better"] == pytest.approx(np.minimum(better, 1))
    assert numbers["p_beyond"] == pytest.approx(np.minimum(np.maximum(better, beyond), 1))
    assert numbers["p_equal"] == pytest.approx(np.minimum(equal, 1), abs=1e-12)
    pairs = len(rows) * (len(rows) - 1) / 2
    level = 0.75 * 0.05 / {"all": pairs, "best": least_factor(len(rows)), "m1": len(rows) - 1}[compare]
    for t, pair in zip(ts, result.pairs, strict=True):
        assert pair.smallest == pytest.approx((t.ppf(1 - level / 2) + t.ppf(0.8)) * error_of(pair))


@given(tables_of_searches, st.permutations(range(6)))
def test_the_order_of_the_methods_changes_nothing(rows, order):
    values = {f"m{number}": of(*row) for number, row in enumerate(rows)}
    turned = {name: values[name] for name in (f"m{number}" for number in order) if name in values}
    one, other = compare_methods(values, resolution=0.01), compare_methods(turned, resolution=0.01)
    for pair in one.pairs:
        assert other.pair(pair.a, pair.b).p_better == pytest.approx(pair.p_better)


def test_a_method_without_a_search_adds_only_the_error_of_its_runs():
    runs = MethodValues((3.21, 3.41, 3.61), 3, searched=False)
    alike = compare_methods({**PILOT, "untrained": runs}, margin=0.5)
    for name in ("proxy_anchor", "normalized_softmax"):
        exact = compare_methods(PILOT, margin=0.5).pair(name, "untrained")
        assert alike.pair(name, "untrained").p_better == pytest.approx(exact.p_better, rel=0.02)
        assert alike.pair(name, "untrained").degrees == pytest.approx(6, abs=0.1)
    assert alike.pair("proxy_anchor", "contrastive") == compare_methods(PILOT, margin=0.5).pair(
        "proxy_anchor", "contrastive"
    )
