"""The answer in sentences: the headline, what limits it, and the verdicts that claim no more than the runs allow.

All claims are read from the experiment's one comparison, on its primary score. The other scores are named and not
tested.
"""

from collections.abc import Iterator

from reports.page.content import Verdict
from reports.page.material import Material, Score
from reports.tables.result_notes import budget_text, part_of_the_data
from reports.wording import capitalized, listed, percent, runs
from results.spec import mlrc_constants
from results.statistics.cut_off import cut_offs
from results.statistics.intervals import student_t_interval
from results.statistics.method_comparison import ComparisonResult
from results.statistics.primary_comparison import primary_score

_NAMED, _NAMED_IN_VERDICTS = 3, 8
"""Largest number of methods that are named, in the headline and in a verdict. More are counted."""


def headline(material: Material) -> str:
    """Say which methods lead, as far as the comparison can tell."""
    comparison = material.comparison
    if comparison is None:
        return "Nothing was run yet."
    return " ".join((_answer(material, comparison), *_not_compared(material, comparison)))


def _answer(material: Material, comparison: ComparisonResult) -> str:
    titles, best = material.titles, material.titles[comparison.highest]
    if len(comparison.methods) == 1:
        if material.measured.summary.stopped:
            return f"{best} leads."
        if len(material.records) > 1:
            return f"{best} is the only method under the common conditions. There is nothing to compare it with."
        if material.measured.others:
            return f"{best} is the only method that was asked for. There is nothing to compare it with."
        return f"Only {best} has runs. There is nothing to compare it with."
    if not comparison.tested:
        return f"Nothing can be told apart: there are too few runs for a test. {best} has the highest mean."
    tested = [key for key in comparison.methods if key not in comparison.untested]
    leading = sorted(comparison.leading, key=lambda key: -comparison.means[key])
    counts = _counted(material, leading)
    within = f"equal within {100 * comparison.margin:g} points"
    equal = all(
        comparison.pair(a, b).verdict == "equal" for number, a in enumerate(leading) for b in leading[number + 1 :]
    )
    if len(leading) == len(tested):
        if equal:
            return f"All {len(tested)} methods are {within}."
        return f"Nothing can be told apart: {counts} cannot separate the {len(tested)} methods."
    if len(leading) == 1:
        better = all(comparison.pair(leading[0], key).better == leading[0] for key in tested if key != leading[0])
        claim = "It is better than every other method" if better else "Every other method is worse than some method"
        return f"{titles[leading[0]]} leads. {claim}{_small_lead(material, comparison, leading[0])}."
    named = [titles[key] for key in leading]
    if len(named) > _NAMED:
        named = [*named[:2], f"{len(named) - 2} more"]
    return f"{listed(named)} lead; {f'they are {within}' if equal else f'{counts} cannot separate them'}."


def _small_lead(material: Material, comparison: ComparisonResult, leader: str) -> str:
    """Name the methods whose distance to the leader is certainly below the margin of equality."""
    close = []
    for key in comparison.methods:
        if key == leader or (pair := comparison.pair(leader, key)).half_width is None:
            continue
        lead = pair.difference if pair.a == leader else -pair.difference
        if lead + pair.half_width < comparison.margin:
            close.append(material.titles[key])
    if not close:
        return ""
    named = listed(close) if len(close) <= _NAMED else f"{len(close)} of them"
    return f", though its lead over {named} is below {100 * comparison.margin:g} points"


def _counted(material: Material, keys: list[str]) -> str:
    values = material.values(material.scores[0])
    counts = sorted({len(values[key]) for key in keys})
    repeated = any(run.search for key in keys for run in material.records[key])
    if repeated:
        return "these searches"
    return runs(counts[0]) if len(counts) == 1 else f"{counts[0]} to {runs(counts[-1])}"


