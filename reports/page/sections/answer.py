"""The answer in sentences: what limits it, and the verdicts that claim no more than the comparison allows.

All claims are read from the experiment's one comparison, on its primary score. The other scores are named and not
tested.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.page.sections.headline import missing_units, searches_differed, subject_of
from reports.tables.result_notes import budget_text, part_of_the_data
from reports.wording import asked_pairs, capitalized, counted, listed, percent
from results.spec import mlrc_constants
from results.statistics.comparison_result import ComparedPair, ComparisonResult, MethodValues
from results.statistics.cut_off import cut_offs
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import primary_score, unit_of

_NAMED = 8
"""Largest number of methods that a verdict names. More are counted."""


def limits(material: Material) -> str:
    """Say in one sentence what limits the answer; empty without runs."""
    if not material.records:
        return ""
    parts = [
        *_part_of_the_data(material),
        *small_budget(material),
        *_searches(material),
        *_cut_off(material),
        *_smallest(material),
    ]
    return f"What limits this answer: {'; '.join(parts)}." if parts else ""


def _part_of_the_data(material: Material) -> Iterator[str]:
    if material.measured.summary.experiment.dataset.subset:
        yield f"a part of the dataset, {part_of_the_data(material.measured)}"


def small_budget(material: Material) -> list[str]:
    """Name the parts of the protocol's budget that were not used in full, such as `3 of 10 reproductions`."""
    summary = material.measured.summary
    if summary.experiment.protocol != "mlrc":
        return []
    searches = summary.experiment.search.searches
    trials = "trials" if searches == 1 else "trials in each search"
    parts = (
        (summary.trials, mlrc_constants.TRIALS, trials),
        (summary.reproductions * searches, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (summary.experiment.folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    return [f"{count} of {full} {unit}" for count, full, unit in parts if count < full and (count or unit != trials)]


def _searches(material: Material) -> Iterator[str]:
    summary = material.measured.summary
    if unit_of(summary.experiment) == "single search":
        yield "one search per method"
    missing: Counter[str] = Counter()
    for units in missing_units(material).values():
        missing[units.unit] += units.planned - units.complete
    for unit, count in missing.items():
        yield f"{counted(count, unit)} missing"
    if failed := failed_of(material):
        count = sum(len(values.failed) for values in failed.values())
        yield f"{counted(count, 'failed search')} of {listed([material.titles[key] for key in failed])}"


def failed_of(material: Material) -> dict[str, MethodValues]:
    """Return the values of the methods with a failed search, which a mean alone would hide."""
    if material.unit != "search":
        return {}
    return {key: values for key, values in material.values(material.scores[0]).items() if values.failed}


def _cut_off(material: Material) -> Iterator[str]:
    counts = cut_offs(material.measured)
    if counts:
        cut, trained = sum(count.cut_off for count in counts), sum(count.trainings for count in counts)
        least = "" if all(count.counted for count in counts) else "at least "
        share = f"all {cut}" if cut == trained else f"{least}{cut} of {trained}"
        yield f"{share} trainings cut off while the score still rose"


def _smallest(material: Material) -> Iterator[str]:
    sees = material.budget
    if sees is None:
        return
    if sees.smallest is not None:
        yield f"differences below about {100 * sees.smallest:.1f} points can stay unseen"
    elif sees.unit == "run":
        yield "single runs, which show no difference"
    else:
        yield "how far two searches of this size differ is not known"


def verdicts_of(material: Material) -> tuple[Verdict, ...]:
    """Write the sentences about the scores. Pairs of methods are in the matrix (`pair_matrix`)."""
    comparison = material.comparison
    if comparison is None:
        return ()
    primary, *secondary = material.scores
    best = [_of_the_subject(material, primary, comparison), *(_untested(material, score) for score in secondary)]
    return (*best, *_of_the_settings(material, comparison), *_budget_verdict(material))


def _of_the_subject(material: Material, score: Score, comparison: ComparisonResult) -> Verdict:
    """How the method of the headline stands to the others: direction, then size."""
    subject = subject_of(comparison)
    has = "the highest mean, " if subject == comparison.highest and len(comparison.values) > 1 else ""
    mean = _mean_text(material, subject, material.intervals(score)[subject])
    sentence = f"{capitalized(score.name)}, the primary score: {material.titles[subject]} has {has}{mean}."
    if comparison.interim:
        return Verdict("best", f"Interim: {sentence}", "Nothing is claimed while searches or runs are missing.")
    if not comparison.pairs:
        return Verdict("best", f"{sentence} There is no other method to compare it with.")
    if comparison.unit == "single search":
        sentence += " Three searches of each method would say more than one."
        if comparison.assumed is None:
            return Verdict("best", f"{sentence} How far two searches of this size differ is not known.")
        sentence += f" {capitalized(searches_differed(comparison.assumed, material.measured.summary.trials))}."
    return Verdict("best", f"{sentence} It is {_relations(material, comparison, subject)}.", family_of(material))


def _of_the_settings(material: Material, comparison: ComparisonResult) -> Iterator[Verdict]:
    """What the runs say of the settings that single searches found."""
    settings = comparison.settings
    if settings is None or comparison.interim or not settings.tested:
        return
    subject = subject_of(settings)
    yield Verdict(
        "settings",
        f"Of the settings found, by their runs alone: that of {material.titles[subject]} is "
        f"{_relations(material, settings, subject)}. This is not about the methods.",
        "Another search could find other settings, and their order could be another.",
    )


def _relations(material: Material, comparison: ComparisonResult, subject: str) -> str:
    margin = f"{100 * comparison.margin:g} points"
    phrases: dict[tuple[str, str], str] = {
        ("a better", "beyond"): f"better than {{}} by more than {margin}",
        ("a better", "within"): f"better than {{}}, within {margin}",
        ("a better", "cannot tell"): f"better than {{}}, where it is open whether by more than {margin}",
        ("b better", "beyond"): f"worse than {{}} by more than {margin}",
        ("b better", "within"): f"worse than {{}}, within {margin}",
        ("b better", "cannot tell"): f"worse than {{}}, where it is open whether by more than {margin}",
        ("cannot tell", "within"): f"equal to {{}} within {margin}",
        ("cannot tell", "cannot tell"): "not told apart from {}",
        ("not tested", ""): "not tested against {}",
    }
    groups: dict[tuple[str, str], list[str]] = {relation: [] for relation in phrases}
    for key in comparison.values:
        if key != subject:
            groups[_relation(comparison.pair(subject, key))].append(material.titles[key])
    others = len(comparison.values) - 1
    parts = []
    for relation, titles in groups.items():
        if titles:
            every = "any" if phrases[relation].startswith("not ") else "every"
            all_others = len(titles) == others > 1
            parts.append(phrases[relation].format(f"{every} other method" if all_others else _named(titles)))
    return "; ".join(parts)


def _relation(pair: ComparedPair | None) -> tuple[str, str]:
    return ("not tested", "") if pair is None or pair.untested else (pair.direction, pair.size)


def _named(titles: Sequence[str]) -> str:
    return listed(titles) if len(titles) <= _NAMED else f"{len(titles)} methods"


def _budget_verdict(material: Material) -> Iterator[Verdict]:
    if material.budget is not None:
        yield Verdict("budget", *budget_text(material.budget, primary_score(material.measured)))


def _untested(material: Material, score: Score) -> Verdict:
    intervals = material.intervals(score)
    best = max(intervals, key=lambda key: (not math.isnan(intervals[key].mean), intervals[key].mean))
    return Verdict(
        "best",
        f"{capitalized(score.name)}, secondary and not tested: {material.titles[best]} has the highest mean, "
        f"{_mean_text(material, best, intervals[best])}.",
    )


def _mean_text(material: Material, key: str, interval: Interval) -> str:
    count = counted(interval.n, material.unit) if interval.n else counted(len(material.records[key]), "run")
    return f"{percent(interval)} ({count})"


def family_of(material: Material) -> str:
    """Say what the level of the claims is about; empty without a test."""
    comparison = material.comparison
    if comparison is None or not comparison.tested:
        return ""
    return (
        f"Tests of {asked_pairs(comparison, material.titles)}; the probability of any wrong claim is at most "
        f"{100 * comparison.alpha:g} %{if_searches_vary(comparison)}."
    )


def if_searches_vary(comparison: ComparisonResult) -> str:
    """Name the record that the level hangs on where each method was searched once; else empty."""
    assumed = comparison.assumed
    if assumed is None:
        return ""
    return (
        f", if searches vary at most twice as much as in {assumed.record} ({assumed.setting}): "
        f"{100 * assumed.deviation:.2f} points, with {assumed.degrees} degrees of freedom"
    )
