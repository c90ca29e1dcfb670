"""The results in sentences that claim no more than the runs allow.

There are two families of tests, each corrected by Holm's method. Every method is tested against the best, like the
marks in the table of results. All pairs are tested, like in the table of differences. A test needs two runs of both
methods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.page.sections.class_intervals import OverClasses
from reports.page.sections.wording import corrected, listed, p_value, percent, points, runs, test_of
from results.statistics.comparisons import Comparison, compare_all, compare_with_best
from results.statistics.intervals import student_t_interval

ALPHA = 0.05

_OTHER_CLASSES = "shown only for these test classes: the interval of the difference over drawn classes contains 0"


def verdicts_of(material: Material, classes: OverClasses | None = None) -> tuple[Verdict, ...]:
    """Write the sentences about the scores.

    Args:
        material: The experiment.
        classes: Intervals over test classes, if the runs have class scores.

    Returns:
        For each score a sentence about its highest mean, then for the first score a sentence about each pair.
    """
    if not material.records:
        return ()
    best: list[Verdict] = []
    for score in material.scores:
        best += _of_the_best(material, score)
    return (*best, *_pairs(material, material.scores[0], classes))


def _of_the_best(material: Material, score: Score) -> Iterator[Verdict]:
    values, titles = material.comparable_values(score), material.titles
    if not values:
        return
    if len(values) < 2:
        (key,) = values
        mean = percent(student_t_interval(list(values[key].values())))
        yield Verdict(
            "best", f"Only {titles[key]} has runs: {score.name} {mean}. There is no other method to compare it with."
        )
        return
    best, comparisons = compare_with_best(values)
    mean = percent(student_t_interval(list(values[best].values())))
    lower = [pair for pair in comparisons if pair.significant(ALPHA)]
    tied = [titles[pair.b] for pair in comparisons if pair.p_holm is not None and not pair.significant(ALPHA)]
    untested = [titles[pair.b] for pair in comparisons if pair.p_holm is None]
    sentence = f"{_capital(score.name)}: {titles[best]} has the highest mean, {mean} ({runs(len(values[best]))})"
    parts = []
    if lower:
        names = "every other method" if len(lower) == len(comparisons) else listed([titles[pair.b] for pair in lower])
        parts.append(f"significantly above {names}")
    if tied:
        parts.append(f"not significantly above {listed(tied)}")
    if untested:
        parts.append(f"not tested against {listed(untested)}, because there are too few runs")
    detail = f"t-tests against the highest mean at 5 %{corrected(len(comparisons) - len(untested), 'comparisons')}"
    yield Verdict("best", f"{sentence}: {'; '.join(parts)}.", detail if lower or tied else "")


def _pairs(material: Material, score: Score, classes: OverClasses | None) -> Iterator[Verdict]:
    """Write a sentence about each pair, the better methods first."""
    values = material.comparable_values(score)
    if not values:
        return
    ordered = {key: values[key] for key in material.best_first if key in values}
    family = compare_all(ordered)
    tested = sum(pair.p is not None for pair in family)
    lower = {pair.b for pair in compare_with_best(ordered)[1] if pair.significant(ALPHA)}
    for pair in family:
        below_best = pair.a == next(iter(ordered)) and pair.b in lower
        verdict = _pair(pair, score, material.titles, tested, below_best)
        gap = classes.gaps.get(pair.b) if classes and pair.a == classes.best else None
        if verdict.kind == "real" and gap and gap.low is not None and gap.low <= 0:
            verdict = replace(verdict, detail=f"{verdict.detail}; {_OTHER_CLASSES}")
        yield verdict


def _pair(pair: Comparison, score: Score, titles: Mapping[str, str], family: int, below_best: bool) -> Verdict:
    """Write a sentence about a pair. `pair.a` does not always have the higher mean."""
    higher, lower = (pair.a, pair.b) if pair.difference >= 0 else (pair.b, pair.a)
    gap = points(abs(pair.difference))
    if pair.p_holm is None or pair.low is None or pair.high is None or pair.p is None:
        counts = f"{runs(pair.n_a)} and {runs(pair.n_b)}"
        sentence = f"{titles[higher]} lies {gap} above {titles[lower]} in {score.name}. This cannot be tested."
        return Verdict("open", sentence, f"{counts}; a test needs two runs of each method")
    ends = sorted((pair.low, pair.high)) if pair.difference >= 0 else sorted((-pair.low, -pair.high))
    interval = f"95 % interval {100 * ends[0]:.2f} to {100 * ends[1]:.2f}"
    detail = f"{interval}; {test_of(pair)}, {p_value(pair.p_holm)}{corrected(family, 'pairs')}"
    if pair.significant(ALPHA):
        return Verdict("real", f"{titles[higher]} is {gap} above {titles[lower]} in {score.name}.", detail)
    if below_best:
        detail += "; significant if only the comparisons with the highest mean are corrected for"
    elif pair.p < ALPHA:
        detail += "; significant without the correction"
    sentence = (
        f"{titles[higher]} and {titles[lower]} do not differ significantly in {score.name}: {gap} between their means."
    )
    return Verdict("open", sentence, detail)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
