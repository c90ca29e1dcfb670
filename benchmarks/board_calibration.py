"""`python -m benchmarks.board_calibration`: how often a board over datasets is wrong, by simulation.

One pair of methods on 3 to 6 datasets, and boards of 14 methods on 3 datasets with 3 searches each. What is random for
users is random here: the true difference of each dataset, the measured one, and the standard error that a comparison
estimates, for one pair with ten degrees of freedom. The numbers go through the functions of the board.
"""

import json
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from results.answer.across_datasets import mean_ranks, over_datasets
from results.answer.pair_tests import Numbers, holm, pairs_of, pool_or_own
from results.answer.question import ALPHA
from results.atomic_files import write_atomically
from results.records.provenance import provenance
from results.store.experiment_results import FOLDER

FILE = FOLDER / "board_calibration.json"
TABLES = 20_000
DATASETS = (3, 4, 5, 6)
SPREADS = (0.0, 1.0, 2.0, 4.0)
"""Standard deviation of the true differences between datasets, in standard errors of a measured one."""
RATIOS = (1.0, 3.0)
"""Largest standard error of a dataset in the smallest."""
MEANS = (4.0, 8.0)
"""True mean differences, in standard errors."""
DEGREES = 10
METHODS, OF_A_BOARD = 14, 3


def consistent(differences: Numbers, errors: Numbers, degrees: float) -> npt.NDArray[np.bool_]:
    """Tell by table whether all intervals lie on one side of zero, with that of the mean, as `PairOverDatasets`."""
    outside = np.abs(differences) > special.stdtrit(degrees, 0.975) * errors
    sides, found = np.where(outside, np.sign(differences), 0), over_datasets(differences, errors)
    one_side = np.abs(sides.sum(axis=-1)) == differences.shape[-1]
    return np.asarray(one_side & (np.abs(found.mean) > found.half_width))


def simulate(number: int, datasets: int, spread: float, ratio: float, tables: int) -> dict[str, Any]:
    """Simulate one kind of table; `number` is its seed."""
    generator = np.random.default_rng([13, number])
    errors = np.geomspace(1, ratio, datasets)
    errors /= np.sqrt(np.mean(errors**2))
    differences, estimated = _measured(generator, spread, np.broadcast_to(errors, (tables, datasets)))
    found = over_datasets(differences, estimated)
    narrow = np.var(differences, axis=-1, ddof=1) < (estimated**2).mean(axis=-1)
    # Another dataset is measured as precisely as one of these, whichever it is.
    another, _ = _measured(generator, spread, generator.choice(errors, tables))
    covered = np.abs(another - found.mean) <= found.prediction
    return {
        "datasets": datasets,
        "spread": spread,
        "ratio": ratio,
        "wrong": float(consistent(differences, estimated, DEGREES).mean()),
        "mean covered": float((np.abs(found.mean) <= found.half_width).mean()),
        "prediction covered": float(covered.mean()),
        "narrow rows": float(narrow.mean()),
        "prediction of narrow rows covered": float(covered[narrow].mean()),
        "seen": {str(mean): float(consistent(differences + mean, estimated, DEGREES).mean()) for mean in MEANS},
    }


def _measured(generator: np.random.Generator, spread: float, errors: Numbers) -> tuple[Numbers, Numbers]:
    """Draw differences around zero, and the standard errors that are estimated for them."""
    differences = spread * generator.standard_normal(errors.shape) + errors * generator.standard_normal(errors.shape)
    return differences, errors * np.sqrt(generator.chisquare(DEGREES, errors.shape) / DEGREES)


def board(number: int, spread: float, tables: int) -> dict[str, Any]:
    """Simulate boards of methods that are equal on average, and return the shares of those with a wrong row."""
    generator = np.random.default_rng([14, number])
    first, second = pairs_of(METHODS)
    wrong = dict.fromkeys(("all pairs", "best", "one named", "all pairs, surviving"), 0)
    for _ in range(tables):
        # The error of a difference of two means over three searches is sqrt(2 / 3); its true spread is in these.
        truth = spread * generator.standard_normal((OF_A_BOARD, METHODS, 1)) / np.sqrt(3)
        searches = truth + generator.standard_normal((OF_A_BOARD, METHODS, 3))
        means = searches.mean(axis=-1)
        pairs = pool_or_own(means, searches.var(axis=-1, ddof=1), 3).pairs()
        rows = consistent(pairs.difference.T, pairs.error.T, float(pairs.degrees[0, 0]))
        best = np.argmin(sum(mean_ranks(own) for own in means))
        over_all = over_datasets(pairs.difference.T, pairs.error.T)
        surviving = holm(np.maximum(pairs.p.max(axis=0), over_all.p)) < ALPHA
        wrong["all pairs"] += bool(rows.any())
        wrong["best"] += bool(rows[(first == best) | (second == best)].any())
        wrong["one named"] += bool(rows[(first == 0) | (second == 0)].any())
        wrong["all pairs, surviving"] += bool((rows & surviving).any())
    return {"spread": spread, "wrong": {question: count / tables for question, count in wrong.items()}}


if __name__ == "__main__":
    kinds = enumerate(product(DATASETS, SPREADS, RATIOS))
    content = {
        "tables": TABLES,
        "degrees": DEGREES,
        "cells": [simulate(number, *kind, TABLES) for number, kind in kinds],
        "boards": {"methods": METHODS, "datasets": OF_A_BOARD, "tables": TABLES // 4}
        | {"cells": [board(number, spread, TABLES // 4) for number, spread in enumerate(SPREADS)]},
        "provenance": provenance("cpu", 1).model_dump(),
    }
    write_atomically(FILE, json.dumps(content, indent=1) + "\n")
