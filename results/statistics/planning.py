"""What a budget can see: the smallest detectable difference of an experiment, and the runs that a difference takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from results.records.records import RunRecord
from results.spec.experiment_spec import PrimaryScore
from results.statistics.measured_noise import kept_measurements
from results.statistics.method_comparison import ALPHA, MARGIN, RunValues
from results.statistics.moderated import cautious_prior
from results.statistics.pair_tests import moderated_t_of_moments, pairs_of, smallest_of_simulated
from results.statistics.run_values import EmbeddingKind, run_values

MOST_RUNS = 1000
"""Largest number of runs that is looked for."""

_SIMULATED_PAIRS = 8_000


@dataclass(frozen=True)
class RunBudget:
    """What an experiment can see. Differences are in the unit of the values.

    Attributes:
        deviation: Standard deviation from run to run.
        smallest: Smallest true difference that is called better with a probability of 80 %; None with one run.
        wanted: A difference of interest.
        runs_needed: Runs of each method for `wanted`; None if more than `MOST_RUNS`.
        from_own_runs: Whether the deviation is that of the experiment's own runs.
    """

    methods: int
    runs: int
    deviation: float
    smallest: float | None
    wanted: float
    runs_needed: int | None
    from_own_runs: bool


def budget(
    methods: int, runs: int, score: PrimaryScore, records: Sequence[RunRecord] = (), *, on_features: bool = False
) -> RunBudget:
    """Compute what an experiment can see in its primary score.

    The deviation from run to run is that of the records, or that of the experiments in `results/measured` if no method
    has two runs that differ. Runs on features vary less. Differences are fractions of 1; the difference of interest is
    the margin of equality.
    """
    own = run_deviation(run_values(records, score.metric, score.embeddings).values())
    deviation = own or measured_deviation(score.metric, score.embeddings, on_features=on_features)
    smallest = None if runs < 2 else deviation * smallest_difference(methods, runs)
    return RunBudget(methods, runs, deviation, smallest, MARGIN, runs_for(methods, MARGIN / deviation), own is not None)


@cache
def smallest_difference(methods: int, runs: int) -> float:
    """Compute the smallest difference that is called better with a probability of 80 %, in run-to-run deviations.

    The pair is corrected for all pairs, as the first step of Holm's method does. The runs are normal and vary equally.
    Tables are simulated with a fixed seed, since the number of borrowed degrees of freedom varies between tables.
    """
    generator = np.random.default_rng(0)
    pairs = len(pairs_of(methods)[0])
    shape = (max(50, _SIMULATED_PAIRS // pairs), methods)
    means = generator.standard_normal(shape) / np.sqrt(runs)
    variances = generator.chisquare(runs - 1, shape) / (runs - 1)
    tests = moderated_t_of_moments(means, variances, np.full(shape, float(runs)))
    return float(smallest_of_simulated(tests, ALPHA, pairs))


@cache
def runs_for(methods: int, difference: float) -> int | None:
    """Return the runs of each method that a difference in run-to-run deviations takes; None above `MOST_RUNS`."""
    low, high = 1, 2
    while smallest_difference(methods, high) > difference:
        low, high = high, 2 * high
        if low > MOST_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if smallest_difference(methods, middle) > difference else (low, middle)
    return high if high <= MOST_RUNS else None


@cache
def measured_deviation(
    metric: str = "map_at_r", kind: EmbeddingKind = "concatenated", *, on_features: bool = False
) -> float:
    """Return the run-to-run deviation of the experiments in `results/measured`, a fraction of 1, over all methods."""
    measured: list[RunValues] = []
    for _, kept in kept_measurements():
        if kept.summary.experiment.trunk.is_input_features == on_features:
            measured += run_values(kept.records, metric, kind).values()
    deviation = run_deviation(measured)
    if deviation is None:
        raise ValueError("no measured experiment has two runs of a method")
    return deviation


def run_deviation(methods: Iterable[RunValues]) -> float | None:
    """Return the standard deviation from run to run, pooled over methods; None if none has two runs that differ."""
    repeated = [list(by_run.values()) for by_run in methods if len(by_run) > 1]
    if not repeated:
        return None
    variances = np.array([float(np.var(values, ddof=1)) for values in repeated])
    pooled = cautious_prior(variances, np.array([len(values) - 1.0 for values in repeated])).variance
    return float(np.sqrt(pooled)) or None
