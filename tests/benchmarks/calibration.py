"""`make calibrate`: simulates tables, writes errors and power to results/measured, and draws them for the docs.

The settings are independent, so they are spread over the cores. Seeds are fixed: the same code writes the same numbers.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reports.figures.style import svg_of
from results.records.provenance import provenance
from results.statistics.early_stopping import RUNS_KINDS, SimulatedTables, simulated_runs
from results.statistics.moderated import Numbers, limma_prior
from results.statistics.pair_tests import (
    SHARE_OF_BETTER,
    TESTS,
    PairDifferences,
    better_p,
    equal_p,
    moderated_t,
    pairs_of,
)
from results.store.experiment_results import FOLDER
from results.whole_files import write_whole
from tests.benchmarks.calibration_figure import calibration_figure, wrong_share

TABLES = {2: 10_000, 5: 10_000, 15: 4_000, 31: 2_000}
"""Simulated tables by number of methods."""

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "calibration.svg"

RUNS = (2, 3, 5, 10)
ALPHA = 0.05

MARGINS = (1.0, 5.0)
"""Margins of equality in the simulations, in run-to-run deviations."""

DIFFERENCES = (2.0, 4.0, 8.0)
"""True differences in the simulations of power, in run-to-run deviations."""

_PAIRS_AT_ONCE = 400_000


def settings() -> list[SimulatedTables]:
    """All simulated kinds of tables. Negative correlations are possible only between few methods."""
    chosen = []
    for methods in TABLES:
        correlations = (0.0, 0.3, -0.18) if methods <= 5 else (0.0, 0.3)
        for runs in RUNS:
            for kind in RUNS_KINDS:
                if kind != "one single run":
                    chosen += [SimulatedTables(methods, runs, kind, correlation) for correlation in correlations]
                elif methods > 2:
                    chosen.append(SimulatedTables(methods, runs, kind))
    return chosen


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


def calibrate(number: int, setting: SimulatedTables, tables: int) -> dict[str, Any]:
    """Simulate one setting; `number` is its seed."""
    generator = np.random.default_rng([11, number])
    error = wrong_claims(setting, tables, generator, alpha=ALPHA)
    at_margin = {str(m): wrong_claims(setting, tables, generator, gap=m, margin=m, alpha=ALPHA) for m in MARGINS}
    few = max(tables // 10, 1)
    return {
        **asdict(setting),
        "tables": tables,
        "wrong_better_without_differences": error.better,
        "wrong_at_margin": {margin: asdict(wrong) for margin, wrong in at_margin.items()},
        "wrong_better_with_limma_prior": wrong_claims(setting, tables, generator, alpha=ALPHA, test=limma_t).better,
        "power": {str(gap): power(setting, few, number, gap, ALPHA) for gap in DIFFERENCES},
        "claimed_equal": {str(m): claimed_equal(setting, few, generator, m, ALPHA) for m in MARGINS},
    }


def worst_share(outcomes: Iterable[Mapping[str, Any]], *, negative: bool) -> float:
    """Return the largest share of tables with a wrong claim, over the settings with or without negative correlation."""
    return max(wrong_share(outcome) for outcome in outcomes if (outcome["correlation"] < 0) == negative)


def main() -> None:
    """Simulate all settings and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "calibration.json")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tables", type=float, default=1.0, help="multiple of the number of simulated tables")
    arguments = parser.parse_args()
    chosen = settings()
    counts = [max(10, int(arguments.tables * TABLES[setting.methods])) for setting in chosen]
    with ProcessPoolExecutor(arguments.processes) as pool:
        outcomes = list(pool.map(calibrate, range(len(chosen)), chosen, counts))
    content = {
        "alpha": ALPHA,
        "share_of_better": SHARE_OF_BETTER,
        "largest_simulation_error_at_alpha": max((ALPHA * (1 - ALPHA) / count) ** 0.5 for count in counts),
        "largest_share_of_tables_with_a_wrong_claim": worst_share(outcomes, negative=False),
        "the_same_where_matched_runs_correlate_negatively": worst_share(outcomes, negative=True),
        "kinds": RUNS_KINDS,
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        "settings": outcomes,
    }
    write_whole(arguments.out, json.dumps(content, indent=1) + "\n")
    write_whole(arguments.figure, svg_of(calibration_figure(outcomes, ALPHA)))
    shares = [f"{100 * content[key]:.2f} %" for key in content if key.startswith(("largest_share", "the_same"))]
    print(
        f"{arguments.out}: a wrong claim in at most {shares[0]} of the tables, {shares[1]} with negative correlations"
    )


if __name__ == "__main__":
    main()
