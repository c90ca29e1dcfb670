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
from typing import Literal

import numpy as np

from results.records.experiment_summary import StoppedMethod
from results.spec.experiment_spec import FEWEST_FIRST_REPRODUCTIONS
from results.statistics.method_comparison import ALPHA, SHARE_OF_STOPPING, RunValues
from results.statistics.moderated import Numbers, Prior, cautious_prior
from results.statistics.pair_tests import moderated_t_of_moments

RunsKind = Literal["equal", "unequal", "one noisy", "heavy tails", "one single run"]
RUNS_KINDS: dict[RunsKind, str] = {
    "equal": "normal runs with equal deviations",
    "unequal": "every second method varies three times as much",
    "one noisy": "one method varies five times as much",
    "heavy tails": "runs with Student's t distribution of 3 degrees of freedom",
    "one single run": "equal deviations; one method has a single run",
}
"""Kinds of runs, with their description."""

_VALUES_AT_ONCE = 2_000_000
_KINDS: tuple[RunsKind, ...] = ("equal", "unequal", "one noisy")


@dataclass(frozen=True)
class SimulatedTables:
    """A kind of table.

    Attributes:
        correlation: Correlation of matched runs; 0 for runs that share nothing.
    """

    methods: int
    runs: int
    kind: RunsKind
    correlation: float = 0.0


def simulated_runs(setting: SimulatedTables, tables: int, generator: np.random.Generator) -> Numbers:
    """Draw runs around 0, of shape (tables, methods, runs), with NaN for runs that a method does not have."""
    shape = (tables, setting.methods, setting.runs)
    if setting.kind == "heavy tails":
        values = generator.standard_t(3, shape) / np.sqrt(3)
    else:
        values = generator.standard_normal(shape)
    values = _correlated(values, setting.correlation)
    order = np.arange(setting.methods)
    if setting.kind == "unequal":
        values *= np.where(order % 2, 3.0, 1.0)[:, None]
    if setting.kind == "one noisy":
        values *= np.where(order == 0, 5.0, 1.0)[:, None]
    if setting.kind == "one single run":
        values[:, 0, 1:] = np.nan
    return values


def _correlated(values: Numbers, correlation: float) -> Numbers:
    """Give equal correlations to the methods' runs of one column, also negative ones down to -1 / (methods - 1)."""
    methods = values.shape[1]
    share = -correlation * methods / (1 - correlation)
    mixed = values - (1 - np.sqrt(1 - share)) * values.mean(axis=1, keepdims=True)
    return np.asarray(mixed / np.sqrt(1 - share / methods))


@cache
def boundary(
    methods: int, first: int, at_most: int, error: float = SHARE_OF_STOPPING * ALPHA, experiments: int = 6_000
) -> float:
    """Compute the level below whose p values a method is stopped, from simulated experiments of equally good methods.

    The seed is fixed. `error` is the probability that any method is stopped. There is no look after the last run.
    """
    if methods < 2 or not FEWEST_FIRST_REPRODUCTIONS <= first < at_most:
        raise ValueError(
            f"a boundary needs two methods, {FEWEST_FIRST_REPRODUCTIONS} first runs, and more runs than these at most"
        )
    return min(float(np.quantile(_simulated(methods, first, at_most, kind, experiments), error)) for kind in _KINDS)


def _simulated(methods: int, first: int, at_most: int, kind: RunsKind, experiments: int) -> Numbers:
    generator, at_once = np.random.default_rng(0), max(1, _VALUES_AT_ONCE // (methods * at_most))
    sizes = [min(at_once, experiments - start) for start in range(0, experiments, at_once)]
    setting = SimulatedTables(methods, at_most, kind)
    return np.concatenate([smallest_p(simulated_runs(setting, size, generator), first) for size in sizes])


def smallest_p(values: Numbers, first: int) -> Numbers:
    """Return the smallest p value of a method against the leader, over all looks; `values` as in `p_against_leader`."""
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


def stopped(methods: Mapping[str, RunValues], level: float) -> tuple[StoppedMethod, ...]:
    """Find the methods that are behind the leader beyond the boundary; all have the same number of runs."""
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
            level=level,
        )
        for name, mean, p in zip(names, means, p_against_leader(values[None])[0], strict=True)
        if p < level
    )
