"""`make calibrate`: simulates tables, and writes errors and power to results/measured.

What is random for users is random here: the search and its runs. The tables go through the functions of the comparison.
Cells are independent, so they are spread over the cores. Seeds are fixed: the same code writes the same numbers.
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from results.statistics.compare import ALPHA
from results.statistics.comparison import MethodValues
from results.statistics.deviations import WIDENING
from results.statistics.pair_tests import (
    SHARE_OF_BETTER,
    Numbers,
    PairDifferences,
    adjusted,
    adjusted_in_one_step,
    pairs_of,
    pool_or_own,
    with_assumed_search,
)
from results.statistics.tuning import gains
from scipy import special

from results.atomic_files import write_atomically
from results.records.provenance import provenance
from results.spec.search_settings import LOOKS
from results.store.experiment_results import FOLDER

TABLES = 4_000
"""Simulated tables of a cell; a quarter of them for power."""

Truths = npt.NDArray[np.bool_]
Kind = Literal["normal", "skewed", "failing", "half x3", "one x5", "one fails by 8", "one fails by 16"]
KINDS: dict[Kind, str] = {
    "normal": "normal searches with equal deviations",
    "skewed": "skewed searches: the negative of a gamma variable of shape 2",
    "failing": "one search in five falls by 8 deviations of the others",
    "half x3": "every second method's searches vary three times as much",
    "one x5": "one method's searches vary five times as much",
    "one fails by 8": "one method's searches fail, one in five by 8 deviations",
    "one fails by 16": "one method's searches fail, one in five by 16 deviations",
}
METHODS, SEARCHES = (2, 5, 15, 31), (2, 3, 5)
BUDGETS = ((1, 2.0), (3, 0.5), (5, 2.0))
"""Runs of a search, and the deviation of a search in deviations of a run."""
GAPS = (4.0, 8.0)
"""True differences, in deviations of a search."""
RATIOS = (0.5, 1.0, 2.0)
"""True deviation of a search in those of the record, with one search each."""
DEGREES_OF_RECORD = 11
UNEQUAL, DEGREES_OF_UNEQUAL = (7.66, 1.14, 1.59, 0.63, 1.62, 2.58, 1.23, 0.73), 40
"""Deviations of the losses of search_variance_handwriting, for methods as unequal as those of a record; its degrees."""
FIXED = (3, 5, 8)
"""Numbers of searches that a run until decided is compared with."""
_PAIRS_AT_ONCE = 400_000


@dataclass(frozen=True)
class Cell:
    """A kind of table with repeated searches. `ratio`: deviation of a search in deviations of a run."""

    methods: int
    searches: int
    runs: int
    ratio: float
    kind: Kind


def cells() -> list[Cell]:
    """All simulated kinds of tables."""
    kinds = [kind for kind in KINDS if "fails by" not in kind]
    chosen = [*product(METHODS, SEARCHES, BUDGETS, kinds), *product(METHODS, SEARCHES, BUDGETS[2:], list(KINDS)[-2:])]
    return [Cell(methods, searches, runs, ratio, kind) for methods, searches, (runs, ratio), kind in chosen]


def search_means(cell: Cell, tables: int, generator: np.random.Generator) -> Numbers:
    """Draw means of searches, of shape (tables, methods, searches), in deviations of an ordinary search."""
    shape = (tables, cell.methods, cell.searches)
    values = generator.standard_normal(shape)
    order = np.arange(cell.methods)
    if cell.kind == "skewed":
        values = (2 - generator.gamma(2, size=shape)) / np.sqrt(2)
    if cell.kind == "failing":
        values -= 8 * (generator.random(shape) < 0.2)
    if "fails by" in cell.kind:
        # The failures of the first method; its expected score is that of the others.
        depth = float(cell.kind.rpartition(" ")[2])
        values[:, 0] += depth * (0.2 - (generator.random(shape[::2]) < 0.2))
    if cell.kind == "half x3":
        values *= np.where(order % 2, 3.0, 1.0)[:, None]
    if cell.kind == "one x5":
        values *= np.where(order == 0, 5.0, 1.0)[:, None]
    return np.asarray(values + generator.standard_normal(shape) / (cell.ratio * np.sqrt(cell.runs)))


@dataclass(frozen=True)
class Claims:
    """Claims of tables: on the last axis all pairs, or those of the first method with each other one."""

    difference: Numbers
    better: Truths
    beyond: Truths
    equal: Truths


def claims(
    means: Numbers, variances: Numbers, searches: int, compare: str, margin: float, level: float = ALPHA
) -> Claims:
    """Compare the methods of every table as `compare_methods` does. `named` compares each with the first method."""
    count = means.shape[-1]
    pairs = pool_or_own(means, variances, searches).pairs()
    if compare != "all":
        asked = count - 1
        pairs = PairDifferences(pairs.difference[..., :asked], pairs.error[..., :asked], pairs.degrees[..., :asked])
    better = adjusted(pairs.p, compare, count) / SHARE_OF_BETTER < level
    beyond = better & (adjusted(pairs.p_beyond(margin), compare, count) / SHARE_OF_BETTER < level)
    adjust = adjusted_in_one_step if compare == "best" else adjusted
    equal = adjust(pairs.p_equal(margin), compare, count) / (1 - SHARE_OF_BETTER) < level
    return Claims(pairs.difference, better, beyond, equal)


def wrong(found: Claims, truth: Numbers, margin: float) -> Truths:
    """Tell which claims are wrong; `truth` has the true differences."""
    other_way = np.sign(found.difference) != np.sign(truth)
    beyond = found.beyond & (other_way | (np.abs(truth) <= margin))
    return np.asarray((found.better & other_way) | beyond | (found.equal & (np.abs(truth) >= margin)))


def wrong_share(
    cell: Cell, truth: Numbers, compare: str, tables: int, seed: Sequence[int], margin: float = 1.0
) -> float:
    """Return the share of tables with a wrong claim; `truth` has the methods' true means."""
    generator, count = np.random.default_rng(seed), 0
    for number in _parts(cell.methods, tables):
        found, true_difference = _claims(cell, truth, compare, number, generator, margin)
        count += int(wrong(found, true_difference, margin).any(axis=-1).sum())
    return count / tables


