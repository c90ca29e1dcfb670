"""Tests of differences: against scipy's own tests, hand-calculated corrections, and simulation."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics.comparisons import best_of, compare, compare_all, holm

fractions = st.floats(0, 1).map(lambda x: round(x, 4))
run_lists = st.lists(fractions, min_size=2, max_size=12)


def by_run(values, start=0):
    return dict(enumerate(values, start))


def apart(values):
    """The same runs under keys that nothing else has."""
    return {("other", key): value for key, value in enumerate(values)}


@given(st.lists(st.tuples(fractions, fractions), min_size=2, max_size=12))
def test_matched_runs_are_scipys_paired_test(pairs):
    a, b = np.array(pairs).T
    found = compare(by_run(a), by_run(b))
    assert (found.test, found.n_a, found.n_b, found.left_out) == ("paired t", len(pairs), len(pairs), 0)
    assert found.difference == pytest.approx(float(np.mean(a - b)), abs=1e-12)
    if np.std(a - b) > 1e-9:
        expected = stats.ttest_rel(a, b)
        interval = expected.confidence_interval(0.95)
        assert (found.t, found.p, found.degrees) == pytest.approx((expected.statistic, expected.pvalue, expected.df))
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy's, where one method's runs are equal
@given(run_lists, run_lists)
def test_unmatched_runs_are_scipys_welch_test(a, b):
    found = compare(by_run(a), apart(b))
    assert (found.test, found.n_a, found.n_b) == ("Welch t", len(a), len(b))
    if np.std(a) + np.std(b) > 1e-9:
        expected = stats.ttest_ind(a, b, equal_var=False)
        interval = expected.confidence_interval(0.95)
        assert (found.t, found.p, found.degrees) == pytest.approx((expected.statistic, expected.pvalue, expected.df))
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@given(run_lists, run_lists, st.booleans())
def test_the_other_way_round_is_the_same_with_the_other_sign(a, b, matched):
    other = by_run(b) if matched else apart(b)
    one, two = compare(by_run(a), other), compare(other, by_run(a))
    assert (one.t, one.difference) == (-two.t, -two.difference)
    assert (one.p, one.half_width, one.degrees, one.left_out) == (two.p, two.half_width, two.degrees, two.left_out)
    if one.effect is not None:
        mirrored = (-two.effect.value, -two.effect.high, -two.effect.low)
        assert (one.effect.value, one.effect.low, one.effect.high) == pytest.approx(mirrored)


@given(run_lists, run_lists, st.booleans(), st.integers(-5, 5))
def test_a_shift_of_all_runs_changes_nothing(a, b, matched, shift):
    def shifted(values):
        return {key: value + shift for key, value in values.items()}

    other = by_run(b) if matched else apart(b)
    plain, moved = compare(by_run(a), other), compare(shifted(by_run(a)), shifted(other))
    assert moved.difference == pytest.approx(plain.difference, abs=1e-12)
    assert moved.p == pytest.approx(plain.p, rel=1e-6, abs=1e-9)


def test_runs_without_a_partner_are_left_out_of_a_paired_test():
    a, b = by_run([0.1, 0.4, 0.3, 0.9]), by_run([0.2, 0.2, 0.7], start=1)
    found = compare(a, b)
    assert (found.n_a, found.n_b, found.left_out) == (3, 3, 1)
    assert found.p == pytest.approx(stats.ttest_rel([0.4, 0.3, 0.9], [0.2, 0.2, 0.7]).pvalue)


def test_one_matched_pair_is_too_few_and_all_runs_are_taken():
    a, b = by_run([0.1, 0.4, 0.3]), by_run([0.2, 0.25, 0.7], start=2)
    found = compare(a, b)
    assert (found.test, found.n_a, found.n_b, found.left_out) == ("Welch t", 3, 3, 0)


@pytest.mark.parametrize("keys", [by_run, apart])
def test_a_comparison_made_alone_needs_no_correction(keys):
    alone = compare(by_run([0.50, 0.52, 0.51]), keys([0.10, 0.11, 0.13]))
    assert alone.p_holm == alone.p < 0.05
    assert alone.significant()
    assert compare_all({"a": by_run([0.50, 0.52, 0.51]), "b": keys([0.10, 0.11, 0.13])})[0].p_holm == alone.p


@pytest.mark.parametrize("other", [by_run([0.4]), by_run([0.4, 0.5], start=7)])
def test_a_single_run_is_no_test(other):
    found = compare(by_run([0.5]), other)
    assert found.test == "none"
    assert found.difference == pytest.approx(0.5 - np.mean(list(other.values())))
    assert (found.p, found.p_holm, found.half_width, found.low, found.effect) == (None,) * 5
    assert not found.significant()


@pytest.mark.parametrize("place", [by_run, apart])
@pytest.mark.parametrize("count", [3, 7])
def test_equal_runs_are_no_difference(place, count):
    found = compare(by_run([0.1] * 3), place([0.1] * count))
    assert (found.t, found.p, found.effect) == (0.0, 1.0, None)
    assert found.half_width == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("place", [by_run, apart])
def test_runs_that_never_vary_and_differ_leave_no_doubt(place):
    found = compare(by_run([0.3] * 3), place([0.1] * 3))
    assert (found.t, found.p, found.effect) == (math.inf, 0.0, None)
    assert found.difference == pytest.approx(0.2)
    # The same difference, in runs that do vary together.
    assert compare(by_run([0.3, 0.5, 0.7]), by_run([0.1, 0.3, 0.5])).p == 0.0


def test_a_method_without_runs_is_an_error():
    with pytest.raises(ValueError, match="triplet has no run to compare"):
        compare({}, by_run([0.1]), ("triplet", "margin"))


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # 3 x 0.01, max(2 x 0.03, 0.04), 2 x 0.03, 4 x 0.005
        ([0.5, 0.5], [1.0, 1.0]),
        ([0.2], [0.2]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closure_of_bonferroni(p_values):
    """A hypothesis falls at a level if every intersection that it is part of falls by Bonferroni."""
    indices = range(len(p_values))
    subsets = list(chain.from_iterable(combinations(indices, size) for size in range(1, len(p_values) + 1)))
    closed = [
        max(min(1.0, len(subset) * min(p_values[i] for i in subset)) for subset in subsets if index in subset)
        for index in indices
    ]
    assert holm(p_values) == pytest.approx(closed)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10))
def test_holm_keeps_the_order_and_only_raises(p_values):
    adjusted = holm(p_values)
    assert all(1 >= high >= low for low, high in zip(p_values, adjusted, strict=True))
    for (p, high), (q, other) in combinations(zip(p_values, adjusted, strict=True), 2):
        assert (high <= other) if p <= q else (high >= other)


METHODS = {
    "good": by_run([0.50, 0.52, 0.51, 0.53, 0.52]),
    "near": by_run([0.51, 0.50, 0.53, 0.50, 0.52]),
    "poor": by_run([0.30, 0.31, 0.32, 0.30, 0.33]),
    "single": by_run([0.49]),
}


def test_all_pairs_are_one_family():
    found = compare_all(METHODS)
    assert [(one.a, one.b) for one in found] == list(combinations(METHODS, 2))
    tested = [one for one in found if one.p is not None]
    assert {frozenset((one.a, one.b)) for one in tested} == {
        frozenset(pair) for pair in combinations(("good", "near", "poor"), 2)
    }
    assert [one.p_holm for one in tested] == pytest.approx(holm([one.p for one in tested]))
    assert [one.significant() for one in tested] == [False, True, True]
    assert compare_all({"alone": METHODS["good"]}) == []


def test_ties_with_the_best():
    best = best_of(METHODS)
    assert (best.name, best.tied, best.untested) == ("good", {"near"}, {"single"})
    alone = best_of({"alone": METHODS["single"]})
    assert (alone.name, alone.tied, alone.untested) == ("alone", set(), set())
    with pytest.raises(ValueError, match="no methods"):
        best_of({})


def test_the_correction_decides_ties_too():
    """p = 0.03 against the best is significant alone, not among three."""
    rng = np.random.default_rng(0)
    best = rng.normal(0.5, 0.01, 8)
    gap = rng.normal(0, 0.01, 8)
    gap = (gap - gap.mean()) / gap.std(ddof=1)
    shift = float(stats.t.isf(0.015, 7)) / math.sqrt(8)
    methods = {"best": by_run(best)}
    alike = {name: by_run(best - 0.01 * (shift + sign * gap)) for name, sign in (("a", 1), ("b", -1))}
    assert best_of({**methods, "a": alike["a"]}).tied == set()
    tied = best_of({**methods, **alike})
    assert (tied.name, tied.tied) == ("best", {"a", "b"})


@pytest.mark.parametrize("matched", [True, False])
def test_intervals_of_differences_cover_in_95_of_100_experiments(matched):
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(1500):
        common = rng.normal(0, 0.05, 10) if matched else np.zeros(10)
        a, b = common + rng.normal(0.32, 0.02, 10), common + rng.normal(0.30, 0.005, 10)
        found = compare(by_run(a), by_run(b) if matched else apart(b[:6]))
        covered += found.low <= 0.02 <= found.high
    # Three standard errors of a proportion of 0.95 over 1500 draws.
    assert abs(covered / 1500 - 0.95) < 0.017
