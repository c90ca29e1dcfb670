"""Simulated tables: how often the claims of a comparison are wrong, and how often true differences are seen.

The unit is the run-to-run standard deviation of an ordinary method. Every table goes through the functions that compare
the methods of an experiment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from results.statistics.moderated import Numbers, limma_prior
from results.statistics.pair_tests import TESTS, PairDifferences, better_p, equal_p, moderated_t, pairs_of

RunsKind = Literal["equal", "unequal", "one noisy", "heavy tails", "one single run"]
RUNS_KINDS: dict[RunsKind, str] = {
    "equal": "normal runs with equal deviations",
    "unequal": "every second method varies three times as much",
    "one noisy": "one method varies five times as much",
    "heavy tails": "runs with Student's t distribution of 3 degrees of freedom",
    "one single run": "equal deviations; one method has a single run",
}
"""Kinds of runs, with their description."""

MARGINS = (1.0, 5.0)
"""Margins of equality in the simulations, in run-to-run deviations."""

DIFFERENCES = (2.0, 4.0, 8.0)
"""True differences in the simulations of power, in run-to-run deviations."""

_PAIRS_AT_ONCE = 400_000


@dataclass(frozen=True)
class SimulatedTables:
    """A kind of table.

    Attributes:
        methods: Number of methods.
        runs: Runs of each method.
        kind: Kind of runs.
        correlation: Correlation of matched runs; 0 for runs that share nothing.
    """

    methods: int
    runs: int
    kind: RunsKind
    correlation: float = 0.0


@dataclass(frozen=True)
class WrongClaims:
    """Shares of tables with a wrong claim.

    Attributes:
        better: Wrong "better": the means are equal, or the other method is better.
        equal: Wrong "equal": the means differ by the margin.
        any: Either.
    """

    better: float
    equal: float
    any: float


def simulated_runs(setting: SimulatedTables, tables: int, generator: np.random.Generator) -> Numbers:
    """Draw runs around 0.

    The values have the shape (tables, methods, runs), with NaN for runs that a method does not have.
    """
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


def wrong_claims(
    setting: SimulatedTables,
    tables: int,
    generator: np.random.Generator,
    gap: float = 0.0,
    margin: float = 1.0,
    alpha: float = 0.05,
    test: Callable[[Numbers], PairDifferences] = moderated_t,
) -> WrongClaims:
    """Count the tables with wrong claims.

    `gap` is the true difference between the first and the second half of the methods. With 0 all methods are equal;
    with `margin`, "equal" is wrong between the halves.
    """
    first, second = pairs_of(setting.methods)
    truth = _halves(setting.methods, gap)
    true_difference = truth[first] - truth[second]
    counts = np.zeros(3)
    for number in _parts(setting.methods, tables):
        pairs = test(simulated_runs(setting, number, generator) + truth[:, None])
        claimed = better_p(pairs) < alpha
        better = (claimed & (np.sign(pairs.difference) != np.sign(true_difference))).any(axis=-1)
        equal = ((equal_p(pairs, margin) < alpha) & ~claimed & (np.abs(true_difference) >= margin)).any(axis=-1)
        counts += [better.sum(), equal.sum(), (better | equal).sum()]
    return WrongClaims(*(counts / tables).tolist())


def power(setting: SimulatedTables, tables: int, seed: int, gap: float, alpha: float = 0.05) -> dict[str, float]:
    """Compute the share of true differences that are called better, for every test on the same tables.

    `gap` is the true difference between the first and the second half of the methods.
    """
    first, second = pairs_of(setting.methods)
    truth = _halves(setting.methods, gap)
    true_difference = truth[first] - truth[second]
    differs, seen = true_difference != 0, {}
    for name, test in TESTS.items():
        generator, claims = np.random.default_rng(seed), 0
        for number in _parts(setting.methods, tables):
            pairs = test(simulated_runs(setting, number, generator) + truth[:, None])
            right = (better_p(pairs) < alpha) & (np.sign(pairs.difference) == np.sign(true_difference))
            claims += int(right[:, differs].sum())
        seen[str(name)] = claims / (tables * int(differs.sum()))
    return seen


def claimed_equal(
    setting: SimulatedTables, tables: int, generator: np.random.Generator, margin: float, alpha: float = 0.05
) -> float:
    """Compute the share of pairs that are called equal where all methods are equal."""
    claims = 0
    for number in _parts(setting.methods, tables):
        pairs = moderated_t(simulated_runs(setting, number, generator))
        claims += int(((equal_p(pairs, margin) < alpha) & ~(better_p(pairs) < alpha)).sum())
    return claims / (tables * len(pairs_of(setting.methods)[0]))


def limma_t(values: Numbers) -> PairDifferences:
    """Test with limma's own prior, for comparison."""
    return moderated_t(values, limma_prior)


def _halves(methods: int, gap: float) -> Numbers:
    return np.where(np.arange(methods) < (methods + 1) // 2, gap, 0.0)


def _parts(methods: int, tables: int) -> list[int]:
    """Split a number of tables so that each part fits into memory."""
    size = max(1, _PAIRS_AT_ONCE // len(pairs_of(methods)[0]))
    return [min(size, tables - start) for start in range(0, tables, size)]


def _correlated(values: Numbers, correlation: float) -> Numbers:
    """Give equal correlations to the methods' runs of one column, also negative ones down to -1 / (methods - 1)."""
    methods = values.shape[1]
    share = -correlation * methods / (1 - correlation)
    mixed = values - (1 - np.sqrt(1 - share)) * values.mean(axis=1, keepdims=True)
    return np.asarray(mixed / np.sqrt(1 - share / methods))
