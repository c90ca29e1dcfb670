"""Stopping methods that are behind: the boundary keeps its error on simulated experiments whose truth is known."""

import numpy as np
import pytest

from results.statistics.early_stopping import boundary, p_against_leader, smallest_p, stopped
from results.statistics.method_comparison import ALPHA, SHARE_OF_STOPPING, compare_methods, final_alpha

ERROR = SHARE_OF_STOPPING * ALPHA
EXPERIMENTS = 3000


def simulated(seed, methods, runs, deviations=1.0):
    return np.random.default_rng(seed).standard_normal((EXPERIMENTS, methods, runs)) * np.reshape(deviations, (-1, 1))


def share_stopped(values, first):
    level = boundary(values.shape[-2], first, values.shape[-1], experiments=1500)
    return float(np.mean(smallest_p(values, first) < level))


@pytest.mark.long
@pytest.mark.parametrize(("methods", "first", "at_most"), [(2, 3, 5), (5, 3, 6)])
def test_equally_good_methods_are_seldom_stopped(methods, first, at_most):
    three_standard_errors = 3 * (ERROR * (1 - ERROR) / EXPERIMENTS) ** 0.5
    for deviations in (1.0, [5.0] + [1.0] * (methods - 1)):
        values = simulated(1, methods, at_most, deviations)
        # The boundary itself is from 1,500 experiments of each kind.
        assert share_stopped(values, first) < ERROR + 2.5 * three_standard_errors


def test_many_looks_at_a_plain_test_would_stop_too_many():
    values = simulated(2, 5, 8)
    assert np.mean(smallest_p(values, 3) < ERROR) > 3 * ERROR


def test_a_method_far_behind_is_stopped_at_the_first_look():
    values = simulated(3, 5, 6) + np.array([0, 0, 0, 0, -15.0])[:, None]
    level = boundary(5, 3, 6, experiments=1500)
    p = p_against_leader(values[..., :3])
    assert np.mean(p[:, 4] < level) > 0.9
    assert np.mean((p[:, :4] < level).any(axis=-1)) < 2 * ERROR


def test_a_boundary_is_reproducible_and_stricter_with_more_methods_and_looks():
    level = boundary(5, 3, 6, experiments=1000)
    assert boundary.__wrapped__(5, 3, 6, experiments=1000) == level
    assert boundary(15, 3, 6, experiments=1000) < level
    assert boundary(5, 3, 10, experiments=1000) < level < boundary(2, 3, 6, experiments=1000)


@pytest.mark.parametrize("arguments", [(1, 3, 6), (5, 2, 6), (5, 3, 3)])
def test_a_boundary_needs_rivals_and_looks(arguments):
    with pytest.raises(ValueError, match="a boundary needs two methods"):
        boundary(*arguments)


def test_stopped_names_the_leader_and_the_gap():
    values = {
        "good": {0: 0.50, 1: 0.51, 2: 0.49},
        "close": {0: 0.49, 1: 0.51, 2: 0.48},
        "bad": {0: 0.10, 1: 0.11, 2: 0.09},
    }
    (stop,) = stopped(values, boundary(3, 3, 6, experiments=1000))
    assert (stop.method, stop.leader, stop.runs) == ("bad", "good", 3)
    assert stop.difference == pytest.approx(0.4)
    assert stop.p < stop.level
    assert stopped({"good": values["good"]}, boundary(3, 3, 6, experiments=1000)) == ()


def test_two_methods_are_tested_as_in_the_final_comparison():
    values = {"a": {0: 0.50, 1: 0.53, 2: 0.49}, "b": {0: 0.44, 1: 0.41, 2: 0.48}}
    p = p_against_leader(np.array([[list(runs.values()) for runs in values.values()]]))
    assert p[0, 0] == 1.0
    assert p[0, 1] == pytest.approx(compare_methods(values).pairs[0].p)
    assert final_alpha() == pytest.approx(0.03)
