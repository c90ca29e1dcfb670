"""The results in sentences that claim no more than the runs allow.

All claims are read from the experiment's one comparison, on its primary score. The other scores are named and not
tested.
"""

from collections.abc import Iterator

from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.tables.result_notes import budget_text
from reports.wording import capitalized, listed, percent, runs
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ComparisonResult
from results.statistics.primary_comparison import primary_score

_MOST_NAMED = 8


def verdicts_of(material: Material) -> tuple[Verdict, ...]:
    """Write the sentences about the scores. Pairs of methods are in the matrix (`pair_matrix`)."""
    comparison = material.comparison
    if comparison is None:
        return ()
    primary, *secondary = material.scores
    best = [_of_the_best(material, primary, comparison), *(_untested(material, score) for score in secondary)]
    return (*best, *_budget(material))


def _of_the_best(material: Material, score: Score, comparison: ComparisonResult) -> Verdict:
    titles, best = material.titles, comparison.highest
    values = material.values(score)[best]
    mean, counted = percent(student_t_interval(list(values.values()))), _counted(material, best, len(values))
    if len(comparison.methods) < 2 and len(material.records) > 1:
        sentence = f"{capitalized(score.name)}, the primary score: {titles[best]} has {mean} ({counted})."
        return Verdict("best", f"{sentence} No other method is in the final comparison.")
    if len(comparison.methods) < 2:
        only = "is the only method that was asked for" if material.measured.others else "is the only method with runs"
        return Verdict(
            "best", f"{titles[best]} {only}: {score.name} {mean}. There is no other method to compare it with."
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
            parts.append(phrase.format("every other method" if every else _named([titles[key] for key in keys])))
    sentence = (
        f"{capitalized(score.name)}, the primary score: {titles[best]} has the highest mean, {mean} "
        f"({counted}). It is {'; '.join(parts)}."
    )
    not_worse = {key for key, other in others.items() if other in ("cannot tell", "equal")}
    if set(comparison.leading) - {best} != not_worse:
        sentence += f" No method is shown to be better than {_named([titles[key] for key in comparison.leading])}."
    return Verdict("best", sentence, _family(comparison))


def _budget(material: Material) -> Iterator[Verdict]:
    if material.budget is not None:
        repeated, score = material.measured.repeats_searches, primary_score(material.measured)
        yield Verdict("budget", *budget_text(material.budget, score, "search" if repeated else "run"))


def _untested(material: Material, score: Score) -> Verdict:
    values = material.values(score)
    intervals = {key: student_t_interval(list(by_run.values())) for key, by_run in values.items()}
    best = max(intervals, key=lambda key: intervals[key].mean)
    sentence = f"{capitalized(score.name)}, secondary and not tested: {material.titles[best]} has the highest mean"
    return Verdict("best", f"{sentence}, {percent(intervals[best])} ({_counted(material, best, len(values[best]))}).")


def _counted(material: Material, method: str, count: int) -> str:
    """The number of a method's values: a value is a run, or the mean of a search's runs if its search was repeated."""
    return f"{count} searches" if any(record.search for record in material.records[method]) else runs(count)


def _family(comparison: ComparisonResult) -> str:
    if not comparison.tested:
        return ""
    pairs = "1 pair" if comparison.tested == 1 else f"all {comparison.tested} pairs"
    level = f"{100 * comparison.alpha:g} %"
    return f"{comparison.test} tests of {pairs}; the probability of any wrong claim is at most {level}"


def _named(titles: list[str]) -> str:
    return listed(titles) if len(titles) <= _MOST_NAMED else f"{len(titles)} methods"
