"""`make calibrate`: simulates tables whose truth is known, and writes errors and power to results/measured.

What is random for users is random here. The tables go through the product's functions: searches that failed are set
aside, then means, tests, looks, ranks, gains and boards are made from what remains. Seeds are fixed: the same code
writes the same numbers.
"""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from results.answer.across_datasets import mean_ranks, over_datasets
from results.answer.compare import gains_over
from results.answer.deviations import WIDENING
from results.answer.pair_tests import (
    SHARE_OF_BETTER,
    MeanErrors,
    Numbers,
    PairDifferences,
    adjusted,
    adjusted_in_one_step,
    holm,
    pairs_of,
    pool_or_own,
    with_assumed_search,
)
from results.answer.question import ALPHA, Planned
from results.answer.typical import failed
from results.answer.values import MethodValues
from results.atomic_files import write_atomically
from results.findings.experiment import answer_of
from results.records.provenance import provenance
from results.spec.search_settings import LOOKS
from results.store.experiment_results import FOLDER, MeasuredExperiment

TABLES = 4_000
"""Simulated tables of a cell."""
METHODS, SEARCHES = (2, 5, 14), (3, 5, 8)
MARGIN = 1.0
GAPS = {2: 3.0}
"""Distance of neighbours where methods differ, in deviations of a search, by number of methods; else 1.5."""
RECORDS = ("search_variance_birds_subset", "search_variance_glyphs", "search_variance_handwriting")
KINDS = {
    "normal": "normal searches with equal deviations",
    "skewed": "skewed searches: the negative of a gamma variable of shape 2",
    "half x3": "every second method's searches vary three times as much",
    "one x5": "one method's searches vary five times as much",
    "unequal": "each method's searches vary as much as those of a method of the records, drawn by chance",
    "residuals": "searches of a method of the records, drawn again, those that failed among them",
    "one fails 1 in 5 by 8": "one method's searches fail, one in five by 8 deviations",
    "one fails 1 in 5 by 16": "one method's searches fail, one in five by 16 deviations",
    "one fails 2 in 5 by 16": "one method's searches fail, two in five by 16 deviations",
    "all fail 1 in 20 by 16": "all methods' searches fail, one in twenty by 16 deviations",
}
LEVEL = 30.0
"""Typical level of every method, in deviations of a search: 13 to 150 in the records. Half of it is a failed search."""
SMOOTHING = 0.3
"""Normal noise that is added to residuals which are drawn again, in the deviation of their method."""
RATIOS = (0.5, 1.0, 2.0)
"""True deviation of a search in those of the record, with one search each."""
DEGREES_OF_RECORD = 11
DATASETS, SPREADS = 3, (0.0, 1.0, 2.0, 4.0)
"""Datasets of a board, and the deviation of true differences between them in standard errors of a measured one."""


@cache
def residuals() -> tuple[Numbers, ...]:
    """Searches of each method of the records, from their typical mean, in deviations pooled over the record."""
    found = []
    for name in RECORDS:
        values = [own for own in answer_of(MeasuredExperiment.kept(name)).values.values() if len(own.units) > 1]
        pooled = np.sqrt(np.mean([np.var(own.units, ddof=1) for own in values]))
        for own in values:
            # Draws from n values vary less than what the values were drawn from.
            stretched = np.sqrt(len(own.units) / (len(own.units) - 1))
            kept = stretched * (np.array(own.units) - own.mean)
            found.append(np.append(kept, np.array(own.failed) - own.mean) / pooled)
    return tuple(found)


