"""What came out, in sentences that claim no more than the runs allow.

Two families of tests, each corrected by Holm's method: every method against the best, as the table of results marks
them, and all pairs, as the table of differences has them. Nothing is called a difference without two runs of either.
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

_OTHER_CLASSES = "on these test classes: over drawn classes the interval of the difference holds 0"


def verdicts_of(material: Material, classes: OverClasses | None = None) -> tuple[Verdict, ...]:
    """Sentences on every score of the material: the best and its ties, then differences of the first score."""
    if not material.records:
        return ()
    found: list[Verdict] = []
    for score in material.scores:
        found += _of_the_best(material, score)
    return (*found, *_pairs(material, material.scores[0], classes))


def _of_the_best(material: Material, score: Score) -> Iterator[Verdict]:
    values, titles = material.values(score), material.titles
    if len(values) < 2:
        (key,) = values
        mean = percent(student_t_interval(list(values[key].values())))
        yield Verdict(
            "best", f"{titles[key]} alone has runs: {score.name} {mean}. There is nothing to compare it with."
        )
        return
    best, against = compare_with_best(values)
    mean = percent(student_t_interval(list(values[best].values())))
    lower = [one for one in against if one.significant(ALPHA)]
    tied = [titles[one.b] for one in against if one.p_holm is not None and not one.significant(ALPHA)]
    untested = [titles[one.b] for one in against if one.p_holm is None]
    named = f"{_capital(score.name)}: {titles[best]} has the highest mean, {mean} ({runs(len(values[best]))})"
    parts = []
    if lower:
        every = "every other method" if len(lower) == len(against) else listed([titles[one.b] for one in lower])
        parts.append(f"significantly above {every}")
    if tied:
        parts.append(f"not told apart from {listed(tied)}")
    if untested:
        parts.append(f"not tested against {listed(untested)}, for want of runs")
    detail = f"t-tests against the highest mean at 5 %{corrected(len(against) - len(untested), 'comparisons')}"
    yield Verdict("best", f"{named}: {'; '.join(parts)}.", detail if lower or tied else "")


def _pairs(material: Material, score: Score, classes: OverClasses | None) -> Iterator[Verdict]:
    """Every pair, the better methods first."""
    values = material.values(score)
    ordered = {key: values[key] for key in material.best_first}
    family = compare_all(ordered)
    tested = sum(one.p is not None for one in family)
    lower = {one.b for one in compare_with_best(ordered)[1] if one.significant(ALPHA)}
    for one in family:
        told_by_the_best = one.a == material.best_first[0] and one.b in lower
        found = _pair(one, score, material.titles, tested, told_by_the_best)
        gap = classes.gaps.get(one.b) if classes and one.a == classes.best else None
        if found.kind == "real" and gap and gap.low is not None and gap.low <= 0:
            found = replace(found, detail=f"{found.detail}; {_OTHER_CLASSES}")
        yield found


def _pair(one: Comparison, score: Score, titles: Mapping[str, str], family: int, told_by_the_best: bool) -> Verdict:
    """`a` is the one that was listed first, which need not have the higher mean."""
    higher, lower = (one.a, one.b) if one.difference >= 0 else (one.b, one.a)
    gap = points(abs(one.difference))
    if one.p_holm is None or one.low is None or one.high is None or one.p is None:
        counts = f"{runs(one.n_a)} and {runs(one.n_b)}"
        sentence = f"{titles[higher]} lies {gap} above {titles[lower]} in {score.name}, which cannot be tested."
        return Verdict("open", sentence, f"{counts}; a test needs two of each")
    ends = sorted((one.low, one.high)) if one.difference >= 0 else sorted((-one.low, -one.high))
    interval = f"95 % interval {100 * ends[0]:.2f} to {100 * ends[1]:.2f}"
    detail = f"{interval}; {test_of(one)}, {p_value(one.p_holm)}{corrected(family, 'pairs')}"
    if one.significant(ALPHA):
        return Verdict("real", f"{titles[higher]} is {gap} above {titles[lower]} in {score.name}.", detail)
    if told_by_the_best:
        detail += "; told apart where comparisons with the highest mean alone are corrected for"
    elif one.p < ALPHA:
        detail += "; without the correction it would pass for a difference"
    sentence = f"{titles[higher]} and {titles[lower]} are not told apart in {score.name}: {gap} between their means."
    return Verdict("open", sentence, detail)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
