"""The comparison of methods equals an independent reference, and keeps what must not change."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from results.answer.caveats import of_budget
from results.answer.compare import compare as compare_all
from results.answer.deviations import SearchDeviation
from results.answer.pair_tests import adjusted as adjusted_of
from results.answer.pair_tests import adjusted_in_one_step, least_factor, power_words
from results.answer.question import AskedMethod
from results.answer.values import MethodValues, Pair
from results.findings.experiment import answer_of
from results.spec.search_settings import LOOKS
from results.store.experiment_results import MeasuredExperiment
from results.wording import place_words
from tests.support import answers, typical_search
from tests.support.answers import asked, constant
from tests.support.limits import unlimited


def with_moments(mean, variance, count):
    steps = np.arange(count) - (count - 1) / 2
    return mean + math.sqrt(variance) * steps / steps.std(ddof=1)


def table(count, **moments):
    return {name: with_moments(mean, variance, count) for name, (mean, variance) in moments.items()}


THREE = {"A": (30.0, 30.6, 30.3), "B": (29.1, 29.5, 29.0), "C": (27.9, 28.4, 28.6)}


def random_table(seed):
    """Tables of 2 to 12 methods with 3 to 8 searches, of which one in ten fails."""
    noise = np.random.default_rng(seed)
    count, methods = int(noise.integers(3, 9)), int(noise.integers(2, 13))
    values = noise.uniform(20, 40, (methods, 1)) ** noise.choice([0.3, 1]) + noise.standard_normal((methods, count))
    failing = noise.random(values.shape) < 0.1
    values = np.where(failing, values * noise.uniform(0.05, 0.9, values.shape), values)
    return {f"m{number}": own for number, own in enumerate(values)}


def test_means_intervals_claims_and_ranks_are_those_of_the_reference():
    failed, claims = 0, 0
    for values in map(random_table, range(200)):
        found, expected = asked(values), typical_search.compare(values)
        assert found.failed == expected["failed"]
        assert {key: own.mean for key, own in found.intervals.items()} == pytest.approx(expected["means"], rel=1e-9)
        widths = {key: own.half_width for key, own in found.intervals.items()}
        assert widths == pytest.approx(expected["half widths"], rel=1e-9)
        assert (found.claims, found.rank_intervals) == (expected["claims"], expected["ranks"])
        failed, claims = failed + len(found.failed), claims + len(found.claims)
    assert min(failed, claims) > 100


def test_searches_of_unlike_numbers_are_those_of_the_reference():
    values = {
        "a": (13.3, 14.1, 9.5),
        "b": (17.4, 17.2, 16.4, 17.0),
        "c": (15.1, 14.9),
        "d": (11.0, 11.2, 10.9, 2.0, 11.1),
    }
    found, expected = asked(values), typical_search.compare(values)
    assert (found.failed, found.claims) == (expected["failed"], expected["claims"])
    assert found.failed == {"d": (2.0,)}
    assert {key: own.half_width for key, own in found.intervals.items()} == pytest.approx(expected["half widths"])


@pytest.mark.parametrize(
    ("searches", "others", "failed"),
    [
        ((0.300, 0.2999, 0.26), (0.400, 0.4002, 0.3998), (0.26,)),  # Far below, by the deviations of all.
        ((0.30, 0.29, 0.275), (0.40, 0.41, 0.39), ()),
        ((0.30, 0.29, 0.14), (0.40, 0.41, 0.39), (0.14,)),  # Less than half of the best.
        ((0.50, 0.49, 0.25), (0.40, 0.60, 0.31, 0.5), ()),  # Half of the best is not less than half.
        ((0.30, 0.14), (0.40, 0.41, 0.39), ()),  # As many as would remain.
        ((0.30, 0.29, 0.10, 0.10), (0.40, 0.41, 0.39), ()),
        ((-0.30, -0.31, -0.32), (0.40, 0.41, 0.39), ()),  # Half of a negative best means nothing.
        ((0.30, 0.29, math.nan), (0.40, 0.41, 0.39), ()),
    ],
)
def test_a_search_failed_if_it_lies_far_below_its_methods_others(searches, others, failed):
    found = asked({"a": searches, "b": others, "c": answers.given(0.1, 0.1, 0.1)})
    assert found.failed == ({"a": failed} if failed else {})
    assert found.values["a"].count == len(searches)
    assert len(found.values["a"].units) == len(searches) - len(failed)
    assert found.question.titles["a"] == "a"


def test_methods_that_are_computed_do_not_decide_which_searches_of_others_failed():
    computed = {f"c{number}": (AskedMethod("c", 3, 1, trained=False), (30, 30.001, 30.002)) for number in range(5)}
    losses = {"a": (30, 29.5, 29), "b": (31, 30.2, 30.5)}
    found = asked({**losses, **computed})
    assert found.failed == {}
    assert found.pair("a", "b").half_width == asked(losses).pairs[0].half_width


def test_runs_of_one_search_are_never_set_aside():
    values = {"a": (30, 29, 3), "b": (40, 41, 39)}
    assert asked(values, unit="single search").failed == {}
    assert asked(values, unit="run").failed == {"a": (3,)}


@pytest.mark.parametrize(
    ("record", "failed", "claims"),
    [
        ("search_variance_birds_subset", {"triplet": [24.86]}, 14),
        ("search_variance_handwriting", {"contrastive": [14.49]}, 17),
        ("search_variance_glyphs", {}, 18),
        ("reality_check_birds_subset", {"triplet": [24.72], "proxy_nca": [24.90]}, 0),
        ("reality_check_handwriting", {"contrastive": [14.09]}, 5),
        ("reality_check_glyphs", {}, 37),
    ],
)
def test_one_failed_search_does_not_decide_about_other_methods(record, failed, claims):
    found = answer_of(unlimited(MeasuredExperiment.kept(record)))
    assert {key: [round(100 * one, 2) for one in own] for key, own in found.failed.items()} == failed
    assert len(found.claims) == claims
    # Scores in percent, since all rules are about ratios.
    values = {key: [100 * one for one in (*own.units, *own.failed)] for key, own in found.values.items()}
    assert len(typical_search.compare(values)["claims"]) == claims


def error_of(pair):
    return pair.half_width / stats.t.ppf(0.975, pair.degrees)


def test_no_p_value_is_zero_where_nothing_varies():
    exact = asked(table(2, A=(100, 0), B=(99, 0)))
    assert 0 < exact.pairs[0].p < 1e-9
    assert (exact.question.bound, exact.question.alpha) == (0.005, 0.05)
    rounding = 0.6**2 / 12
    values = {"A": (100, 100), "constant": constant(99.0), "given": answers.given(99.0, 99.0)}
    assert error_of(asked(values, step=0.6).pair("A", "constant")) == pytest.approx(
        (2 * rounding / 2 + rounding) ** 0.5
    )
    single = asked(values, unit="single search", step=0.6, assumed=ASSUMED)
    search = (2 * ASSUMED.deviation) ** 2
    expected = [search + 1.5 * rounding, search + rounding, 1.5 * rounding]
    assert [error_of(pair) ** 2 for pair in single.pairs] == pytest.approx(expected)


ASSUMED = SearchDeviation(0.27, 11)


def test_with_one_search_the_deviation_is_assumed():
    values = table(5, A=(30, 0.04), B=(28, 0.04), C=(27, 0.04))
    result = asked(values, unit="single search", margin=0.5, assumed=ASSUMED)
    assert [pair.p_better for pair in result.pairs] == pytest.approx([0.097980, 0.009379, 0.886211], abs=1e-6)
    assert {round(pair.degrees, 4) for pair in result.pairs} == {11.5998}
    assert [pair.direction for pair in result.pairs] == ["cannot tell", "a better", "cannot tell"]
    # The settings found differ clearly, which says nothing about the methods.
    assert {pair.direction for pair in result.settings} == {"a better"}


def test_with_one_search_and_no_record_nothing_is_said_about_methods():
    values = {**THREE, "untrained": constant(3.4)}
    result = asked(values, unit="single search", margin=0.5)
    assert {pair.untested for pair in result.pairs} == {"search not known"}
    assert {pair.p for pair in result.pairs} == {None}
    assert (result.rank_intervals, result.would_have_shown(result.pairs)) == ({}, None)
    assert sum(pair.p is not None for pair in result.settings) == 6
    more = asked({**values, "given": answers.given(3.3, 3.2)}, unit="single search")
    assert [pair.b for pair in more.pairs if pair.p is not None] == ["given"]


def test_three_answers_of_a_pair_stand_apart():
    pair = asked(table(5, A=(30.15, 0.001), B=(30, 0.001)), margin=0.5).pairs[0]
    assert (pair.direction, pair.size, pair.claimed_size(1.5), pair.claimed_size(0.15)) == (
        *("a better", "within", "excluded", "compatible"),
    )
    one, other = (MethodValues((mean,), 1, AskedMethod("a", 1, 1)) for mean in (1.0, 0.0))
    assert Pair("a", "b", one, other, half_width=0.5).claimed_size(1.5) == "compatible"
    held_up = replace(other, planned=replace(other.planned, open_ends=True))
    assert Pair("a", "b", one, held_up, half_width=0.5).claimed_size(1.5) is None
    turned = asked(table(5, B=(30, 0.001), A=(30.15, 0.001)), margin=0.5).pair("A", "B")
    assert (turned.a, turned.better, turned.direction) == ("A", "A", "a better")
    assert turned.difference == pytest.approx(pair.difference)


def test_methods_that_are_not_complete_get_no_verdict_but_count_in_the_correction():
    half = (AskedMethod("D", 3, 1), (20.0, 20.1))
    result = asked({**THREE, "D": half}, margin=0.5)
    assert (result.interim, result.missing) == (True, {"D": "2 of 3 searches"})
    whole = {key: value for key, value in {**THREE, "D": half}.items() if key != "D"}
    assert asked(whole, margin=0.5).leading, "somebody leads when nothing is missing"
    assert result.claims
    assert result.leading == frozenset(), "nobody leads while searches are missing"
    assert {pair.untested for pair in result.pairs if "D" in (pair.a, pair.b)} == {"searches missing"}
    assert {(pair.half_width, pair.claimed_size(1)) for pair in result.pairs if pair.untested} == {(None, None)}
    alone = asked(THREE, margin=0.5)
    for pair in alone.pairs:
        assert result.pair(pair.a, pair.b).p == pair.p
        assert result.pair(pair.a, pair.b).p_better >= pair.p_better
    # A planned method without any search counts too.
    absent = asked({**THREE, "D": (AskedMethod("D", 3, 1), ())}, margin=0.5)
    assert absent.pair("A", "B").p_better == result.pair("A", "B").p_better
    assert "D" not in absent.compared


def test_a_score_that_is_not_a_number_neither_leads_nor_is_tested():
    result = asked({**THREE, "D": (math.nan, 60, 60)}, margin=0.5)
    assert (result.best, result.order[-1]) == ("A", "D")
    assert {pair.untested for pair in result.pairs if "D" in (pair.a, pair.b)} == {"runs missing"}
    assert asked({**THREE, "D": (math.nan, 60, 60)}, compare="best").reference == "A"
    assert asked({"A": (30,), "B": (29,)}, unit="run").pairs[0].untested == "single runs"


def test_the_comparisons_that_were_asked_for_are_the_only_ones():
    assert [(p.a, p.b) for p in asked(THREE).pairs] == list(combinations("ABC", 2))
    best = asked({"C": THREE["C"], "A": THREE["A"], "B": THREE["B"]}, compare="best")
    assert [(p.a, p.b) for p in best.pairs] == [("A", "B"), ("A", "C")]
    assert (best.pair("C", "B"), best.reference) == (None, "A")
    assert [(p.a, p.b) for p in asked(THREE, compare="B").pairs] == [("B", "A"), ("B", "C")]
    with pytest.raises(ValueError, match="compare 'D': use all, best, or one of A, B, C"):
        asked(THREE, compare="D")


EIGHT = np.random.default_rng(3).standard_normal((3, 8)) * 0.004 + np.array([[0.30], [0.29], [0.285]])


def until(searches, values=None, looks=LOOKS):
    given = values or dict(zip("abc", EIGHT[:, :searches], strict=True))
    return asked({key: (AskedMethod(key, searches, 1), own) for key, own in given.items()}, looks=looks)


def test_each_planned_look_has_its_share_of_the_level_and_claims_stay():
    found = {}
    for look in LOOKS:
        result = until(look)
        plain = asked(dict(zip("abc", EIGHT[:, :look], strict=True)), alpha=0.05 * look / sum(LOOKS))
        assert result.look_level == plain.question.alpha
        for pair, alone in zip(result.pairs, plain.pairs, strict=True):
            at_once = min(1, alone.p_better * sum(LOOKS) / look)
            found[pair.a, pair.b] = min(found.get((pair.a, pair.b), 1), at_once)
            assert pair.p_better == pytest.approx(found[pair.a, pair.b])
            assert (pair.better is not None) == (pair.p_better < 0.05)
    assert until(3).pair("a", "c").better is None
    assert until(8).pair("a", "c").better == "a"
    assert not until(8).decided, "b and c are neither different nor equal"


def test_a_claim_of_an_early_look_stays_when_later_searches_disagree():
    early = {"a": (0.3, 0.301, 0.302, 0.2, 0.21, 0.19), "b": (0.2, 0.201, 0.202, 0.25, 0.2, 0.15)}
    assert asked(early).pair("a", "b").better is None
    assert until(6, early, looks=(3, 6)).pair("a", "b").better == "a"
    assert until(6, early, looks=(3, 6)).decided
    started = until(8, {**early, "a": early["a"][:2]})
    assert (started.tested, started.decided) == (0, False)


@pytest.mark.parametrize(
    ("held_up", "words"),
    [
        ({}, "decided"),
        ({"open_ends": True}, "not decided"),
        ({"cut_off": "after 400 steps"}, "nothing more can be decided"),
    ],
)
def test_more_searches_can_shut_an_end_and_mend_no_cut_off(held_up, words):
    values = {"a": (0.5, 0.502, 0.498), "b": (0.1, 0.102, 0.098)}
    found = asked({key: (AskedMethod(key, 3, 1, **held_up), own) for key, own in values.items()}, looks=LOOKS)
    assert found.decided == (words != "not decided")
    assert found.decided_words == words


def test_ranks_follow_from_the_claims():
    values = table(3, D=(30, 0.03), A=(40, 0.03), B=(39.6, 0.03), C=(39.2, 0.03))
    ranks = asked(values, margin=0.5).rank_intervals
    assert ranks == {"A": (1, 2), "B": (1, 3), "C": (2, 3), "D": (4, 4)}
    assert (place_words(ranks["B"]), place_words(ranks["D"])) == ("1 to 3", "4")
    assert asked(values, margin=0.5, compare="best").rank_intervals == {}


means = st.floats(0, 100).map(lambda x: round(x, 2))
tables_of_searches = st.integers(2, 5).flatmap(
    lambda count: st.lists(st.lists(means, min_size=count, max_size=count), min_size=2, max_size=6)
)


@given(tables_of_searches, st.sampled_from(["all", "best", "m1"]), st.sampled_from([0.5, 5.0, 20.0]))
@example([[0.0, 9.0, 9.0], [5.0, 7.0, 7.0]], "all", 0.5)
def test_claims_are_in_order_and_follow_the_means(rows, compare, margin):
    values = {f"m{number}": row for number, row in enumerate(rows)}
    result = asked(values, compare=compare, margin=margin, step=0.01)
    for pair in result.pairs:
        assert pair.p <= pair.p_better <= pair.p_beyond
        assert pair.better is None or pair.difference * (1 if pair.better == pair.a else -1) > 0
        assert pair.size != "beyond" or pair.better
        assert pair.size != "within" or abs(pair.difference) < margin
        (alone,) = compare_all(result.question, result.values, only=(pair.b, pair.a))
        assert alone == pair
    assert power_words(compare) == ("about 70 %" if compare == "best" else "80 %")
    assert result.best == max(values, key=lambda name: result.values[name].mean)
    numbers = {key: [getattr(one, key) for one in result.pairs] for key in ("p", "p_better", "p_beyond", "p_equal")}
    ts = [stats.t(pair.degrees) for pair in result.pairs]
    away = [t.sf((abs(one.difference) - margin) / error_of(one)) for t, one in zip(ts, result.pairs, strict=True)]
    assert numbers["p"] == pytest.approx(
        [2 * t.sf(abs(one.difference) / error_of(one)) for t, one in zip(ts, result.pairs, strict=True)]
    )
    question = compare, len(rows)
    better, beyond = (adjusted_of(np.array(p), *question) / 0.75 for p in (numbers["p"], away))
    equal = (adjusted_in_one_step if compare == "best" else adjusted_of)(1 - np.array(away), *question) / 0.25
    turned = [pair.means_disagree for pair in result.pairs]  # Failures turn the order, and nothing is claimed.

    def adjusted(p):
        return np.where(turned, 1, np.minimum(p, 1))

    assert numbers["p_better"] == pytest.approx(adjusted(better))
    assert numbers["p_beyond"] == pytest.approx(adjusted(np.maximum(better, beyond)))
    assert numbers["p_equal"] == pytest.approx(adjusted(equal), abs=1e-12)
    pairs = len(rows) * (len(rows) - 1) / 2
    level = 0.75 * 0.05 / {"all": pairs, "best": least_factor(len(rows)), "m1": len(rows) - 1}[compare]
    for t, pair in zip(ts, result.pairs, strict=True):
        assert pair.smallest == pytest.approx((t.ppf(1 - level / 2) + t.ppf(0.8)) * error_of(pair))


@given(tables_of_searches, st.permutations(range(6)))
def test_the_order_of_the_methods_changes_nothing(rows, order):
    values = {f"m{number}": row for number, row in enumerate(rows)}
    turned = {name: values[name] for name in (f"m{number}" for number in order) if name in values}
    one, other = asked(values, step=0.01), asked(turned, step=0.01)
    for pair in one.pairs:
        assert other.pair(pair.a, pair.b).p_better == pytest.approx(pair.p_better)


def test_a_method_without_a_search_adds_only_the_error_of_its_runs():
    pilot = {"a": (40.17, 38.33, 38.05), "b": (39.13, 35.19, 34.77), "untrained": constant(3.41)}
    runs = answers.given(3.21, 3.41, 3.61)
    alike, exact = asked({**pilot, "untrained": runs}), asked(pilot)
    for name in ("a", "b"):
        assert alike.pair(name, "untrained").half_width == pytest.approx(
            exact.pair(name, "untrained").half_width, rel=0.01
        )
        assert alike.pair(name, "untrained").degrees == pytest.approx(4, abs=0.1)
    assert alike.pair("a", "b") == exact.pair("a", "b")


def test_a_claim_about_settings_is_gone_when_searches_vary_by_the_break_even_deviation():
    values = {"a": (30.0, 30.5, 31.0, 30.2), "b": (27.4, 27.9, 28.5, 28.0)}
    pair = asked(values, unit="run").pairs[0]
    critical = stats.t.ppf(1 - 0.75 * 0.05 / 2, pair.degrees)
    assert pair.better == "a"
    assert pair.difference == pytest.approx(critical * math.sqrt(error_of(pair) ** 2 + 2 * pair.break_even**2))
    assert asked(values).pairs[0].break_even is None
    assert asked({"a": (30, 31, 29), "b": (29, 31, 30)}, unit="run").pairs[0].break_even == 0


def test_what_could_stay_unseen_is_asked_of_pairs_that_a_run_can_change():
    few, two = {"u": constant(3.4), "p": constant(9.4)}, {"A": (40.1, 38.2, 38.9), "B": (30.0, 31.2, 29.4)}
    assert not list(of_budget(asked(few)))
    plain, mixed = [[one.text for one in of_budget(asked(values))] for values in (two | {"u": few["u"]}, two | few)]
    assert len(plain) == len(mixed) == 1
    assert "below 0.0" not in mixed[0]
