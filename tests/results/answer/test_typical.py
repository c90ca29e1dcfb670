"""Which searches failed, by an independent reference and by kept cases; no verdict where failures turn the order."""

import numpy as np
import pytest

from reports.headline import comparison_lines, headline
from reports.page.ranking import pair_mark
from reports.tables.differences import differences
from reports.tables.formats import to_json, to_latex
from results.answer.across_datasets import pair_over_datasets
from results.answer.compare import gains_over
from results.answer.intervals import Interval
from results.answer.question import AskedMethod
from results.answer.typical import failed
from results.answer.values import MethodValues
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support import answers, typical_search
from tests.support.answers import asked


def random_searches(seed):
    """Up to 9 methods with 1 to 8 searches each at any level, of which one method varies more and some fail."""
    noise = np.random.default_rng(seed)
    level, values = noise.choice([0, 2, 5, 30]), {}
    for number in range(noise.integers(1, 10)):
        own = level + noise.standard_normal(noise.integers(1, 9)) * noise.choice([1, 1, 1, 5, 10])
        values[number] = np.where(noise.random(own.size) < 0.15, own - noise.choice([4, 8, 16, 40]), own)
    return values


def padded(values):
    most = max(map(len, values.values()))
    return np.array([[*own, *[np.nan] * (most - len(own))] for own in values.values()])


@pytest.mark.parametrize("half", [True, False])
def test_searches_that_failed_are_those_of_the_reference(half):
    low_ones = 0
    for values in map(random_searches, range(600)):
        found, expected = failed(padded(values), half=half), typical_search.set_aside(values, half)
        assert [list(own[: len(low)]) for own, low in zip(found, expected.values(), strict=True)] == [
            list(low) for low in expected.values()
        ]
        low_ones += found.sum()
    assert low_ones > 200


@pytest.mark.parametrize(
    ("record", "low"),
    [
        ("search_variance_birds_subset", {"triplet": [24.86]}),
        ("search_variance_handwriting", {"contrastive": [14.49]}),
        ("reality_check_birds_subset", {"triplet": [24.72], "proxy_nca": [24.90]}),
        ("reality_check_handwriting", {"contrastive": [14.09]}),
        ("pfml_glyphs", {}),  # 8.88, 15.33 and 22.16 vary much: none of the three failed.
    ],
)
def test_the_failed_searches_of_the_records(record, low):
    found = answer_of(MeasuredExperiment.kept(record))
    assert {key: [round(100 * one, 2) for one in own] for key, own in found.failed.items()} == low


def test_half_of_the_best_means_nothing_near_zero_and_for_unknown_scores():
    ordinary = {"a": (3.1, 1.4, 2.9, 3.3, 3.0), "b": (2.4, 2.0, 2.9, 2.6, 2.1)}
    assert asked(ordinary).failed == {}, "1.4 is below half of 3.3, but not far from 2.9"
    collapsed = {"a": (60, 59, 61, 28), "b": (50, 53, 46, 55), "c": (44, 40, 48, 51)}
    assert asked(collapsed).failed == {"a": (28,)}
    unknown = asked(collapsed, half_can_fail=False, unit="run")
    errors = asked({key: [own - 100 for own in values] for key, values in collapsed.items()}, unit="run")
    assert unknown.failed == errors.failed == {}
    assert [pair.p for pair in unknown.pairs] == pytest.approx([pair.p for pair in errors.pairs])


def test_all_low_searches_of_a_method_failed_or_none():
    # The gap above 12 is wider than 1.5 times the range of the others; that above the wide method's lowest is not.
    others = {key: (level, level + 1, level + 0.5) for key, level in (("b", 40), ("c", 30), ("d", 20))}
    found = asked({"a": (50, 51, 12), "wide": (60, 40, 20, 62), **others})
    assert found.failed == {"a": (12,)}


def test_a_method_whose_searches_are_not_all_made_has_a_mean_and_no_interval():
    begun = AskedMethod("begun", 3, 1), (0.5, 0.51)
    found = asked({"whole": (0.4, 0.41, 0.42), "begun": begun}).intervals
    assert found["whole"].half_width > 0
    assert found["begun"] == Interval(pytest.approx(0.505), None, 2)


STABLE, UNSTABLE = (0.791, 0.794, 0.788, 0.792, 0.790), (0.811, 0.814, 0.12, 0.105, 0.812)


