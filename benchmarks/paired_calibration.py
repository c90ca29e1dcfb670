"""`python -m benchmarks.paired_calibration`: how often paired blocks and folds are wrong, by simulation.

All methods are equal. Blocks add three deviations of a run to all methods alike. Folds share training data, so the
scores of two folds are correlated by 1 / folds, as Nadeau and Bengio assume. A table is wrong if any pair is called
better. The tables go through the product's functions, paired, and as runs that nobody paired.
"""

import json
from itertools import product
from typing import Any

import numpy as np

from results.answer.pair_tests import (
    SHARE_OF_BETTER,
    Numbers,
    PairDifferences,
    adjusted,
    paired_differences,
    pool_or_own,
)
from results.answer.question import ALPHA
from results.atomic_files import write_atomically
from results.records.provenance import provenance
from results.store.experiment_results import FOLDER

FILE = FOLDER / "paired_calibration.json"
TABLES = 6_000
METHODS, BLOCKS = (2, 5, 14), (3, 5, 10)
GAP = 2.0
"""True difference for the power, in deviations of a run."""
KINDS = {
    "normal": "normal scores",
    "half x3": "every second method varies three times as much",
    "one x5": "one method varies five times as much",
    "skewed": "skewed scores: the negative of a gamma variable of shape 2",
    "heavy tails": "Student's t with 3 degrees of freedom",
    "two together": "two methods move together: half of their variance is common",
}
FOLDS = ((3, 5), (10, 10))
"""Repeats and folds."""


def scores(kind: str, shape: tuple[int, int, int], generator: np.random.Generator) -> Numbers:
    """Draw scores of tables, methods and blocks, of deviation 1 but where a kind says otherwise."""
    if kind == "skewed":
        return (2 - generator.gamma(2.0, size=shape)) / np.sqrt(2)
    if kind == "heavy tails":
        return generator.standard_t(3, shape) / np.sqrt(3)
    drawn = generator.standard_normal(shape)
    if kind == "half x3":
        drawn[:, 1::2] *= 3
    elif kind == "one x5":
        drawn[:, -1] *= 5
    elif kind == "two together":
        drawn[:, :2] = (drawn[:, :2] + generator.standard_normal((shape[0], 1, shape[2]))) / np.sqrt(2)
    return drawn


def better(pairs: PairDifferences, methods: int) -> Numbers:
    """Tell which pairs are called better."""
    return np.asarray(adjusted(pairs.p, "all", methods) / SHARE_OF_BETTER < ALPHA)


def of_blocks(number: int, kind: str, methods: int, blocks: int, tables: int) -> dict[str, Any]:
    """Simulate one cell; `number` is its seed."""
    generator = np.random.default_rng([31, number])
    values = scores(kind, (tables, methods, blocks), generator)
    values = values + 3 * generator.standard_normal((tables, 1, blocks))
    gaps = np.zeros((methods, 1))
    gaps[0] = GAP
    alone = pool_or_own((values + gaps).mean(axis=-1), values.var(axis=-1, ddof=1), blocks).pairs()
    seen = {
        "seen": better(paired_differences(values + gaps), methods)[:, : methods - 1].mean(),
        "seen unpaired": better(alone, methods)[:, : methods - 1].mean(),
    }
    wrong = better(paired_differences(values), methods).any(axis=-1).mean()
    return {"kind": kind, "methods": methods, "blocks": blocks, "wrong": wrong, **seen}


def of_folds(number: int, repeats: int, folds: int, tables: int) -> dict[str, Any]:
    """Simulate two equal learners, by their folds, and by the same numbers taken for runs."""
    generator, count = np.random.default_rng([32, number]), repeats * folds
    share = 1 / folds
    common = np.sqrt(share) * generator.standard_normal((tables, 2, 1))
    values = common + np.sqrt(1 - share) * generator.standard_normal((tables, 2, count))
    runs = pool_or_own(values.mean(axis=-1), values.var(axis=-1, ddof=1), count).pairs()
    wrong = {
        name: better(pairs, 2).mean()
        for name, pairs in (("wrong", paired_differences(values, folds)), ("as runs", runs))
    }
    return {"repeats": repeats, "folds": folds, **wrong}


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as it is written."""
    return {name: round(float(value), 4) if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    """Simulate all cells and write the file."""
    cells = enumerate(product(KINDS, METHODS, BLOCKS))
    content = {
        **{"alpha": ALPHA, "tables": TABLES, "kinds": KINDS},
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        "blocks": [rounded(of_blocks(number, *cell, TABLES)) for number, cell in cells],
        "folds": [rounded(of_folds(number, *cell, TABLES)) for number, cell in enumerate(FOLDS)],
    }
    write_atomically(FILE, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
