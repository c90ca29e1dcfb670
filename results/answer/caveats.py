"""Findings that follow from the scores alone: what is missing, what could have been seen, what failed."""

from collections.abc import Iterator

from results.answer.compare import fragile_claims
from results.answer.deviations import kept_range, search_deviation
from results.answer.finding import Finding
from results.answer.pair_tests import power_words
from results.answer.planning import MOST_UNITS, Detectable, detectable, units_for
from results.answer.question import Question
from results.answer.values import Answer
from results.wording import capitalized, counted, first_of, listed, plural

NAMED = 3
"""Largest number of fragile claims that are named. More are counted."""


def caveats(found: Answer) -> Iterator[Finding]:
    """Say what a reader of any scores must know."""
    for kind in (of_missing, of_budget, of_settings, of_fragile, of_constants, of_single_searches, of_failed, of_looks):
        yield from kind(found)


def of_missing(found: Answer) -> Iterator[Finding]:
    """Name the methods that are not complete."""
    if found.missing:
        named = "; ".join(f"{found.titles[key]} has {units}" for key, units in found.missing.items())
        yield Finding("limit", f"Not finished: {named}.", "comparison", "The results can change.")


def of_budget(found: Answer) -> Iterator[Finding]:
    """Say which differences the budget can show, unless looks decide how large it is."""
    question = found.question
    if len(question.compared) > 1 and not question.looks:
        budget = detectable(question, len(question.compared), found)
        # What is not known of single searches is a finding about the search.
        if budget.deviation is not None or budget.unit != "single search":
            yield budget_finding(budget, question, found.could_have_seen)


def budget_finding(budget: Detectable, question: Question, seen: tuple[float, float] | None = None) -> Finding:
    """Say which differences a budget can show, and what that follows from; `seen` is what its pairs could have seen."""
    unit = "run" if budget.unit == "run" else "search"
    given = f"{counted(budget.units, unit)} of each of {budget.methods} methods"
    if budget.deviation is None:
        more = "" if budget.units > 1 else f"; 3 {plural(unit)} of each would say"
        text = f"Which differences {given} can show is not known."
        return Finding("limit", text, "comparison", f"It depends on how far {plural(unit)} of this kind vary{more}.")
    if budget.smallest is None:
        text = f"{capitalized(given)} can show no difference."
    else:
        bounds = " to ".join(dict.fromkeys(f"{100 * bound:.1f}" for bound in seen or (budget.smallest,)))
        text = f"Differences below {bounds} points can stay unseen."
    detail = []
    if budget.smallest is not None:
        power = power_words(question.compare)
        verb = "shows" if budget.units == 1 else "show"
        detail.append(f"{given} {verb} larger ones in {question.score_name} with a probability of {power}.")
    if budget.one_more is not None and (budget.smallest is None or budget.one_more < budget.smallest):
        detail.append(f"One {unit} more of each would show {100 * budget.one_more:.1f} points.")
    needed = f"more than {MOST_UNITS:,} {plural(unit)}" if budget.needed is None else counted(budget.needed, unit)
    detail.append(f"A difference of {100 * budget.wanted:g} points takes {needed} of each.")
    asked = {"all": "all pairs", "best": "each method with the best"}.get(
        question.compare, f"each with {question.compare}"
    )
    source = f" in {budget.source}" if budget.source else ", as given"
    doubled = ", doubled for one search each" if budget.unit == "single search" and budget.source else ""
    detail.append(
        f"This follows from a deviation of {100 * budget.deviation:.2f} points between {plural(unit)}{source}{doubled}"
        f", for tests of {asked}."
    )
    return Finding("limit", text, "comparison", " ".join(detail))


def of_constants(found: Answer) -> Iterator[Finding]:
    """Name the methods of one run that stands for all."""
    if constant := [planned.title for planned in found.question.methods.values() if planned.constant]:
        yield Finding(
            "note",
            f"{listed(constant)}: one run, because every further run would be equal.",
            "comparison",
            "The tests take its value without an error of its own.",
        )


def of_single_searches(found: Answer) -> Iterator[Finding]:
    """Say what one search of each method can show."""
    searched = any(planned.searched for planned in found.question.methods.values())
    if found.question.unit == "single search" and searched:
        yield Finding("limit", "One search of each method.", "search", _single_search(found))


