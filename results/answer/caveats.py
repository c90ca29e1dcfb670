"""Findings that follow from the scores alone: what is missing, what could have been seen, what failed."""

from collections.abc import Iterator, Sequence

from results.answer.answers import Answer
from results.answer.deviations import kept_range, search_deviation
from results.answer.pair_tests import power_words
from results.answer.planning import MOST_UNITS, Detectable, detectable, deviation_behind, more_for, seen_with, units_for
from results.answer.question import Question
from results.answer.values import Finding, Pair
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import (
    capitalized,
    counted,
    counted_span,
    first_of,
    joined,
    listed,
    span,
    verb,
)

NAMED = 3
"""Largest number of claims, pairs and rows that are named. More are counted."""


def caveats(found: Answer) -> list[Finding]:
    """Say what a reader of any scores must know."""
    kinds = (
        of_missing,
        of_budget,
        of_settings,
        of_means,
        of_constants,
        of_single_searches,
        of_failed,
        of_looks,
    )
    return [finding for kind in kinds for finding in kind(found)]


def of_missing(found: Answer) -> Iterator[Finding]:
    """Name the methods that are not complete."""
    if found.missing:
        named = "; ".join(f"{found.titles[key]} has {units}" for key, units in found.missing.items())
        yield Finding("limit", f"Not finished: {named}.", "comparison", "The results can change.")


def of_budget(found: Answer) -> Iterator[Finding]:
    """Say which differences the budget can show, unless looks decide how large it is."""
    question = found.question
    # Between two constant methods no run would change the difference.
    pairs = [pair for pair in found.shown_pairs if not (pair.of_a.planned.constant and pair.of_b.planned.constant)]
    if found.shown_pairs and not pairs:
        return
    if len(question.compared) > 1 and not question.looks and question.sample.test != "ranks" and found.sample.counted:
        if (seen := found.would_have_shown(pairs)) and question.sample.test != "assumed":
            yield _seen_finding(found, pairs, seen)
            return
        budget = detectable(question, len(question.compared), found)
        # What is not known of single searches is a finding about the search.
        if budget.deviation is not None or question.sample.test != "assumed":
            yield budget_finding(budget, question, seen)


def _seen_finding(found: Answer, pairs: Sequence[Pair], seen: tuple[float, float]) -> Finding:
    """Say which differences the tested pairs could have seen, and what one unit more of each would change."""
    question, sample, power = found.question, found.sample, power_words(found.question.compare)
    scaling = found.scaling
    tested = [pair for pair in pairs if pair.smallest is not None]
    counts = {own.n for pair in tested for own in (pair.of_a, pair.of_b) if not own.planned.constant}
    most = max(counts)
    methods = counted(len({key for pair in found.pairs if pair.smallest for key in (pair.a, pair.b)}), "method")
    given = counted_span(counts, sample.word)
    if not sample.paired:
        given += f" of each of {methods}"
    if scaling.is_beyond(min(seen)):
        text, detail = f"{capitalized(given)} can show no difference.", []
    else:
        text = f"Differences below {scaling.gap_words(*seen)} can stay unseen."
        detail = [f"{given} {verb(most, 'show')} larger ones in {question.score_name} with a probability of {power}."]
    if not sample.takes_more:
        return Finding("limit", text, "comparison", " ".join(detail))
    with_one = seen_with(found, 1)
    more = [one for pair in tested if not scaling.is_beyond(one := with_one[frozenset((pair.a, pair.b))])]
    if more:
        detail.append(f"One {sample.word} more{sample.each} would show {scaling.gap_words(*more)}.")
    if question.bound:
        ordered = sorted(tested, key=lambda pair: pair.smallest or 0.0)
        takes = (
            f"takes {takes_words(found, [more_for(found, ordered[at], question.bound) for at in (0, -1)])}{sample.each}"
        )
        detail.append(f"A difference of {question.margin_words} {takes}.")
    if sample.test == "pooled":
        known, source = deviation_behind(question, found)
        detail.append(_follows(question, known.deviation if known else None, source))
    return Finding("limit", text, "comparison", " ".join(filter(None, detail)))