def _not_compared(material: Material, comparison: ComparisonResult) -> Iterator[str]:
    if comparison.tested and comparison.untested:
        untested = [material.titles[key] for key in comparison.methods if key in comparison.untested]
        named = listed(untested) if len(untested) <= _NAMED else f"{len(untested)} methods"
        yield f"{named} {'has' if len(untested) == 1 else 'have'} too few runs for a test."
    stopped = {stop.method for stop in material.measured.summary.stopped}
    if stopped:
        methods = "1 method was" if len(stopped) == 1 else f"{len(stopped)} methods were"
        yield f"{methods} stopped early, clearly behind."
    apart = [key for key in material.records if key in material.measured.summary.left_out and key not in stopped]
    if apart:
        rows = "1 row is" if len(apart) == 1 else f"{len(apart)} rows are"
        yield f"{rows} under other conditions and not compared."


def limits(material: Material) -> str:
    """Say in one sentence what limits the answer; empty without runs."""
    if not material.records:
        return ""
    parts = [
        *_part_of_the_data(material),
        *small_budget(material),
        *_one_search(material),
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
    parts = (
        (summary.trials, mlrc_constants.TRIALS, "trials"),
        (summary.reproductions, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (summary.experiment.folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    return [f"{count} of {full} {unit}" for count, full, unit in parts if count < full and (count or unit != "trials")]


def _one_search(material: Material) -> Iterator[str]:
    searched = [record for record in material.measured.records if record.hyperparameters]
    if material.measured.summary.trials and searched and not any(record.search for record in searched):
        yield "one search per method"


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
    if sees.smallest is None:
        yield "single runs, which show no difference"
    else:
        yield f"differences below about {100 * sees.smallest:.1f} points can stay unseen"


def verdicts_of(material: Material) -> tuple[Verdict, ...]:
    """Write the sentences about the scores. Pairs of methods are in the matrix (`pair_matrix`)."""
    comparison = material.comparison
    if comparison is None:
        return ()
    primary, *secondary = material.scores
    best = [_of_the_best(material, primary, comparison), *(_untested(material, score) for score in secondary)]
    return (*best, *_budget_verdict(material))


def _of_the_best(material: Material, score: Score, comparison: ComparisonResult) -> Verdict:
    titles, best = material.titles, comparison.highest
    values = material.values(score)[best]
    mean, counted = percent(student_t_interval(list(values.values()))), _counted_values(material, best, len(values))
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
            parts.append(
                phrase.format("every other method" if every else _named_or_counted([titles[key] for key in keys]))
            )
    sentence = (
        f"{capitalized(score.name)}, the primary score: {titles[best]} has the highest mean, {mean} "
        f"({counted}). It is {'; '.join(parts)}."
    )
    not_worse = {key for key, other in others.items() if other in ("cannot tell", "equal")}
    if set(comparison.leading) - {best} != not_worse:
        sentence += (
            f" No method is shown to be better than {_named_or_counted([titles[key] for key in comparison.leading])}."
        )
    return Verdict("best", sentence, _family(comparison))


def _budget_verdict(material: Material) -> Iterator[Verdict]:
    if material.budget is not None:
        repeated, score = material.measured.repeats_searches, primary_score(material.measured)
        yield Verdict("budget", *budget_text(material.budget, score, "search" if repeated else "run"))


def _untested(material: Material, score: Score) -> Verdict:
    values = material.values(score)
    intervals = {key: student_t_interval(list(by_run.values())) for key, by_run in values.items()}
    best = max(intervals, key=lambda key: intervals[key].mean)
    sentence = f"{capitalized(score.name)}, secondary and not tested: {material.titles[best]} has the highest mean"
    return Verdict(
        "best", f"{sentence}, {percent(intervals[best])} ({_counted_values(material, best, len(values[best]))})."
    )


def _counted_values(material: Material, method: str, count: int) -> str:
    """The number of a method's values: a value is a run, or the mean of a search's runs if its search was repeated."""
    return f"{count} searches" if any(record.search for record in material.records[method]) else runs(count)


def _family(comparison: ComparisonResult) -> str:
    if not comparison.tested:
        return ""
    pairs = "1 pair" if comparison.tested == 1 else f"all {comparison.tested} pairs"
    level = f"{100 * comparison.alpha:g} %"
    return f"{comparison.test} tests of {pairs}; the probability of any wrong claim is at most {level}"


def _named_or_counted(titles: list[str]) -> str:
    return listed(titles) if len(titles) <= _NAMED_IN_VERDICTS else f"{len(titles)} methods"
