"""The results in sentences that claim no more than the runs allow.

All claims are read from the experiment's one comparison, on its primary score. The other scores are named and not
tested.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.page.sections.class_intervals import OverClasses
from reports.page.sections.wording import listed, p_value, percent, points, runs, test_of
from reports.tables.budget_text import budget_text
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ComparedPair, ComparisonResult
from results.statistics.planning import budget
from results.statistics.primary_comparison import primary_score

_OTHER_CLASSES = "shown only for these test classes: the interval of the difference over drawn classes contains 0"


def verdicts_of(material: Material, classes: OverClasses | None = None) -> tuple[Verdict, ...]:
    """Write the sentences about the scores.

    Args:
        material: The experiment.
        classes: Intervals over test classes, if the runs have class scores.

    Returns:
        A sentence about the highest mean of each score, what the runs can see, then for the primary score a sentence
        about each pair.
    """
    comparison = material.comparison
    if comparison is None:
        return ()
    primary, *secondary = material.scores
    best = [_of_the_best(material, primary, comparison), *(_untested(material, score) for score in secondary)]
    return (*best, *_budget(material, comparison), *_pairs(material, primary, comparison, classes))


def _of_the_best(material: Material, score: Score, comparison: ComparisonResult) -> Verdict:
    titles, best = material.titles, comparison.highest
    values = material.values(score)[best]
    mean = percent(student_t_interval(list(values.values())))
    if len(comparison.methods) < 2:
        return Verdict(
            "best", f"Only {titles[best]} has runs: {score.name} {mean}. There is no other method to compare it with."
        )
    others = {key: comparison.pair(best, key).verdict for key in comparison.methods if key != best}
    phrases = {
        "better": "better than {}",
        "equal": f"equal to {{}} within {100 * comparison.margin:g} points",
        "cannot tell": "not told apart from {}",
        "too few runs": "not tested against {}, because there are too few runs",
    }
    parts = []
    for verdict, phrase in phrases.items():
        if keys := [key for key, other in others.items() if other.endswith(verdict)]:
            every = verdict == "better" and len(keys) == len(others)
            parts.append(phrase.format("every other method" if every else listed([titles[key] for key in keys])))
    sentence = (
        f"{_capital(score.name)}, the primary score: {titles[best]} has the highest mean, {mean} "
        f"({runs(len(values))}). It is {'; '.join(parts)}."
    )
    not_worse = {key for key, other in others.items() if other in ("cannot tell", "equal")}
    if set(comparison.leading) - {best} != not_worse:
        sentence += f" No method is shown to be better than {listed([titles[key] for key in comparison.leading])}."
    return Verdict("best", sentence, _family(comparison))


def _budget(material: Material, comparison: ComparisonResult) -> Iterator[Verdict]:
    """Say what the runs can see; nothing is said of a single method."""
    counts = [len(material.records[key]) for key in comparison.methods]
    if len(counts) > 1:
        repeated = [count for count in counts if count > 1]
        score = primary_score(material.measured)
        sees = budget(len(counts), min(repeated, default=1), score, material.measured.records)
        yield Verdict("budget", *budget_text(sees, score))


def _untested(material: Material, score: Score) -> Verdict:
    values = material.values(score)
    intervals = {key: student_t_interval(list(by_run.values())) for key, by_run in values.items()}
    best = max(intervals, key=lambda key: intervals[key].mean)
    sentence = f"{_capital(score.name)}, secondary and not tested: {material.titles[best]} has the highest mean"
    return Verdict("best", f"{sentence}, {percent(intervals[best])} ({runs(len(values[best]))}).")


def _family(comparison: ComparisonResult) -> str:
    if not comparison.tested:
        return ""
    pairs = "1 pair" if comparison.tested == 1 else f"all {comparison.tested} pairs"
    level = f"{100 * comparison.alpha:g} %"
    return f"{comparison.test} tests of {pairs}; the probability of any wrong claim is at most {level}"


def _pairs(
    material: Material, score: Score, comparison: ComparisonResult, classes: OverClasses | None
) -> Iterator[Verdict]:
    """Write a sentence about each pair, the better methods first."""
    order = [key for key in material.best_first if key in comparison.methods]
    for number, first in enumerate(order):
        for second in order[number + 1 :]:
            pair = comparison.pair(first, second)
            verdict = _pair(pair, first, second, score, material.titles, comparison)
            gap = classes.gaps.get(second) if classes and first == classes.best else None
            if verdict.kind == "real" and gap and gap.low is not None and gap.low <= 0:
                verdict = replace(verdict, detail=f"{verdict.detail}; {_OTHER_CLASSES}")
            yield verdict


def _pair(
    pair: ComparedPair, higher: str, lower: str, score: Score, titles: Mapping[str, str], comparison: ComparisonResult
) -> Verdict:
    gap = points(abs(pair.difference))
    if pair.p_better is None or pair.p_equal is None or pair.low is None or pair.high is None or pair.smallest is None:
        counts = f"{runs(pair.n_a)} and {runs(pair.n_b)}"
        sentence = f"{titles[higher]} lies {gap} above {titles[lower]} in {score.name}. This cannot be tested."
        return Verdict("open", sentence, f"{counts}; a test needs more runs")
    ends = (pair.low, pair.high) if pair.a == higher else (-pair.high, -pair.low)
    interval = f"95 % interval of this pair alone {100 * ends[0]:.2f} to {100 * ends[1]:.2f}"
    adjusted = p_value(pair.p_equal if pair.verdict == "equal" else pair.p_better)
    detail = f"{interval}; {test_of(pair)}, {adjusted}, adjusted for all claims of the table"
    if pair.better:
        return Verdict("real", f"{titles[higher]} is {gap} better than {titles[lower]} in {score.name}.", detail)
    both = f"{titles[higher]} and {titles[lower]}"
    if pair.verdict == "equal":
        within = f"equal within {100 * comparison.margin:g} points"
        return Verdict("equal", f"{both} are {within} in {score.name}: {gap} between their means.", detail)
    sentence = (
        f"{both}: cannot tell which is better in {score.name}. {gap} lie between their means, and the smallest "
        f"difference that these runs could have shown is {points(pair.smallest)}."
    )
    return Verdict("open", sentence, detail)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
