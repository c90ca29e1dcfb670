"""Stopping the runs of methods that are clearly behind, with a boundary that is computed beforehand.

After every round of runs, each method that still gets runs is compared with the leader, the one with the highest mean.
A method whose p value is below the boundary's level gets no more runs. Looking several times raises the probability of
a wrong stop, so the level is the quantile, over simulated experiments, of the smallest p value of all looks: if all
methods are equally good, any method is stopped with a probability of at most `error`. The level is the smallest of
those for equal deviations, for unequal ones, and for one method that varies five times as much. Sequential tests are
described in Jennison and Turnbull, Group Sequential Methods (2000), chapter 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from results.records.experiment_summary import StoppedMethod
from results.spec.experiment_spec import FEWEST_FIRST_REPRODUCTIONS
from results.statistics.calibration import RunsKind, SimulatedTables, simulated_runs
from results.statistics.method_comparison import ALPHA, SHARE_OF_STOPPING, RunValues
from results.statistics.moderated import Numbers, Prior, cautious_prior
from results.statistics.pair_tests import moderated_t_of_moments

_VALUES_AT_ONCE = 2_000_000
_KINDS: tuple[RunsKind, ...] = ("equal", "unequal", "one noisy")


@dataclass(frozen=True)
class Boundary:
    """When a method gets no more runs.

    Attributes:
        methods: Number of methods at the start.
        first: Runs of every method before the first look.
        at_most: Largest number of runs.
        error: Probability that any of equally good methods is stopped.
        level: A method with a p value below this is stopped.
    """

    methods: int
    first: int
    at_most: int
    error: float
    level: float


@cache
def boundary(
    methods: int, first: int, at_most: int, error: float = SHARE_OF_STOPPING * ALPHA, experiments: int = 6_000
) -> Boundary:
    """Compute the boundary from simulated experiments of equally good methods, with a fixed seed.

    `error` is the probability that any method is stopped. There is no look after the last run. With fewer than two
    methods, or without a look, a ValueError says so.
    """
    if methods < 2 or not FEWEST_FIRST_REPRODUCTIONS <= first < at_most:
        raise ValueError(
            f"a boundary needs two methods, {FEWEST_FIRST_REPRODUCTIONS} first runs, and more runs than these at most"
        )
    level = min(float(np.quantile(_simulated(methods, first, at_most, kind, experiments), error)) for kind in _KINDS)
    return Boundary(methods, first, at_most, error, level)


def _simulated(methods: int, first: int, at_most: int, kind: RunsKind, experiments: int) -> Numbers:
    """The smallest p values of simulated experiments."""
    generator, at_once = np.random.default_rng(0), max(1, _VALUES_AT_ONCE // (methods * at_most))
    sizes = [min(at_once, experiments - start) for start in range(0, experiments, at_once)]
    setting = SimulatedTables(methods, at_most, kind)
    return np.concatenate([smallest_p(simulated_runs(setting, size, generator), first) for size in sizes])


def smallest_p(values: Numbers, first: int) -> Numbers:
    """Return the smallest p value of a method against the leader, over all looks.

    `values` has the shape (experiments, methods, runs).
    """
    looks = [p_against_leader(values[..., :runs]).min(axis=-1) for runs in range(first, values.shape[-1])]
    return np.asarray(np.min(looks, axis=0))


def p_against_leader(values: Numbers) -> Numbers:
    """Test every method against the one with the highest mean, with variances moderated by all methods.

    `values` has the shape (experiments, methods, runs), the result (experiments, methods) with 1 for the leader.
    """
    means, variances, degrees = values.mean(axis=-1), values.var(axis=-1, ddof=1), values.shape[-1] - 1
    prior = cautious_prior(variances, np.full(variances.shape, float(degrees)))
    leader = means.argmax(axis=-1)[..., None]

    def beside_leader(numbers: Numbers) -> Numbers:
        return np.stack([np.broadcast_to(np.take_along_axis(numbers, leader, -1), numbers.shape), numbers], axis=-1)

    each = Prior(prior.variance[..., None], prior.degrees[..., None], prior.pooled_degrees[..., None])
    runs = np.full((*means.shape, 2), float(values.shape[-1]))
    pairs = moderated_t_of_moments(beside_leader(means), beside_leader(variances), runs, lambda *_: each)
    return np.where(np.arange(means.shape[-1]) == leader, 1.0, pairs.p[..., 0])


def stopped(methods: Mapping[str, RunValues], limit: Boundary) -> tuple[StoppedMethod, ...]:
    """Find the methods that are behind the leader beyond the boundary.

    All methods have the same number of runs.
    """
    if len(methods) < 2:
        return ()
    names = list(methods)
    values = np.array([list(by_run.values()) for by_run in methods.values()])
    means = values.mean(axis=-1)
    leader = int(means.argmax())
    return tuple(
        StoppedMethod(
            method=name,
            runs=values.shape[-1],
            leader=names[leader],
            difference=float(means[leader] - mean),
            p=float(p),
            level=limit.level,
        )
        for name, mean, p in zip(names, means, p_against_leader(values[None])[0], strict=True)
        if p < limit.level
    )
