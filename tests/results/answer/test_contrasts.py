"""Contrasts equal independent references, agree with the pairs, and keep their level."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from results.answer.contrasts import contrast_differences, contrasts_of
from results.answer.pair_tests import pool_or_own
from results.spec.experiment_spec import Contrast
from results.spec.search_settings import LOOKS
from tests.support.answers import asked, constant
from tests.support.answers import given as given_settings

SUMS = Contrast(title="negatives", a=("an", "softmax"), b=("anchor", "ntce"))
PULLS = Contrast(title="positives", a=("anchor", "an"), b=("ntce", "softmax"))
BOTH = Contrast(title="both alike", a=("anchor", "softmax"), b=("an", "ntce"))
SPREAD = np.array([-0.7, 0.1, 0.6])


def one(found, a, b):
    (answered,) = contrasts_of(found, [Contrast(title="t", a=a, b=b)])
    return answered


def test_main_effects_are_those_of_least_squares():
    """Of four methods whose searches vary alike, the reference is a regression on the two factors of the 2 x 2."""
    means = {"anchor": 34.0, "an": 30.0, "ntce": 31.5, "softmax": 33.0}
    found = asked({key: mean + SPREAD for key, mean in means.items()}, margin=0.5)
    image_pulls = np.repeat([-0.5, -0.5, 0.5, 0.5], 3)
    image_pushes = np.repeat([-0.5, 0.5, -0.5, 0.5], 3)
    design = np.stack([np.ones(12), image_pushes, -image_pulls, 2 * image_pulls * image_pushes], axis=1)
    values = np.concatenate([mean + SPREAD for mean in means.values()])
    effects, (residual,), *_ = np.linalg.lstsq(design, values, rcond=None)
    inflated = (1 + 1 / 4) * residual / 8
    errors = np.sqrt(inflated * np.diag(np.linalg.inv(design.T @ design)))[1:]
    answered = contrasts_of(found, [SUMS, PULLS, BOTH])
    assert [one.difference for one in answered] == pytest.approx(effects[1:])
    assert [one.half_width for one in answered] == pytest.approx(stats.t.ppf(0.975, 8) * errors)
    p = 2 * stats.t.sf(np.abs(effects[1:]) / errors, 8)
    assert [one.p for one in answered] == pytest.approx(p)
    ranks = stats.rankdata(p)
    holm = [max(min(1, (4 - ranks[k]) * p[k]) for k in range(3) if ranks[k] <= rank) for rank in ranks]
    assert [one.p_better for one in answered] == pytest.approx(holm)
    assert [one.shown for one in answered] == [value < 0.05 for value in holm]
    seen = (stats.t.ppf(1 - 0.05 / 6, 8) + stats.t.ppf(0.8, 8)) * errors
    assert [one.smallest for one in answered] == pytest.approx(seen)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_of_two_methods_it_is_their_pair(seed):
    """Whatever pools they are of, and if searches failed."""
    noise = np.random.default_rng(seed)
    values = {f"m{n}": 30 + 5 * noise.random() + noise.standard_normal(4) for n in range(4)}
    values["m0"][0] = 5.0
    values |= {"given": given_settings(*(29 + noise.standard_normal(3))), "constant": constant(31.0)}
    found = asked(values)
    assert found.failed["m0"] == (5.0,)
    for pair in found.pairs:
        answered = one(found, (pair.a,), (pair.b,))
        numbers = (answered.difference, answered.half_width, answered.p)
        assert numbers == pytest.approx((pair.difference, pair.half_width, pair.p))
        turned = one(found, (pair.b,), (pair.a,))
        assert (turned.difference, turned.p) == pytest.approx((-pair.difference, pair.p))


def test_methods_of_several_pools_have_satterthwaites_degrees():
    searched = {"a": 30 + SPREAD, "b": 31 + 2 * SPREAD}
    found = asked({**searched, "given": given_settings(28.0, 28.5, 29.5, 29.0)})
    answered = one(found, ("a", "b"), ("given",))
    own, of_given = np.var(SPREAD, ddof=1), np.var([28.0, 28.5, 29.5, 29.0], ddof=1)
    pooled = (2 * own + 2 * 4 * own) / 4
    first = 1.25 * (max(pooled, own) + 4 * own) / 3 / 4
    second = (1 + 1 / 9) * of_given / 4
    degrees = (first + second) ** 2 / (first**2 / 4 + second**2 / 3)
    assert answered.difference == pytest.approx(30.5 - 28.75)
    assert answered.half_width == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(first + second))


def test_what_is_missing_is_named_and_counts_in_the_correction():
    found = asked({"an": 30 + SPREAD, "anchor": 36 + SPREAD, "softmax": 33 + SPREAD, "ntce": [31.0]})
    missing, there = contrasts_of(found, [SUMS, Contrast(title="t", a=("an",), b=("anchor",))])
    assert (missing.untested, missing.difference, missing.shown) == ("it lacks ntce", None, False)
    assert there.p_better == pytest.approx(2 * there.p)
    assert there.shown
    assert one(found, ("an",), ("nobody",)).untested == "it lacks nobody"
    alone = asked({"a": [30.0, 31.0], "b": [33.0, 34.0]}, unit="single search")
    assert one(alone, ("a",), ("b",)).untested == "each method was searched once"
    assert contrasts_of(found, []) == ()


def test_nothing_is_shown_whose_order_failures_turn():
    """As for pairs: typical searches of a are 2 above b, and with the failed one of a it is below."""
    found = asked({"a": (32.0, 32.1, 32.2, 5.0), "b": (30.0, 30.1, 30.2, 30.1), "c": (30.0, 30.2, 30.1, 30.1)})
    assert found.failed == {"a": (5.0,)}
    answered = one(found, ("a",), ("b", "c"))
    assert answered.difference == pytest.approx(2.0)
    assert answered.difference_of_all == pytest.approx(101.3 / 4 - 30.1)
    assert (answered.means_disagree, answered.p_better, answered.shown) == (True, 1.0, False)
    assert answered.p < 0.001


def test_after_planned_looks_the_level_is_that_of_the_last_look():
    """At p 0.02 a contrast is shown where the number of searches was fixed, and not at the first look."""
    values = {"an": 30 + SPREAD, "softmax": 30 + SPREAD, "anchor": 31.55 + SPREAD, "ntce": 31.55 + SPREAD}
    fixed, looked = asked(values), asked(values, looks=LOOKS)
    assert looked.look_level == pytest.approx(0.05 * 3 / 26)
    for found, shown in ((fixed, True), (looked, False)):
        (answered,) = contrasts_of(found, [SUMS])
        assert looked.look_level < answered.p_better < 0.05
        assert answered.shown == shown


@pytest.mark.parametrize("unequal", [1.0, 3.0])
def test_equal_methods_are_seldom_told_apart(unequal):
    """Of 4,000 tables of nine methods, half of which vary as stated more; three contrasts of four of them."""
    noise = np.random.default_rng(0).standard_normal((4000, 9, 3)) * np.where(np.arange(9) % 2, unequal, 1.0)[:, None]
    weights = np.zeros((3, 9))
    weights[:, :4] = [[-0.5, 0.5, -0.5, 0.5], [0.5, 0.5, -0.5, -0.5], [0.5, -0.5, -0.5, 0.5]]
    wrong = 0
    for table in noise:
        errors = pool_or_own(table.mean(1), table.var(1, ddof=1), 3)
        wrong += min(contrast_differences(errors, weights).p) < 0.05 / 3
    assert wrong / len(noise) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(noise))


def test_a_method_stands_in_a_contrast_once():
    with pytest.raises(ValueError, match="m stands in it twice; name each method once"):
        Contrast(title="t", a=("m",), b=("n", "m"))
