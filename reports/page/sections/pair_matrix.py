"""All pairs of methods as a triangular matrix of verdicts, instead of a sentence for every pair."""

from dataclasses import replace

from reports.page.content import PairCell, PairKind, PairMatrix
from reports.page.material import Material
from reports.page.sections.class_intervals import OverClasses
from reports.wording import capitalized, p_value, points, runs, test_of
from results.statistics.method_comparison import ComparedPair, ComparisonResult

MOST_METHODS = 40
"""Largest number of methods with a matrix. Larger tables are in the files only."""

_OTHER_CLASSES = "Shown only for these test classes: the interval of the difference over drawn classes contains 0."


def pair_matrix(material: Material, classes: OverClasses | None = None) -> PairMatrix | None:
    """Build the matrix of verdicts; None with fewer than two methods."""
    comparison = material.comparison
    if comparison is None or len(comparison.methods) < 2:
        return None
    order = [key for key in material.best_first if key in comparison.methods]
    titles = tuple(material.titles[key] for key in order)
    if len(order) > MOST_METHODS:
        counts = f"{_counts(comparison)} The files have every pair; {len(order)} methods are too many for a matrix."
        return PairMatrix(titles, (), counts)
    rows = tuple(
        tuple(_cell(material, comparison, higher, lower, classes) for higher in order[:number])
        for number, lower in enumerate(order)
        if number
    )
    return PairMatrix(titles, rows, _caption(material, comparison))


def _cell(
    material: Material, comparison: ComparisonResult, higher: str, lower: str, classes: OverClasses | None
) -> PairCell:
    pair = comparison.pair(higher, lower)
    names = (material.titles[higher], material.titles[lower])
    cell = _verdict(pair, higher, names, comparison)
    gap = classes.gaps.get(lower) if classes and higher == classes.best else None
    if cell.kind == "worse" and gap and gap.low is not None and gap.low <= 0:
        cell = replace(cell, detail=f"{cell.detail}\n{_OTHER_CLASSES}")
    return cell


def _verdict(pair: ComparedPair, higher: str, names: tuple[str, str], comparison: ComparisonResult) -> PairCell:
    both, gap = f"{names[0]} and {names[1]}", points(abs(pair.difference))
    if pair.p_better is None or pair.p_equal is None or pair.low is None or pair.high is None or pair.smallest is None:
        counts = f"{runs(pair.n_a)} and {runs(pair.n_b)}"
        return PairCell("untested", f"{both}: too few runs", f"{both}: too few runs for a test\n{gap} apart, {counts}")
    kinds: dict[str, tuple[PairKind, str]] = {
        "equal": ("equal", f"{both}: equal within {100 * comparison.margin:g} points"),
        "cannot tell": ("open", f"{both}: cannot tell which is better"),
    }
    kind, text = kinds.get(pair.verdict, ("worse", f"{names[0]} is better than {names[1]}"))
    ends = (pair.low, pair.high) if pair.a == higher else (-pair.high, -pair.low)
    adjusted = p_value(pair.p_equal if kind == "equal" else pair.p_better)
    lines = [
        text,
        f"difference {gap}, 95 % interval of this pair alone {100 * ends[0]:z.2f} to {100 * ends[1]:z.2f}",
        f"{test_of(pair)}, adjusted {adjusted}",
    ]
    if kind == "open":
        lines.append(f"these runs could have shown {points(pair.smallest)}")
    return PairCell(kind, text, "\n".join(lines))


def _caption(material: Material, comparison: ComparisonResult) -> str:
    family = ""
    if comparison.tested:
        pairs = "1 pair" if comparison.tested == 1 else f"all {comparison.tested} pairs"
        family = (
            f" {capitalized(comparison.test)} tests of {pairs}: the probability of any wrong claim is at most "
            f"{100 * comparison.alpha:g} %."
        )
    score = material.scores[0].name
    return f"Each row against the methods above it, in {score}. A cell shows the numbers of its pair.{family}"


def _counts(comparison: ComparisonResult) -> str:
    better = sum(pair.better is not None for pair in comparison.pairs)
    equal = sum(pair.verdict == "equal" for pair in comparison.pairs)
    return (
        f"Of {len(comparison.pairs):,} pairs, {better:,} show which method is better, {equal:,} are equal within "
        f"{100 * comparison.margin:g} points, and {len(comparison.pairs) - better - equal:,} cannot be told."
    )