def takes_words(found: Answer, more: Sequence[int | None]) -> str:
    """How many searches or runs a difference takes, by how many more it takes: of each, if all have as many."""
    counts, sample = {found.values[key].n for key in found.compared if found.values[key].n > 1}, found.sample
    known = [one for one in more if one is not None]
    if not known:
        return f"more than {MOST_UNITS:,} {sample.words}"
    own = counts.pop() if len(counts) == 1 else 0
    ends = span([own + one for one in known] if own else [max(0, one) for one in known])
    above = "" if len(known) == len(more) else " or more"
    return f"{ends}{above} {sample.word if ends == '1' else sample.words}{'' if own else ' more'}"


def budget_finding(budget: Detectable, question: Question, seen: tuple[float, float] | None = None) -> Finding:
    """Say which differences a budget can show, and from what that follows.

    `seen` is what its pairs would have shown.
    """
    unit, units, scaling = question.sample.word, question.sample.words, question.scaling
    given = f"{counted(budget.units, unit)} of each of {counted(budget.methods, 'method')}"
    if budget.deviation is None:
        more = "" if budget.units > 1 else f"; 3 {units} of each would say"
        text = f"Which differences {given} can show is not known."
        why = f"It depends on how far {units} of this kind vary, which no record says well enough{more}."
        return Finding("limit", text, "comparison", why)
    smallest = None if scaling.is_beyond(budget.smallest or 0.0) else budget.smallest
    text, detail = f"{capitalized(given)} can show no difference.", []
    if smallest is not None:
        text = f"Differences below {scaling.gap_words(*(seen or (smallest,)))} can stay unseen."
        show, power = verb(budget.units, "show"), power_words(question.compare)
        detail.append(f"{given} {show} larger ones in {question.score_name} with a probability of {power}.")
    if budget.one_more is not None and budget.one_more < (smallest or scaling.largest):
        detail.append(f"One {unit} more of each would show {scaling.gap_words(budget.one_more)}.")
    needed = f"more than {MOST_UNITS:,} {units}" if budget.needed is None else counted(budget.needed, unit)
    if budget.wanted is not None:
        detail.append(f"A difference of {question.margin_words} takes {needed} of each.")
    detail.append(_follows(question, budget.deviation, budget.source))
    return Finding("limit", text, "comparison", " ".join(detail))


def _follows(question: Question, found: float | None, behind: str) -> str:
    """Say from which deviation a budget's numbers follow, and for which tests."""
    if not found:
        return ""
    known = {"all": "all pairs", "best": "each method with the best"}
    compared = question.methods.get(question.compare)  # A plan can ask for a method that has no score yet.
    asked = known.get(question.compare) or f"each with {compared.title if compared else question.compare}"
    source = f" in {behind}" if behind else ", as given"
    doubled = ", doubled for one search each" if question.sample.test == "assumed" and behind else ""
    deviation = question.scaling.gap_words(found, more=True)
    between = f"between {question.sample.words}{source}{doubled}"
    return f"This follows from a deviation of {deviation} {between}, for tests of {asked}."


def of_constants(found: Answer) -> Iterator[Finding]:
    """Name the methods of one run that stands for all."""
    if constant := [planned.title for planned in found.question.methods.values() if planned.constant]:
        text = f"{listed(constant)}: one run, because every further run would be equal."
        yield Finding("note", text, "comparison", "The tests take its value without an error of its own.")


def of_single_searches(found: Answer) -> Iterator[Finding]:
    """Say what one search of each method can show."""
    searched = any(planned.searched for planned in found.question.methods.values())
    if found.sample.test == "assumed" and searched:
        yield Finding("limit", "One search of each method.", "search", _single_search(found))


def _single_search(found: Answer) -> str:
    assumed = found.question.assumed
    if assumed is None or not found.compared:
        return (
            "How far searches of this kind vary is not known, so only the settings found are compared, not the "
            "methods. 3 searches of each would say."
        )
    if assumed.given:
        words = found.question.assumed_words
        return f"The tests take {words} as the deviation between searches; they hold as far as it does."
    typical = found.scaling.gap_words(2**0.5 * assumed.deviation)
    return (
        f"Searches of this size have differed by about {typical} ({assumed.record}: {assumed.setting}). "
        "The tests of methods assume twice as much; the intervals are about the settings found."
    )


