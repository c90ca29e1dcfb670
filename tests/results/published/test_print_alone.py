"""What printed numbers alone show: what a ± says, and verdicts on simulated papers whose truth is known."""

import numpy as np
import pytest

from results.published.claims import read_claims
from results.published.print_alone import READINGS, Spread, noise_of, pooled_spread, print_answer, printed_spreads
from results.published.tables import PublishedColumn, published_table

R1_OF_CUB = PublishedColumn("cub200", "precision_at_1", "single")


@pytest.mark.parametrize(
    ("spread", "deviation"),
    [
        (Spread(0.3, 9, "standard deviation"), {0.3}),
        # t(0.975, 9) = 2.262
        (Spread(0.3, 10, "95 % interval"), {0.3 * 10**0.5 / 2.262}),
        (Spread(0.3, 9, "not stated"), {0.9}),
        (Spread(0.3, None, "not stated"), {0.3 * 2**0.5, 0.3 * 5**0.5}),
    ],
)
def test_what_is_not_stated_is_a_standard_error_over_few_or_the_usual_runs(spread, deviation):
    read = {spread.read(runs)[0] for runs in READINGS}
    assert sorted(read) == pytest.approx(sorted(deviation), rel=1e-3)
    assert spread.stated == (spread.kind != "not stated")


def test_deviations_are_pooled_by_their_degrees_of_freedom():
    spreads = [Spread(0.3, 4, "standard deviation"), Spread(0.6, None, "not stated"), Spread(9, 1, "not stated")]
    deviation, degrees = pooled_spread(spreads, 2)
    assert degrees == 4
    assert deviation == pytest.approx(((3 * 0.09 + 2 * 0.36) / 4) ** 0.5)
    assert pooled_spread([], 2) is pooled_spread([Spread(0, 5, "standard deviation")], 2) is None


def test_values_that_a_paper_measured_are_pooled_once_and_quoted_ones_never():
    spreads = printed_spreads(R1_OF_CUB)
    tables = {spread.table for spread in spreads}
    assert tables == {"proxy_isa_table2", "nir_table1", "nir_table2", "nir_table4", "nir_table5"}
    for name in tables:
        measured = [row.cells[R1_OF_CUB].origin.kind == "measured" for row in published_table(name).rows]
        assert sum(spread.table == name for spread in spreads) <= sum(measured)
    isa = [spread for spread in spreads if spread.table == "proxy_isa_table2"]
    assert len(isa) == 2, "Proxy-ISA and Proxy-Anchor; the others quote MLRC"
    printed_twice = [row.cells[R1_OF_CUB] for row in published_table("nir_table5").rows[:1]]
    assert printed_twice[0].as_published == "66.0"
    assert sum(spread.table == "nir_table5" for spread in spreads) == len(published_table("nir_table5").rows) - 1


def test_only_mlrc_says_what_its_spread_is():
    mlrc = printed_spreads(PublishedColumn("cars196", "map_at_r", "concatenated"))
    assert {(spread.runs, spread.kind, spread.table) for spread in mlrc} == {(10, "95 % interval", "mlrc_cars196")}
    assert not any(spread.stated for spread in printed_spreads(R1_OF_CUB))
    assert printed_spreads(PublishedColumn("inshop", "precision_at_1", "single")) == ()


DEVIATION = 0.6
"""True run-to-run deviation in points."""
REPEATS = 4000
DEGREES = 8
HEADER = "a,b,dataset,score,value_a,value_b,runs,plus_minus,plus_minus_kind\n"


def claim(a, b, runs="", plus_minus="", kind="", dataset="made up", score="R@1"):
    (read,) = read_claims(f"{HEADER}one,other,{dataset},{score},{a},{b},{runs},{plus_minus},{kind}\n", "simulated")
    return read


def share_beyond_noise(true_difference, n_a, n_b, seed=0):
    """Share of simulated papers that are called beyond noise. The method with the higher mean is claimed better."""
    rng = np.random.default_rng(seed)
    beyond = 0
    for _ in range(REPEATS):
        means = np.array([66 + true_difference, 66]) + rng.normal(0, DEVIATION / np.sqrt([n_a, n_b]))
        estimate = DEVIATION * np.sqrt(rng.chisquare(DEGREES) / DEGREES)
        beyond += abs(means[0] - means[1]) > noise_of(estimate, DEGREES, n_a, n_b)
    return beyond / REPEATS


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (5, 1), (10, 10)])
def test_of_equal_methods_5_of_100_differ_by_more_than_the_noise(n_a, n_b):
    assert share_beyond_noise(0, n_a, n_b) == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / REPEATS) ** 0.5)


def test_the_values_own_spread_comes_before_those_of_the_same_score():
    own = print_answer(claim(66.5, 65.3, "10", "0.3", "standard deviation", dataset="cub200"))
    assert (own.own, own.verdict) == (True, "beyond noise")
    assert own.deviation == pytest.approx(0.3)
    # t(0.975, 18) = 2.101
    assert own.noise == pytest.approx(2.101 * 0.3 * (2 / 10) ** 0.5, rel=1e-3)
    assert 2.101 * (0.3**2 * 2 / 10 + 2 * own.break_even**2) ** 0.5 == pytest.approx(66.5 - 65.3, rel=1e-3)
    pooled = print_answer(claim(66.5, 65.3, dataset="cub200", score="MAP@R concatenated"))
    assert {spread.table for spread in pooled.source} == {"mlrc_cub200"}
    assert not pooled.own
    for dataset, score in (("cub200", "MAP@R separated"), ("inshop", "R@1"), ("made up", "R@1")):
        unknown = print_answer(claim(66.5, 65.3, dataset=dataset, score=score))
        assert (unknown.verdict, unknown.noise) == ("no fitting deviation", None)


@pytest.mark.parametrize(("difference", "verdict"), [(1.8, "within noise"), (1.9, "beyond noise")])
def test_a_spread_of_unstated_meaning_is_read_with_the_most_noise(difference, verdict):
    answer = print_answer(claim(65 + difference, 65, "", "0.3/0.3"))
    assert answer.verdict == verdict
    assert (answer.break_even is None) == (verdict == "within noise")
    # t(0.975, 2) = 4.303 with a standard error over 2 runs.
    assert answer.noise == pytest.approx(4.303 * 0.3 * 2**0.5, rel=1e-3)
    assert print_answer(claim(66, 65, "5", "0.3/0.3")).verdict == "beyond noise"


@pytest.mark.parametrize(
    ("runs", "spread", "kind"),
    [("", "0.3/", ""), ("5", "0.3/", ""), ("1", "0.3/0.3", "standard deviation"), ("5", "0/0", "standard deviation")],
)
def test_a_single_unstated_spread_of_one_run_or_of_zero_says_nothing(runs, spread, kind):
    assert print_answer(claim(66.5, 65.3, runs, spread, kind)).verdict == "no fitting deviation"
    assert print_answer(claim(66.5, 65.3, "5", "0.3/", "standard deviation")).own