def power(cell: Cell, truth: Numbers, compare: str, tables: int, seed: Sequence[int]) -> tuple[float, float]:
    """Return the share of true differences that are called better, and of tables where all of them are."""
    generator, pairs, whole, of_pairs = np.random.default_rng(seed), 0, 0, 0
    for number in _parts(cell.methods, tables):
        found, true_difference = _claims(cell, truth, compare, number, generator, 1.0)
        right = found.better & (np.sign(found.difference) == np.sign(true_difference))
        differs = np.broadcast_to(true_difference != 0, right.shape)
        pairs, of_pairs = pairs + int(right[differs].sum()), of_pairs + int(differs.sum())
        whole += int((right | ~differs).all(axis=-1).sum())
    return pairs / max(1, of_pairs), whole / tables


def _claims(
    cell: Cell, truth: Numbers, compare: str, tables: int, generator: np.random.Generator, margin: float
) -> tuple[Claims, Numbers]:
    values = search_means(cell, tables, generator) + truth[:, None]
    means, variances = values.mean(axis=-1), values.var(axis=-1, ddof=1)
    truths = np.broadcast_to(truth, means.shape)
    if compare == "best":
        order = np.argsort(-means, axis=-1)
        means, variances, truths = (np.take_along_axis(part, order, axis=-1) for part in (means, variances, truths))
    found = claims(means, variances, cell.searches, compare, margin)
    first, second = pairs_of(cell.methods)
    return found, (truths[..., first] - truths[..., second])[..., : found.difference.shape[-1]]


