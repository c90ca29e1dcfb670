"""What runs show about a claim, on simulated runs whose truth is known."""

import numpy as np
import pytest

from results.statistics.print_alone import runs_answer

DEVIATION = 0.006


def methods(a, b, others=(), runs=3, deviation=DEVIATION, seed=0):
    rng = np.random.default_rng(seed)
    means = {"a": a, "b": b, **{f"other {number}": mean for number, mean in enumerate(others)}}
    return {
        name: dict(enumerate(mean + rng.normal(0, deviation, runs)))
        for name, mean in sorted(means.items(), reverse=True)
    }


def shares(a, b, claimed, runs=3, repeats=200, **changes):
    verdicts = [
        runs_answer(methods(a, b, (0.28, 0.31), runs, seed=seed, **changes), "a", "b", claimed).verdict
        for seed in range(repeats)
    ]
    return {verdict: verdicts.count(verdict) / repeats for verdict in ("holds", "contradicted", "cannot tell")}


def test_true_claims_hold_and_wrong_ones_are_contradicted():
    assert shares(0.35, 0.30, 0.05)["holds"] > 0.9
    assert shares(0.30, 0.35, 0.05)["contradicted"] > 0.9


def test_of_equal_methods_hardly_any_claim_holds():
    assert shares(0.30, 0.30, 0.01)["holds"] < 0.025 + 3 * (0.025 * 0.975 / 200) ** 0.5


def test_equal_methods_contradict_a_larger_gain_and_not_a_smaller_one():
    assert shares(0.30, 0.30, 0.02, runs=10, deviation=0.001)["contradicted"] > 0.9
    assert shares(0.30, 0.30, 0.004, runs=10, deviation=0.001)["cannot tell"] > 0.9


def test_a_true_claim_is_hardly_ever_contradicted():
    assert shares(0.31, 0.30, 0.01)["contradicted"] < 0.02


def test_the_difference_is_that_of_a_and_b_whatever_the_order_of_the_methods():
    values = methods(0.33, 0.30)
    answer = runs_answer(values, "a", "b", 0.03)
    expected = np.mean(list(values["a"].values())) - np.mean(list(values["b"].values()))
    assert (answer.pair.a, answer.pair.b, answer.methods) == ("a", "b", 2)
    assert answer.pair.difference == pytest.approx(expected)
    assert runs_answer(values, "b", "a", 0.03).verdict == "contradicted"


def test_the_claimed_size_is_compared_with_the_interval():
    values = methods(0.33, 0.30)
    assert runs_answer(values, "a", "b", 0.03).claimed == "inside"
    assert runs_answer(values, "a", "b", 0.2).claimed == "smaller than claimed"
    assert runs_answer(values, "a", "b", 0.001).claimed == "larger than claimed"


def test_undecided_claims_say_how_many_runs_they_take():
    answer = runs_answer(methods(0.302, 0.30), "a", "b", 0.002)
    assert answer.verdict == "cannot tell"
    assert answer.runs_needed > 3
    assert answer.pair.smallest > 0.002


def test_single_runs_tell_nothing():
    answer = runs_answer(methods(0.40, 0.30, runs=1), "a", "b", 0.1)
    assert (answer.verdict, answer.claimed, answer.runs_needed) == ("cannot tell", None, None)


def test_a_method_without_runs_is_refused():
    with pytest.raises(KeyError):
        runs_answer(methods(0.40, 0.30), "a", "absent", 0.1)