def of_failed(found: Answer) -> Iterator[Finding]:
    """Name the searches or runs that failed, which are set aside."""
    detail = (
        "Nothing crashed. Such a search is set aside: means, intervals and tests are about a search that does not "
        "fail. More trials or a narrower range make failures rarer, and more searches tell how rare."
    )
    if not found.sample.of_searches:
        detail = "Such a run is set aside: means, intervals and tests are about the others."
    for key, failed in found.failed.items():
        own, reached = found.values[key], listed([found.scaling.score(value) for value in sorted(failed)])
        way = "above" if found.question.sign < 0 else "below"
        low = f"{verb(len(failed), 'lie')} far {way} the others"
        text = f"{found.titles[key]}: {len(failed)} of {counted(own.count, found.sample.word)} "
        others = found.scaling.scores(own.units)
        text += f"{low if not found.sample.of_searches else 'found no good setting'} ({reached}; the others {others})."
        yield Finding("limit", text, "search", detail)


def of_means(found: Answer) -> Iterator[Finding]:
    """Name the pairs whose order failures turn, with both differences."""
    named = [
        f"{found.titles[pair.a]} over {found.titles[pair.b]} ({found.scaling.gap(pair.difference, signed=True)}; "
        f"{found.with_failed_words(pair)})"
        for pair in found.without_agreement
    ]
    if named:
        text = f"No verdict about {joined(first_of(named, NAMED))}."
        detail = f"A typical {found.sample.word} of the first is better, and its mean over all of them is worse."
        yield Finding("limit", text, "comparison", detail)


def of_settings(found: Answer) -> Iterator[Finding]:
    """Say what the answer is about, where it is not about methods."""
    if found.sample.about == "this dataset":
        text = "One dataset, over its folds: the answer is about this dataset."
        detail = (
            "Folds share training data, so the interval of a difference is wider than that of as many runs (Nadeau and "
            "Bengio)."
        )
        yield Finding("limit", text, "comparison", detail)
    if found.sample.about == "datasets like these" and found.tested:
        text = "The datasets are the sample: the answer is about datasets like these, each with one score of a method."
        yield Finding("limit", text, "comparison", "Wilcoxon's signed-rank test, corrected by Holm's method.")
    text = "Runs of given settings are compared: the answer is about these settings, not about the methods."
    if found.sample.about == "settings" and found.question.experiment is None and found.shown_pairs:
        yield Finding("limit", text, "comparison", f"Another search could find other settings.{in_records(found)}")


def in_records(found: Answer) -> str:
    """Say by how much searches vary in the kept records; nothing beside scores that these do not have."""
    if found.question.score not in HEADLINE_METRICS or not found.scaling.in_percent:
        return ""
    return f" In the kept records they vary by {kept_range(found.question.score, found.question.embeddings)}."


def of_looks(found: Answer) -> Iterator[Finding]:
    """Say how many searches the answer took, at which level, and how many a fixed plan would take."""
    question, level = found.question, found.look_level
    if level is None:
        return
    planned = f"looks were planned after {listed([str(look) for look in question.looks])}"
    searches = counted(question.units, "search")
    detail = (
        f"A verdict of this look has a level of {100 * level:.1f} %. Over all looks the level is "
        f"{100 * question.alpha:g} %, whatever ends the run."
    )
    claimed = [abs(pair.difference) for pair in found.pairs if pair.better]
    between = search_deviation(found.searches)
    if claimed and between is not None and between.deviation > 0:
        fixed = units_for(len(question.compared), min(claimed) / between.deviation, question.compare)
        needed = "more searches of each than can be asked for"
        if fixed is not None:
            needed = f"{counted(fixed, 'search')} of each"
        smallest = found.scaling.gap_words(min(claimed))
        detail += (
            f" A fixed plan that shows the smallest of these differences, {smallest}, with a probability of "
            f"{power_words(question.compare)} takes {needed}."
        )
    text = f"{capitalized(found.decided_words)} after {searches} of each method; {planned}."
    yield Finding("note", text, "search", detail)


def unit_sentence(found: Answer) -> str:
    """Say what the answer is about: methods, or the settings that the runs are of."""
    if found.sample.of_searches:
        counts = [own.count for own in found.values.values()]
        return f"Methods are compared by the means of their searches, {span(counts)} of each."
    return " ".join(one.sentences for one in (*of_settings(found), *of_single_searches(found)))