def searches_of(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
    """Draw searches of shape (..., methods, searches), whose typical level is `LEVEL`, in deviations of one."""
    return LEVEL + _around_zero(kind, shape, generator)


def _around_zero(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
    order = np.arange(shape[-2])
    values = generator.standard_normal(shape)
    if kind == "skewed":
        return np.asarray((2 - generator.gamma(2, size=shape)) / np.sqrt(2))
    if kind in ("half x3", "one x5"):
        scale = np.where(order % 2, 3.0, 1.0) if kind == "half x3" else np.where(order == 0, 5.0, 1.0)
        return np.asarray(values * scale[:, None])
    if kind == "unequal":
        deviations = np.array([np.std(own[:5], ddof=1) for own in residuals()])
        return np.asarray(values * generator.choice(deviations, (*shape[:-1], 1)))
    if kind == "residuals":
        of_method = generator.integers(len(residuals()), size=(*shape[:-1], 1))
        counts = np.array([len(own) for own in residuals()])
        padded = np.array([np.resize(own, counts.max()) for own in residuals()])
        drawn = (generator.random(shape) * counts[of_method]).astype(int)
        # A smoothed bootstrap: scores that are equal to the last digit would have no error.
        smooth = SMOOTHING * np.array([np.std(own[:5], ddof=1) for own in residuals()])[of_method]
        return np.asarray(padded[of_method, drawn] + smooth * generator.standard_normal(shape))
    if "fail" in kind:
        *_, many, _, of, _, depth = kind.split()
        fails = generator.random(shape) < int(many) / int(of)
        if kind.startswith("one"):
            fails[..., 1:, :] = False
        values -= float(depth) * fails
    return values


def errors_of(values: Numbers) -> MeanErrors:
    """Return means of typical searches and their errors, as `method_values` and `mean_errors` do."""
    kept = np.where(failed(values), np.nan, values)
    counts = np.isfinite(kept).sum(axis=-1)
    return pool_or_own(np.nanmean(kept, axis=-1), np.nanvar(kept, axis=-1, ddof=1), counts)


def claims(errors: MeanErrors, compare: str, level: float = ALPHA) -> tuple[Numbers, ...]:
    """Return differences of tables, and what is claimed of them: better, beyond, within."""
    pairs, count = errors.pairs(), errors.means.shape[-1]
    if compare != "all":
        asked = slice(count - 1)
        pairs = PairDifferences(pairs.difference[..., asked], pairs.error[..., asked], pairs.degrees[..., asked])
    better = adjusted(pairs.p, compare, count) / SHARE_OF_BETTER < level
    beyond = better & (adjusted(pairs.p_beyond(MARGIN), compare, count) / SHARE_OF_BETTER < level)
    adjust = adjusted_in_one_step if compare == "best" else adjusted
    return (
        pairs.difference,
        better,
        beyond,
        adjust(pairs.p_equal(MARGIN), compare, count) / (1 - SHARE_OF_BETTER) < level,
    )


def wrong(errors: MeanErrors, truth: Numbers, compare: str, level: float = ALPHA) -> Numbers:
    """Tell which claims are wrong; `truth` has the typical level of each method, by table."""
    truth = np.broadcast_to(truth, errors.means.shape)
    if compare == "best":
        order = np.argsort(-errors.means, axis=-1)
        parts = (np.take_along_axis(part, order, axis=-1) for part in (errors.means, errors.squares, errors.degrees))
        errors, truth = MeanErrors(*parts), np.take_along_axis(truth, order, axis=-1)
    found, better, beyond, within = claims(errors, compare, level)
    first, second = pairs_of(truth.shape[-1])
    true = (truth[..., first] - truth[..., second])[..., : found.shape[-1]]
    other_way = np.sign(found) != np.sign(true)
    beyond = beyond & (other_way | (np.abs(true) <= MARGIN))
    return np.asarray((better & other_way) | beyond | (within & (np.abs(true) >= MARGIN)))


def halves(count: int, gap: float) -> Numbers:
    """Return true levels: every second method lies `gap` below the others."""
    return np.where(np.arange(count) % 2, -gap, 0.0)


def steps(count: int) -> Numbers:
    """Return true levels of methods in order, the best first."""
    return -GAPS.get(count, 1.5) * np.arange(count)


def repeated(number: int, methods: int, searches: int, kind: str, tables: int) -> dict[str, Any]:
    """Simulate tables with repeated searches: wrong claims, coverage of means, power, and ranks."""
    values = searches_of(kind, (tables, methods, searches), np.random.default_rng([21, number]))
    equal, truth = errors_of(values), steps(methods)
    inside = np.abs(equal.means - LEVEL) <= special.stdtrit(equal.degrees, 0.975) * np.sqrt(equal.squares)
    apart = errors_of(values + truth[:, None])
    found, better, *_ = claims(apart, "all")
    right = better & (found > 0)  # The first of a pair is the better one.
    first, second = pairs_of(methods)
    lowest = np.stack(
        [(better & (found < 0) & (first == one)).sum(-1) + (right & (second == one)).sum(-1) for one in range(methods)],
        -1,
    )
    highest = np.stack(
        [(right & (first == one)).sum(-1) + (better & (found < 0) & (second == one)).sum(-1) for one in range(methods)],
        -1,
    )
    rank = np.arange(methods)
    return {
        **{"methods": methods, "searches": searches, "kind": kind},
        "wrong": {compare: _share(wrong(equal, np.zeros(methods), compare)) for compare in ("all", "best", "named")},
        "wrong at the margin": _share(
            wrong(errors_of(values + halves(methods, MARGIN)[:, None]), halves(methods, MARGIN), "all")
        ),
        "coverage": float(inside.mean()),
        "coverage of the first": float(inside[:, 0].mean()),
        "seen": float(right.mean()),
        "wrong ranks": float(((lowest > rank) | (highest > methods - 1 - rank)).any(axis=-1).mean()),
    }


def _share(claims_of_tables: Numbers) -> float:
    return float(claims_of_tables.any(axis=-1).mean())


def until_decided(number: int, methods: int, kind: str, tables: int) -> dict[str, Any]:
    """Simulate planned looks: wrong claims at any look, and what is decided where neighbours differ."""
    values = searches_of(kind, (tables, methods, LOOKS[-1]), np.random.default_rng([22, number]))
    truth, any_wrong = steps(methods), np.zeros(tables, dtype=bool)
    claimed, cost = np.zeros((tables, len(pairs_of(methods)[0])), dtype=bool), np.full(tables, float(LOOKS[-1]))
    for look in LOOKS:
        level, early = ALPHA * look / sum(LOOKS), values[..., :look]
        any_wrong |= wrong(errors_of(early), np.zeros(methods), "all", level).any(axis=-1)
        before = claimed.all(axis=-1)
        claimed |= claims(errors_of(early + truth[:, None]), "all", level)[1]
        cost[claimed.all(axis=-1) & ~before] = look
    decided = float(claimed.all(axis=-1).mean())
    of = {"methods": methods, "kind": kind, "wrong": float(any_wrong.mean())}
    return {**of, "decided": decided, "searches": float(cost.mean())}


def tuning(number: int, methods: int, searches: int, kind: str, tables: int) -> dict[str, Any]:
    """Simulate the gains of tuning over five runs of the defaults: wrong claims, and gains of 4 deviations seen."""
    generator = np.random.default_rng([23, number])
    tuned = searches_of(kind, (tables, methods, searches), generator)
    default = LEVEL + 0.5 * generator.standard_normal((tables, methods, 5))
    low, errors, seen = failed(tuned), 0, 0.0
    for own, given, is_low in zip(tuned, default, low, strict=True):
        for gain in (0.0, 4.0):
            searched = {str(key): _values(own[key] + gain, is_low[key]) for key in range(methods)}
            defaults = {str(key): _values(given[key], searched=False) for key in range(methods)}
            shown = [bool(one.better) for one in gains_over(searched, defaults, {key: key for key in defaults})]
            errors, seen = errors + (any(shown) if not gain else 0), seen + (float(np.mean(shown)) if gain else 0.0)
    of = {"methods": methods, "searches": searches, "kind": kind}
    return {**of, "wrong": errors / tables, "seen": seen / tables}


def _values(units: Numbers, low: Any = False, *, searched: bool = True) -> MethodValues:
    kept = units[~np.broadcast_to(low, units.shape)]
    return MethodValues(tuple(kept.tolist()), len(units), Planned("", len(units), 1, searched=searched))


def one_search(number: int, methods: int, ratio: float, unequal: bool, tables: int) -> dict[str, Any]:
    """Simulate tables with one search each, whose true deviation is `ratio` times that of the record."""
    generator, shape = np.random.default_rng([24, number]), (tables, methods)
    record = np.sqrt(generator.chisquare(DEGREES_OF_RECORD, (tables, 1)) / DEGREES_OF_RECORD) / ratio
    drawn = searches_of("unequal" if unequal else "normal", (*shape, 1), generator)[..., 0]
    runs = drawn[..., None] + 0.5 * generator.standard_normal((*shape, 5))
    means, variances, counts = runs.mean(axis=-1), runs.var(axis=-1, ddof=1), np.full(shape, 5.0)
    widened = np.broadcast_to(WIDENING * record, shape)

    def claimed(truth: Numbers) -> tuple[Numbers, Numbers]:
        pairs = with_assumed_search(means + truth, variances, counts, widened, DEGREES_OF_RECORD)
        better = adjusted_in_one_step(pairs.p, "all", methods) / SHARE_OF_BETTER < ALPHA
        return better, better & (pairs.difference > 0)

    of = {"methods": methods, "ratio": ratio, "unequal": unequal}
    return {**of, "wrong": _share(claimed(np.zeros(methods))[0]), "seen": float(claimed(4 * steps(methods))[1].mean())}


def board(number: int, spread: float, kind: str, tables: int) -> dict[str, Any]:
    """Simulate boards of 14 methods on three datasets that are equal on average: the shares with a wrong row."""
    generator, methods = np.random.default_rng([25, number]), METHODS[-1]
    first, second = pairs_of(methods)
    # The error of a difference of two means over three searches is sqrt(2 / 3); its true spread is in these.
    truth = spread * generator.standard_normal((tables, DATASETS, methods, 1)) / np.sqrt(3)
    errors = errors_of(truth + searches_of(kind, (tables, DATASETS, methods, 3), generator))
    pairs = errors.pairs()
    outside = np.abs(pairs.difference) > pairs.half_width()
    sides = np.where(outside, np.sign(pairs.difference), 0)
    over = over_datasets(np.moveaxis(pairs.difference, 1, -1), np.moveaxis(pairs.error, 1, -1))
    rows = (np.abs(sides.sum(axis=1)) == DATASETS) & (np.abs(over.mean) > over.half_width)
    ranks = np.array([[mean_ranks(own) for own in table] for table in errors.means]).mean(axis=1)
    best = np.argmin(ranks, axis=-1)[:, None]
    surviving = holm(np.maximum(pairs.p.max(axis=1), over.p)) < ALPHA
    shown = {"all": rows, "best": rows & ((first == best) | (second == best)), "named": rows & (first == 0)}
    shares = {question: _share(of) for question, of in {**shown, "all, surviving": rows & surviving}.items()}
    return {"spread": spread, "kind": kind, "wrong": shares}


def plan() -> dict[str, list[Callable[..., dict[str, Any]]]]:
    """Return what is simulated."""

    def numbered(function: Callable[..., dict[str, Any]], *parts: Any) -> list[Callable[..., dict[str, Any]]]:
        return [partial(function, number, *one) for number, one in enumerate(product(*parts))]

    return {
        "repeated": numbered(repeated, METHODS, SEARCHES, KINDS),
        "until_decided": numbered(until_decided, METHODS, KINDS),
        "tuning": numbered(tuning, (2, 8), (3, 6), ("normal", "unequal", "residuals", "one fails 1 in 5 by 16")),
        "one_search": numbered(one_search, METHODS, RATIOS, (False, True)),
        "board": numbered(board, SPREADS, ("normal", "unequal", "residuals", "one fails 1 in 5 by 16")),
    }


def simulate(tables: int, processes: int) -> dict[str, list[dict[str, Any]]]:
    """Simulate all cells."""
    with ProcessPoolExecutor(processes) as pool:
        futures = {name: [pool.submit(cell, tables=tables) for cell in cells] for name, cells in plan().items()}
        return {name: [future.result() for future in of_name] for name, of_name in futures.items()}


def main() -> None:
    """Simulate all cells and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "calibration.json")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tables", type=int, default=TABLES, help="simulated tables of a cell; default: %(default)s")
    arguments = parser.parse_args()
    content = {
        **{"alpha": ALPHA, "tables": arguments.tables, "kinds": KINDS},
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
        **simulate(arguments.tables, arguments.processes),
    }
    write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