def _single_search(found: Answer) -> str:
    assumed = found.question.assumed
    if assumed is None or not found.compared:
        return (
            "How far searches of this kind vary is not known, so only the settings found are compared, not the "
            "methods. 3 searches of each would say."
        )
    if assumed.given:
        return f"The tests take {assumed.words} as the deviation between searches; they hold as far as it does."
    typical = 100 * 2**0.5 * assumed.deviation
    return (
        f"Searches of this size have differed by about {typical:.1f} points ({assumed.record}: {assumed.setting}). "
        "The tests of methods assume twice as much; the intervals are about the settings found."
    )


def of_failed(found: Answer) -> Iterator[Finding]:
    """Name the searches or runs that failed, which are set aside."""
    unit = "run" if found.question.unit == "run" else "search"
    for key, failed in found.failed.items():
        own = found.values[key]
        reached = listed([f"{100 * value:.1f}" for value in sorted(failed)])
        others = " to ".join(dict.fromkeys(f"{100 * value:.1f}" for value in (min(own.units), max(own.units))))
        number = f"{len(failed)} of {counted(own.count, unit)}"
        if unit == "run":
            text = f"{found.titles[key]}: {number} lies far below the others ({reached}; the others {others})."
            detail = "Such a run is set aside: means, intervals and tests are about the others."
        else:
            text = f"{found.titles[key]}: {number} found no good setting ({reached}; the others {others})."
            detail = (
                "Nothing crashed. Such a search is set aside: means, intervals and tests are about a search that does "
                "not fail. More trials or a narrower range make failures rarer, and more searches tell how rare."
            )
        yield Finding("limit", text, "search", detail)


def of_fragile(found: Answer) -> Iterator[Finding]:
    """Name the claims that hang on a method that they are not about."""
    fragile = fragile_claims(found)
    named = [
        f"{found.titles[better]} over {found.titles[worse]} without {' or '.join(found.titles[key] for key in without)}"
        for (better, worse), without in fragile.items()
    ]
    if named:
        text = f"Fragile: {len(named)} of {counted(len(found.claims), 'claim')} would be gone without another method."
        yield Finding("warning", text, "comparison", f"{capitalized('; '.join(first_of(named, NAMED)))}.")


def of_settings(found: Answer) -> Iterator[Finding]:
    """Say how much searches may vary before claims about given settings would say nothing about methods."""
    claims = [pair for pair in found.pairs if pair.better and pair.break_even is not None]
    text = "Runs of given settings are compared: the answer is about these settings, not about the methods."
    if found.question.unit == "run" and not claims and not found.measured and found.pairs:
        yield Finding("limit", text, "comparison", "Another search could find other settings.")
    if found.question.unit != "run" or not claims:
        return
    weakest = min(claims, key=lambda pair: pair.break_even or 0.0)
    better, worse = (found.titles[key or ""] for key in (weakest.better, weakest.worse))
    width = "" if weakest.half_width is None else f" ± {100 * weakest.half_width:.1f}"
    room = f"by more than {100 * weakest.break_even:.2g} points" if weakest.break_even else "at all"
    detail = (
        f"{better} is {100 * abs(weakest.difference):.1f}{width} above {worse}; this would be gone if searches of the "
        f"two varied {room}."
    )
    yield Finding("limit", text, "comparison", f"{detail}{in_records(found)}")


def in_records(found: Answer) -> str:
    """Say by how much searches vary in the kept records; nothing beside a score that is no percentage."""
    if found.question.scale == "points":
        return ""
    return f" In the kept records they vary by {kept_range(found.question.score, found.question.embeddings)}."


def of_looks(found: Answer) -> Iterator[Finding]:
    """Say how many searches the answer took, at which level, and how many a fixed plan would take."""
    question, level = found.question, found.look_level
    if level is None:
        return
    planned = f"looks were planned after {listed([str(look) for look in question.looks])}"
    outcome = "Decided" if found.decided else "Not decided"
    detail = (
        f"A verdict of this look has a level of {100 * level:.1f} %. Over all looks the level is "
        f"{100 * question.alpha:g} %, whatever ends the run."
    )
    claimed = [abs(pair.difference) for pair in found.pairs if pair.better]
    between = search_deviation(found.searches)
    if claimed and between is not None and between.deviation > 0:
        fixed = units_for(len(question.compared), min(claimed) / between.deviation, question.compare)
        needed = "more than can be asked for" if fixed is None else str(fixed)
        detail += (
            f" A fixed plan that shows the smallest of these differences, {100 * min(claimed):.1f} points, with a "
            f"probability of {power_words(question.compare)} takes {needed} searches of each."
        )
    yield Finding("note", f"{outcome} after {question.units} searches of each method; {planned}.", "search", detail)