def test_a_method_that_is_better_without_its_failures_and_worse_with_them_gets_no_verdict_anywhere():
    found = asked({"stable": STABLE, "unstable": UNSTABLE}, margin=0.005, unit="run")
    pair = found.pair("unstable", "stable")
    assert found.failed == {"unstable": (0.12, 0.105)}
    assert (pair.direction, pair.size, pair.p_better, pair.p_beyond, pair.p_equal) == (
        "cannot tell",
        "cannot tell",
        1,
        1,
        1,
    )
    assert pair.p < 0.001
    assert (pair.better, pair.break_even, pair.claimed_size(0.5)) == (None, 0, None)
    both = [round(100 * one, 2) for one in (pair.difference, pair.difference_of_all)]
    assert both == [2.13, -25.86]
    assert (found.claims, set(found.rank_intervals.values()), found.leading) == (set(), {(1, 2)}, frozenset())
    said = "unstable is 2.1 ± 0.4 points above stable"
    assert headline(found) == f"Cannot tell: {said}; with failed runs -25.9."
    assert comparison_lines(found) == [f"{said}: cannot tell; with failed runs -25.9"]
    table = differences(found)
    for text in (to_latex(table), to_json(table), pair_mark(found, pair).words, found.differences.to_csv()):
        assert "2.1" in text.replace("0.021", "2.1")
        assert "-25.9" in text.replace("-0.258", "-25.9").replace("$-$", "-")
    assert any(
        one.text == "No verdict about unstable over stable (+2.1; with failed runs -25.9)." for one in found.findings
    )
    assert pair_over_datasets([pair] * 3).verdict == "cannot tell"
    assert pair_over_datasets([pair] * 3).p == 1


def test_one_turned_pair_among_others_stands_in_the_headline():
    found = asked({"stable": STABLE, "unstable": UNSTABLE, "low": [one - 0.3 for one in STABLE]}, unit="run")
    assert ("stable", "low") in found.claims
    assert headline(found).endswith(" Cannot tell: unstable is 2.1 ± 0.4 points above stable; with failed runs -25.9.")
    assert "cannot be told from stable" not in headline(found)
    calm = asked(
        {"stable": STABLE, "unstable": (0.791, 0.794, 0.12, 0.105, 0.793), "low": [0.5, 0.501, 0.502]}, unit="run"
    )
    assert [(pair.a, pair.b) for pair in calm.without_agreement] == [("unstable", "stable")]
    assert "Cannot tell: " not in headline(calm), "nobody calls a difference of 0.2 ± 0.4 better"


def test_a_claim_of_an_early_look_is_gone_when_failures_turn_the_order():
    early = {"a": (0.5, 0.501, 0.502, 0.501), "b": (0.4, 0.401, 0.402, 0.4015)}
    late = {"a": (*early["a"], 0.05, 0.06), "b": (*early["b"], 0.4, 0.402)}
    looks, count = (3, 6), {"early": 4, "late": 6}
    found = {
        name: asked({key: (AskedMethod(key, count[name], 1), own) for key, own in values.items()}, looks=looks)
        for name, values in {"early": early, "late": late}.items()
    }
    assert found["early"].claims == {("a", "b")}
    assert found["late"].claims == set()
    assert not found["late"].decided


def test_a_gain_that_failures_turn_is_no_gain():
    tuned = MethodValues((0.6, 0.602, 0.601), 4, AskedMethod("a", 4, 1), failed=(0.1,))
    default = MethodValues((0.5, 0.501, 0.502), 3, AskedMethod("a, as given", 0, 3, searched=False))
    (pair,) = gains_over({"a": tuned}, {"row": default}, {"row": "a"})
    assert (pair.difference > 0, pair.difference_of_all < 0, pair.better, pair.p_better) == (True, True, None, 1)


def test_what_runs_can_show_follows_from_those_that_did_not_fail():
    found = asked({"stable": STABLE, "unstable": UNSTABLE}, unit="run", units=5)
    (budget,) = (one for one in found.findings if one.text.startswith("Differences below"))
    typical = answers.asked({"stable": STABLE, "unstable": UNSTABLE[:2] + UNSTABLE[4:]}, unit="run", units=5)
    variances = [np.var(STABLE, ddof=1), np.var(UNSTABLE[:2] + UNSTABLE[4:], ddof=1)]
    deviation = np.sqrt(np.average(variances, weights=[4, 2]))
    assert f"deviation of {found.scaling.gap(deviation, more=True)} points" in budget.detail
    assert len(typical.failed) == 0
