"""`make calibrate`, second part: how often methods are stopped wrongly, and how many runs stopping saves.

Every simulated experiment goes through the functions that stop the methods of an experiment and test the others.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from results.records.provenance import provenance
from results.statistics.early_stopping import RunsKind, SimulatedTables, boundary, p_against_leader, simulated_runs
from results.statistics.method_comparison import final_alpha
from results.statistics.pair_tests import better_p, moderated_t, pairs_of
from results.store.experiment_results import FOLDER
from results.whole_files import write_whole

EXPERIMENTS = {2: 10_000, 5: 10_000, 15: 4_000, 31: 2_000}
"""Simulated experiments by number of methods."""

ROUNDS = ((3, 5), (3, 10))
KINDS: tuple[RunsKind, ...] = ("equal", "unequal", "one noisy", "heavy tails")
GAPS = (4.0, 8.0)
"""True differences between the halves of the methods, in run-to-run deviations."""

Array = npt.NDArray[np.float64]


def runs_given(values: Array, first: int, level: float) -> npt.NDArray[np.intp]:
    """Return how many runs each method gets, of shape (experiments, methods). Stopped methods stay in the look."""
    at_most = values.shape[-1]
    given = np.full(values.shape[:2], at_most)
    for runs in range(at_most - 1, first - 1, -1):
        given = np.where(p_against_leader(values[..., :runs]) < level, runs, given)
    return given


def simulate(setting: SimulatedTables, first: int, experiments: int, seed: int) -> dict[str, Any]:
    """Simulate one kind of experiment: equally good methods, and halves of the methods that differ."""
    level, generator = boundary(setting.methods, first, setting.runs), np.random.default_rng(seed)
    values = simulated_runs(setting, experiments, generator)
    stopped = runs_given(values, first, level) < setting.runs
    one, other = pairs_of(setting.methods)
    tested = ~stopped[:, one] & ~stopped[:, other]
    claimed = ((better_p(moderated_t(values)) < final_alpha()) & tested).any(axis=-1)
    return {
        **asdict(setting),
        "first": first,
        "level": level,
        "experiments": experiments,
        "wrong_stop": float(stopped.any(axis=-1).mean()),
        "wrong_stop_or_claim": float((stopped.any(axis=-1) | claimed).mean()),
        "by_difference": {str(gap): _with_difference(values, first, level, gap) for gap in GAPS},
    }


def _with_difference(values: Array, first: int, level: float, gap: float) -> dict[str, float]:
    """Half of the methods are behind by `gap`: shares of wrong stops, of stopped methods, and of saved runs."""
    behind = np.arange(values.shape[1]) >= (values.shape[1] + 1) // 2
    given, at_most = runs_given(values - gap * behind[:, None], first, level), values.shape[-1]
    return {
        "wrong_stop": float((given[:, ~behind] < at_most).any(axis=-1).mean()),
        "stopped": float((given[:, behind] < at_most).mean()),
        "runs_saved": float(1 - given.mean() / at_most),
    }


def main() -> None:
    """Simulate all settings and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "early_stopping.json")
    parser.add_argument("--experiments", type=float, default=1.0, help="multiple of the simulated experiments")
    arguments = parser.parse_args()
    outcomes = [
        simulate(SimulatedTables(methods, runs, kind), first, max(10, int(arguments.experiments * count)), seed)
        for seed, (methods, count) in enumerate(EXPERIMENTS.items())
        for first, runs in ROUNDS
        for kind in KINDS
    ]
    worst = max(outcome["wrong_stop_or_claim"] for outcome in outcomes)
    content = {
        "largest_share_of_experiments_with_a_wrong_stop_or_claim": worst,
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        "settings": outcomes,
    }
    write_whole(arguments.out, json.dumps(content, indent=1) + "\n")
    print(f"{arguments.out}: a wrong stop or a wrong claim in at most {100 * worst:.2f} % of the experiments")


if __name__ == "__main__":
    main()