def _parts(methods: int, tables: int) -> list[int]:
    """Split a number of tables so that each part fits into memory."""
    size = max(1, _PAIRS_AT_ONCE // len(pairs_of(methods)[0]))
    return [min(size, tables - start) for start in range(0, tables, size)]


def halves(methods: int, gap: float) -> Numbers:
    """Return true means of which the first half lies `gap` above the second."""
    return np.where(np.arange(methods) < (methods + 1) // 2, gap, 0.0)


def calibrate(number: int, cell: Cell, tables: int) -> dict[str, Any]:
    """Simulate one cell; `number` is its seed."""
    count, few = cell.methods, max(tables // 4, 1)
    seeds = ([11, number, place] for place in range(20))
    none, far_below = np.zeros(count), halves(count, 1000.0)
    named = "the noisy method named" if cell.kind == "one x5" else "one named"
    content: dict[str, Any] = {
        **asdict(cell),
        "wrong": {
            "all pairs": wrong_share(cell, none, "all", tables, next(seeds)),
            "each with the best": wrong_share(cell, none, "best", tables, next(seeds)),
            named: wrong_share(cell, none, "named", tables, next(seeds)),
            "all pairs, half far below": wrong_share(cell, far_below, "all", tables, next(seeds)),
            # Half of the methods are one margin above the others, so that "within" is wrong between the halves.
            "all pairs, at the margin": max(
                wrong_share(cell, halves(count, margin), "all", tables, next(seeds), margin) for margin in (1.0, 5.0)
            ),
        },
        "coverage": coverage(cell, tables, next(seeds)),
    }
    if "fails by" in cell.kind:
        content["typical"] = {
            question: typical_share(cell, question, tables, next(seeds)) for question in ("all", "best", "named")
        }
    if cell.kind == "normal":
        above = np.where(np.arange(count) == 0, 1.0, 0.0)
        content["power"] = {
            str(gap): {
                "all pairs": power(cell, halves(count, gap), "all", few, next(seeds))[0],
                "best above every other": power(cell, gap * above, "best", few, next(seeds))[1],
                "one named": power(cell, gap * above, "named", few, next(seeds))[0],
            }
            for gap in GAPS
        }
    return content


def typical_share(cell: Cell, compare: str, tables: int, seed: Sequence[int]) -> float:
    """Return the share of tables that wrongly call a method better, if all are equal where no search fails."""
    generator, count = np.random.default_rng(seed), 0
    depth = float(cell.kind.rpartition(" ")[2])
    lower = np.where(np.arange(cell.methods) == 0, -0.2 * depth, 0.0)
    for number in _parts(cell.methods, tables):
        # A "within" is about means, which count failures, so only "better" is a statement about a typical search.
        found, _ = _claims(cell, lower, compare, number, generator, 1.0)
        count += int(found.better.any(axis=-1).sum())
    return count / tables


def coverage(cell: Cell, tables: int, seed: Sequence[int]) -> float:
    """Return the share of the methods' intervals that contain the true mean; of `one x5` those of the noisy method."""
    values = search_means(cell, tables, np.random.default_rng(seed))
    errors = pool_or_own(values.mean(axis=-1), values.var(axis=-1, ddof=1), cell.searches)
    truth = -8 * 0.2 if cell.kind == "failing" else 0.0
    inside = np.abs(errors.means - truth) <= special.stdtrit(errors.degrees, 0.975) * np.sqrt(errors.squares)
    return float(inside[:, :1].mean() if cell.kind == "one x5" else inside.mean())


def assumed(number: int, methods: int, ratio: float, tables: int, *, unequal: bool = False) -> dict[str, Any]:
    """Simulate tables with one search each, whose true deviation is `ratio` times that of the record."""
    first, second = pairs_of(methods)
    shares = {}
    for gap in (0.0, *GAPS):
        generator, claimed = np.random.default_rng([12, number, int(gap)]), 0.0
        truth = halves(methods, gap)
        true_difference = truth[first] - truth[second]
        for count in _parts(methods, tables):
            pairs = _single_searches(truth, ratio, count, generator, unequal=unequal)
            better = adjusted_in_one_step(pairs.p, "all", methods) / SHARE_OF_BETTER < ALPHA
            if gap:
                right = better & (np.sign(pairs.difference) == np.sign(true_difference))
                claimed += float(right[:, true_difference != 0].mean()) * count
            else:
                claimed += int(better.any(axis=-1).sum())
        shares[gap] = claimed / tables
    seen = {str(gap): shares[gap] for gap in GAPS}
    return {"methods": methods, "ratio": ratio, "unequal": unequal, "wrong": shares[0.0], "power": seen}


def _single_searches(
    truth: Numbers, ratio: float, tables: int, generator: np.random.Generator, *, unequal: bool
) -> PairDifferences:
    shape, degrees = (tables, len(truth)), DEGREES_OF_UNEQUAL if unequal else DEGREES_OF_RECORD
    record = np.sqrt(generator.chisquare(degrees, (tables, 1)) / degrees) / ratio
    of_methods = np.array(UNEQUAL) / np.sqrt(np.mean(np.square(UNEQUAL)))
    scale = generator.choice(of_methods, shape) if unequal else 1.0
    searches = truth + scale * generator.standard_normal(shape)
    runs = searches[..., None] + 0.5 * generator.standard_normal((*shape, 5))
    widened = np.broadcast_to(WIDENING * record, shape)
    counts = np.full(shape, 5.0)
    return with_assumed_search(runs.mean(axis=-1), runs.var(axis=-1, ddof=1), counts, widened, degrees)


def tuning(number: int, methods: int, searches: int, gain: float, tables: int) -> dict[str, Any]:
    """Simulate the gains of tuning over five runs of the defaults, of which every second method has one."""
    generator = np.random.default_rng([16, number])
    truth = np.where(np.arange(methods) % 2, gain, 0.0)
    tuned = truth[:, None] + generator.standard_normal((tables, methods, searches))
    default = 0.5 * generator.standard_normal((tables, methods, 5))
    errors, seen, keys = 0, 0.0, [str(number) for number in range(methods)]
    for own, given in zip(tuned, default, strict=True):
        values = [[MethodValues(tuple(one), len(one)) for one in kind] for kind in (own, given)]
        found = gains(dict(zip(keys, zip(*values, strict=True), strict=True)))
        claimed = np.array([one.p < ALPHA for one in found])
        errors += int(claimed[truth == 0].any())
        seen += float(claimed[1::2].mean())
    return {"methods": methods, "searches": searches, "gain": gain, "wrong": errors / tables, "seen": seen / tables}


def until_decided(number: int, methods: int, kind: Kind, gap: float, tables: int) -> dict[str, Any]:
    """Simulate planned looks; neighbours differ by `gap`. Wrong is the worst of no difference and two margins."""
    values = search_means(Cell(methods, LOOKS[-1], 1, 1e9, kind), tables, np.random.default_rng([15, number]))
    worst = max(_wrong_at_a_look(values, halves(methods, margin), margin or 1.0) for margin in (0.0, 1.0, 5.0))
    values += -gap * np.arange(methods)[:, None]
    claimed = np.zeros((tables, len(pairs_of(methods)[0])), dtype=bool)
    cost = np.full(tables, float(LOOKS[-1]))
    for look in LOOKS:
        found, was_decided = _at(values[..., :look], ALPHA * look / sum(LOOKS)), claimed.all(axis=-1)
        claimed |= found.better
        cost[claimed.all(axis=-1) & ~was_decided] = look
    fixed = {str(count): float(_at(values[..., :count], ALPHA).better.all(axis=-1).mean()) for count in FIXED}
    return {
        **{"methods": methods, "kind": kind, "gap": gap, "wrong": worst},
        **{"decided": float(claimed.all(axis=-1).mean()), "searches": float(cost.mean()), "fixed": fixed},
    }


def _wrong_at_a_look(values: Numbers, truth: Numbers, margin: float) -> float:
    """The share of tables with a wrong claim at any look, if `truth` is added to the values."""
    first, second = pairs_of(len(truth))
    any_wrong = np.zeros(len(values), dtype=bool)
    for look in LOOKS:
        found = _at((values + truth[:, None])[..., :look], ALPHA * look / sum(LOOKS), margin)
        any_wrong |= wrong(found, truth[first] - truth[second], margin).any(axis=-1)
    return float(any_wrong.mean())


def _at(values: Numbers, level: float, margin: float = 1.0) -> Claims:
    return claims(values.mean(axis=-1), values.var(axis=-1, ddof=1), values.shape[-1], "all", margin, level)


def simulate(tables: int, processes: int) -> dict[str, list[dict[str, Any]]]:
    """Simulate all cells: with repeated searches, with one search each, and with planned looks."""
    chosen = cells()
    single = [
        partial(assumed, *one, unequal=unequal) for unequal in (False, True) for one in _numbered(METHODS, RATIOS)
    ]
    kinds = [kind for kind in KINDS if "fails by" not in kind]
    looks = [partial(until_decided, *one) for one in _numbered((2, 5, 8), kinds, (0.0,))]
    looks += [partial(until_decided, *one) for one in _numbered((2, 5), ("normal",), (2.0, 3.0))]
    gained = _numbered((2, 8), (3, 6), (0.0, 4.0))
    with ProcessPoolExecutor(processes) as pool:
        repeated = [pool.submit(calibrate, number, cell, tables) for number, cell in enumerate(chosen)]
        others = {
            "one_search": [pool.submit(one, tables=tables) for one in single],
            "until_decided": [pool.submit(one, tables=tables) for one in looks],
            "tuning": [pool.submit(partial(tuning, *one), tables=tables) for one in gained],
        }
        found = {"repeated": repeated, **others}
        return {name: [future.result() for future in futures] for name, futures in found.items()}


def _numbered(*parts: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(number, *one) for number, one in enumerate(product(*parts))]


def main() -> None:
    """Simulate all cells and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "calibration.json")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tables", type=int, default=TABLES, help="simulated tables of a cell; default: %(default)s")
    arguments = parser.parse_args()
    content = {
        "alpha": ALPHA,
        "tables": arguments.tables,
        "kinds": KINDS,
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        **simulate(arguments.tables, arguments.processes),
    }
    write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
