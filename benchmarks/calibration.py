"""`make calibrate`: simulates tables whose truth is known, and writes errors and power to results/measured.

What is random for users is random here. The tables go through the product's functions: searches that failed are set
aside, then means, tests, looks, ranks, gains and boards are made from what remains. Seeds are fixed: the same code
writes the same numbers.
"""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import special, stats

from protocols.metrics.retrieval import normalized, query_scores
from results.answer.across_datasets import over_datasets
from results.answer.deviations import WIDENING
from results.answer.over_classes import class_half_widths
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
from results.answer.question import ALPHA
from results.answer.typical import failed
from results.atomic_files import write_atomically
from results.findings.experiment import answer_of
from results.records.provenance import provenance
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.search_settings import LOOKS
from results.store.experiment_results import FOLDER, MeasuredExperiment

TABLES = 4_000
"""Simulated tables of a cell."""
METHODS, SEARCHES = (2, 5, 14), (3, 5, 10)
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
    "all fail 1 in 5 by 16": "all methods' searches fail, one in five by 16 deviations",
    "level 5": "normal searches whose scores lie 5 deviations above zero, where half of the best is near",
    "level 3": "the same, 3 deviations",
    "level 2": "the same, 2 deviations",
    "log-normal": "log-normal scores whose logarithm has a deviation of 0.3",
    "one x10": "one method's searches vary ten times as much",
    "one x20": "one method's searches vary twenty times as much",
    "one bimodal": "one method's searches have two modes, three in ten 8 deviations lower; its level is their mean",
}
LEVEL = 30.0
"""Typical level of every method, in deviations of a search: 13 to 150 in the records."""
LOG_DEVIATION = 0.3
LEVELS = {
    **{f"level {level}": float(level) for level in (2, 3, 5)},
    "log-normal": 1 / np.sqrt(np.expm1(LOG_DEVIATION**2)),
}
"""Typical levels of the other kinds."""
SAMPLES = 10
"""Samples of a test class."""
NUMBERS = ((2, 10, 1.0), (2, 10, 5.0), (3, 10, 3.0), (10, 3, 0.2))
"""Unequal numbers of searches: of the first method and of each other one, and the deviation of the first in theirs."""
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


def level_of(kind: str) -> float:
    """Return the typical level of the methods of a kind, in deviations of a search."""
    return float(LEVELS.get(kind, LEVEL))


