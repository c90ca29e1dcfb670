"""`make calibrate`: simulates tables and writes the errors and the power of the comparison to results/measured.

The settings are independent, so they are spread over the cores. Seeds are fixed: the same code writes the same numbers.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from results.experiment_results import FOLDER
from results.provenance import provenance
from results.statistics.calibration import (
    DIFFERENCES,
    MARGINS,
    RUNS_KINDS,
    Setting,
    claimed_equal,
    limma_t,
    power,
    wrong_claims,
)
from results.statistics.claims import SHARE_OF_BETTER
from results.whole_files import write_whole

TABLES = {2: 10_000, 5: 10_000, 15: 4_000, 31: 2_000}
"""Simulated tables by number of methods."""

RUNS = (2, 3, 5, 10)
ALPHA = 0.05


def settings() -> list[Setting]:
    """All simulated kinds of tables. Negative correlations are possible only between few methods."""
    chosen = []
    for methods in TABLES:
        correlations = (0.0, 0.3, -0.18) if methods <= 5 else (0.0, 0.3)
        for runs in RUNS:
            for kind in RUNS_KINDS:
                if kind != "one single run":
                    chosen += [Setting(methods, runs, kind, correlation) for correlation in correlations]
                elif methods > 2:
                    chosen.append(Setting(methods, runs, kind))
    return chosen


def calibrate(number: int, setting: Setting, tables: int) -> dict[str, Any]:
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


def main() -> None:
    """Simulate all settings and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "calibration.json")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tables", type=float, default=1.0, help="multiple of the number of simulated tables")
    arguments = parser.parse_args()
    chosen = settings()
    counts = [max(10, int(arguments.tables * TABLES[setting.methods])) for setting in chosen]
    with ProcessPoolExecutor(arguments.processes) as pool:
        outcomes = list(pool.map(calibrate, range(len(chosen)), chosen, counts))
    worst = max(
        max(outcome["wrong_better_without_differences"], *(w["any"] for w in outcome["wrong_at_margin"].values()))
        for outcome in outcomes
    )
    content = {
        "alpha": ALPHA,
        "share_of_better": SHARE_OF_BETTER,
        "largest_simulation_error_at_alpha": max((ALPHA * (1 - ALPHA) / count) ** 0.5 for count in counts),
        "largest_share_of_tables_with_a_wrong_claim": worst,
        "kinds": RUNS_KINDS,
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        "settings": outcomes,
    }
    write_whole(arguments.out, json.dumps(content, indent=1) + "\n")
    print(f"{arguments.out}: a wrong claim in at most {100 * worst:.2f} % of the tables of a setting")


if __name__ == "__main__":
    main()