def searches_of(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
    """Draw searches of shape (..., methods, searches) around their typical level (`level_of`), in deviations of one."""
    return level_of(kind) + _around_zero(kind, shape, generator)


def _around_zero(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
    order = np.arange(shape[-2])
    values = generator.standard_normal(shape)
    if kind == "skewed":
        return np.asarray((2 - generator.gamma(2, size=shape)) / np.sqrt(2))
    if " x" in kind:
        which, _, factor = kind.partition(" x")
        return np.asarray(values * np.where(order % 2 if which == "half" else order == 0, float(factor), 1.0)[:, None])
    if kind == "log-normal":
        return np.asarray(level_of(kind) * np.expm1(LOG_DEVIATION * values - LOG_DEVIATION**2 / 2))
    if kind == "one bimodal":
        return np.asarray(values + np.where(order == 0, 8.0, 0.0)[:, None] * (0.3 - (generator.random(shape) < 0.3)))
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


@dataclass(frozen=True)
class Compared:
    """Methods of tables as `method_values` and `mean_errors` give them: typical searches, and means of all searches."""

    errors: MeanErrors
    of_all: Numbers

    def agree(self, pairs: PairDifferences) -> Numbers:
        """Tell of which pairs both means do not disagree."""
        first, second = pairs_of(self.of_all.shape[-1])
        return np.asarray(pairs.difference * (self.of_all[..., first] - self.of_all[..., second]) >= 0)


def compared(values: Numbers) -> Compared:
    """Return means of typical searches and their errors; NaN where a method has fewer searches than others."""
    kept = np.where(failed(values), np.nan, values)
    counts = np.isfinite(kept).sum(axis=-1)
    errors = pool_or_own(np.nanmean(kept, axis=-1), np.nanvar(kept, axis=-1, ddof=1), counts)
    return Compared(errors, np.nanmean(values, axis=-1))


def claims(methods: Compared, compare: str, level: float = ALPHA) -> tuple[Numbers, ...]:
    """Return differences of tables, and what is claimed of them: better, beyond, within."""
    pairs, count = methods.errors.pairs(), methods.of_all.shape[-1]
    asked = slice(count - 1 if compare != "all" else None)
    agree = methods.agree(pairs)[..., asked]
    pairs = PairDifferences(pairs.difference[..., asked], pairs.error[..., asked], pairs.degrees[..., asked])
    better = agree & (adjusted(pairs.p, compare, count) / SHARE_OF_BETTER < level)
    beyond = better & (adjusted(pairs.p_beyond(MARGIN), compare, count) / SHARE_OF_BETTER < level)
    adjust = adjusted_in_one_step if compare == "best" else adjusted
    return (
        pairs.difference,
        better,
        beyond,
        agree & (adjust(pairs.p_equal(MARGIN), compare, count) / (1 - SHARE_OF_BETTER) < level),
    )


def wrong(methods: Compared, truth: Numbers, compare: str, level: float = ALPHA) -> Numbers:
    """Tell which claims are wrong; `truth` has the typical level of each method, by table."""
    errors, of_all = methods.errors, methods.of_all
    truth = np.broadcast_to(truth, of_all.shape)
    if compare == "best":
        order = np.argsort(-errors.means, axis=-1)
        means, squares, degrees, of_all, truth = (
            np.take_along_axis(part, order, axis=-1)
            for part in (errors.means, errors.squares, errors.degrees, of_all, truth)
        )
        errors = MeanErrors(means, squares, degrees)
    found, better, beyond, within = claims(Compared(errors, of_all), compare, level)
    first, second = pairs_of(truth.shape[-1])
    true = (truth[..., first] - truth[..., second])[..., : found.shape[-1]]
    other_way = np.sign(found) != np.sign(true)
    beyond = beyond & (other_way | (np.abs(true) <= MARGIN))
    return np.asarray((better & other_way) | beyond | (within & (np.abs(true) >= MARGIN)))


def halves(count: int, gap: float) -> Numbers:
    """Return true levels above the typical one: every second method lies `gap` above the others."""
    return np.where(np.arange(count) % 2, 0.0, gap)


def steps(count: int) -> Numbers:
    """Return true levels of methods above the typical one, the best first."""
    return GAPS.get(count, 1.5) * np.arange(count)[::-1]


def repeated(number: int, methods: int, searches: int, kind: str, tables: int) -> dict[str, Any]:
    """Simulate tables with repeated searches: wrong claims, coverage of means, power, and ranks."""
    values = searches_of(kind, (tables, methods, searches), np.random.default_rng([21, number]))
    margin = halves(methods, MARGIN)
    found, better, *_ = claims(compared(values + steps(methods)[:, None]), "all")
    right, other_way = better & (found > 0), better & (found < 0)  # The first of a pair is the better one.
    first, second = (np.eye(methods)[of] for of in pairs_of(methods))
    ahead, behind = right @ second + other_way @ first, right @ first + other_way @ second  # Methods shown to be so.
    rank = np.arange(methods)
    return {
        **{"methods": methods, "searches": searches, "kind": kind},
        **_where_all_are_equal(values, level_of(kind)),
        "wrong at the margin": _share(wrong(compared(values + margin[:, None]), margin, "all")),
        "seen": float(right.mean()),
        "wrong ranks": float(((ahead > rank) | (behind > methods - 1 - rank)).any(axis=-1).mean()),
    }


def unequal_numbers(number: int, methods: int, numbers: tuple[int, int, float], tables: int) -> dict[str, Any]:
    """Simulate tables whose first method has another number of searches, and another deviation (`NUMBERS`)."""
    first, others, scale = numbers
    values = np.random.default_rng([26, number]).standard_normal((tables, methods, max(first, others)))
    values[:, 0] *= scale
    values[:, 0, first:] = np.nan
    values[:, 1:, others:] = np.nan
    return {"methods": methods, "numbers": numbers, **_where_all_are_equal(LEVEL + values, LEVEL)}


def _where_all_are_equal(values: Numbers, level: float) -> dict[str, Any]:
    """The shares of tables with a wrong claim, and how often intervals of means hold the level."""
    methods, of = values.shape[-2], compared(values)
    inside = np.abs(of.errors.means - level) <= special.stdtrit(of.errors.degrees, 0.975) * np.sqrt(of.errors.squares)
    return {
        "wrong": {compare: _share(wrong(of, np.zeros(methods), compare)) for compare in ("all", "best", "named")},
        "coverage": float(inside.mean()),
        "coverage of the first": float(inside[:, 0].mean()),
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
        any_wrong |= wrong(compared(early), np.zeros(methods), "all", level).any(axis=-1)
        before = claimed.all(axis=-1)
        claimed |= claims(compared(early + truth[:, None]), "all", level)[1]
        cost[claimed.all(axis=-1) & ~before] = look
    decided = float(claimed.all(axis=-1).mean())
    of = {"methods": methods, "kind": kind, "wrong": float(any_wrong.mean())}
    return {**of, "decided": decided, "searches": float(cost.mean())}


def tuning(number: int, methods: int, searches: int, kind: str, tables: int) -> dict[str, Any]:
    """Simulate the gains of tuning over five runs of the defaults: wrong claims, and gains of 4 deviations seen."""
    generator = np.random.default_rng([23, number])
    tuned = searches_of(kind, (tables, methods, searches), generator)
    default = LEVEL + 0.5 * generator.standard_normal((tables, methods, 5))
    of = {"methods": methods, "searches": searches, "kind": kind}
    gains = {gain: gains_seen(tuned + gain, default) for gain in (0.0, 4.0)}
    return {**of, "wrong": _share(gains[0.0] != 0), "seen": float((gains[4.0] > 0).mean())}


def gains_seen(tuned: Numbers, default: Numbers) -> Numbers:
    """Tell as `gains_over` which gains are claimed: 1, or -1 where the default is better, or 0; by table and method."""
    methods, sides = tuned.shape[-2], (compared(tuned), compared(default))
    parts = [
        np.concatenate([getattr(side.errors, part) for side in sides], axis=-1)
        for part in ("means", "squares", "degrees")
    ]
    pairs = MeanErrors(*parts, pool=np.repeat([0, 1], methods)).pairs()
    agree = Compared(MeanErrors(*parts), np.concatenate([side.of_all for side in sides], axis=-1)).agree(pairs)
    first, second = pairs_of(2 * methods)
    own = second - first == methods
    claimed = agree[..., own] & (holm(pairs.p[..., own]) < ALPHA)
    return np.asarray(np.where(claimed, np.sign(pairs.difference[..., own]), 0))


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
    of = compared(truth + searches_of(kind, (tables, DATASETS, methods, 3), generator))
    pairs = of.errors.pairs()
    agree = of.agree(pairs)
    sides = np.where(agree & (np.abs(pairs.difference) > pairs.half_width()), np.sign(pairs.difference), 0)
    over = over_datasets(np.moveaxis(pairs.difference, 1, -1), np.moveaxis(pairs.error, 1, -1))
    rows = (np.abs(sides.sum(axis=1)) == DATASETS) & (np.abs(over.mean) > over.half_width)
    best = np.argmin(stats.rankdata(-of.errors.means, axis=-1).mean(axis=1), axis=-1)[:, None]
    surviving = holm(np.maximum(np.where(agree, pairs.p, 1).max(axis=1), over.p)) < ALPHA
    shown = {"all": rows, "best": rows & ((first == best) | (second == best)), "named": rows & (first == 0)}
    shares = {question: _share(of) for question, of in {**shown, "all, surviving": rows & surviving}.items()}
    return {"spread": spread, "kind": kind, "wrong": shares}


def over_classes(number: int, classes: int, directions: int, tables: int) -> dict[str, Any]:
    """Simulate intervals over the test classes of MAP@R, of two equally good methods and of their difference.

    A class of ten samples lies around its normal centre in so many directions: the fewer, the more classes overlap.
    Another class is as likely to be among the neighbours as among the queries. The truth is the mean over all sets.
    """
    generator = np.random.default_rng([27, number])
    sets = np.array([_scores_of_classes(classes, directions, generator) for _ in range(tables // 8)])
    columns = np.concatenate([sets, sets[..., :1] - sets[..., 1:]], axis=-1)
    means = columns.mean(axis=1)
    widths = np.array([class_half_widths(np.full(classes, SAMPLES), one) for one in columns])
    inside = np.abs(means - [*[means[:, :2].mean()] * 2, 0.0]) <= widths
    of = {"classes": classes, "directions": directions, "sets": len(sets), "map_at_r": float(means[:, :2].mean())}
    return {**of, "single": float(inside[:, :2].mean()), "difference": float(inside[:, 2].mean())}


def _scores_of_classes(classes: int, directions: int, generator: np.random.Generator) -> Numbers:
    """MAP@R of each class for two methods, which see the same samples with different noise."""
    centres, spread = generator.standard_normal((classes, 1, directions)), generator.standard_normal((classes, 1, 1))
    samples = generator.standard_normal((classes, SAMPLES, directions))
    scores = []
    for _ in range(2):
        moved = centres + 0.3 * generator.standard_normal(centres.shape)
        noise = 0.8 * samples + 0.6 * generator.standard_normal(samples.shape)
        embeddings = torch.from_numpy((moved + 0.8 * np.exp(0.3 * spread) * noise).reshape(-1, directions)).float()
        labels = torch.arange(classes).repeat_interleave(SAMPLES)
        _, of_classes = query_scores(normalized(embeddings), labels).of_classes(labels.unique())
        scores.append(of_classes[:, list(HEADLINE_METRICS).index("map_at_r")])
    return torch.stack(scores, dim=-1).numpy()


def plan() -> dict[str, list[Callable[..., dict[str, Any]]]]:
    """Return what is simulated."""

    def numbered(function: Callable[..., dict[str, Any]], *parts: Any) -> list[Callable[..., dict[str, Any]]]:
        return [partial(function, number, *one) for number, one in enumerate(product(*parts))]

    return {
        "repeated": numbered(repeated, METHODS, SEARCHES, KINDS),
        "unequal_numbers": numbered(unequal_numbers, METHODS, NUMBERS),
        "until_decided": numbered(until_decided, METHODS, KINDS),
        "tuning": numbered(tuning, (2, 8), (3, 6), ("normal", "unequal", "residuals", "one fails 1 in 5 by 16")),
        "one_search": numbered(one_search, METHODS, RATIOS, (False, True)),
        "over_classes": numbered(over_classes, (8, 16, 104), (3, 16)),
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
