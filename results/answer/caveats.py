"""Findings that follow from the scores alone: what is missing, what could have been seen, what failed."""

from collections.abc import Iterator

import numpy as np

from results.answer.deviations import search_deviation
from results.answer.finding import Finding
from results.answer.pair_tests import power_words
from results.answer.planning import MOST_UNITS, Detectable, detectable, units_for
from results.answer.question import Question
from results.answer.values import Answer
from results.wording import capitalized, counted, listed, plural


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
            yield budget_finding(budget, question)


def budget_finding(budget: Detectable, question: Question) -> Finding:
    """Say which differences a budget can show, and what that follows from."""
    unit = "run" if budget.unit == "run" else "search"
    given = f"{counted(budget.units, unit)} of each of {budget.methods} methods"
    if budget.deviation is None:
        more = "" if budget.units > 1 else f" 3 {plural(unit)} of each would say."
        text = f"Which differences {given} can show is not known."
        return Finding("limit", text, "comparison", f"How far {plural(unit)} of this kind vary is not known.{more}")
    if budget.smallest is None:
        text = f"{capitalized(given)} can show no difference."
    else:
        text = f"Differences below {100 * budget.smallest:.1f} points can stay unseen."
    detail = []
    if budget.smallest is not None:
        power = power_words(question.compare)
        detail.append(f"{given} show larger ones in {question.score_name} with a probability of {power}.")
    if budget.one_more is not None and (budget.smallest is None or budget.one_more < budget.smallest):
        detail.append(f"One {unit} more of each would show {100 * budget.one_more:.1f} points.")
    needed = f"more than {MOST_UNITS:,} {plural(unit)}" if budget.needed is None else counted(budget.needed, unit)
    detail.append(f"A difference of {100 * budget.wanted:g} points takes {needed} of each.")
    asked = {"all": "all pairs", "best": "each method with the best"}.get(
        question.compare, f"each with {question.compare}"
    )
    doubled = ", doubled for one search each" if budget.unit == "single search" else ""
    detail.append(
        f"This follows from a deviation of {100 * budget.deviation:.2f} points between {plural(unit)} in "
        f"{budget.source}{doubled}, for tests of {asked}."
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
    if found.question.unit == "single search":
        yield Finding("limit", "One search of each method.", "search", _single_search(found))


def _single_search(found: Answer) -> str:
    assumed = found.question.assumed
    if assumed is None or not found.compared:
        return (
            "How far searches of this kind vary is not known, so only the settings found are compared, not the "
            "methods. 3 searches of each would say."
        )
    typical = 100 * 2**0.5 * assumed.deviation
    return (
        f"Searches of this size have differed by about {typical:.1f} points ({assumed.record}: {assumed.setting}). "
        "The tests of methods assume twice as much; the intervals are about the settings found."
    )


def of_failed(found: Answer) -> Iterator[Finding]:
    """Name the searches that failed."""
    for key, failed in found.failed.items():
        units = found.values[key].units
        reached = listed([f"{100 * value:.1f}" for value in failed])
        text = f"{found.titles[key]}: {len(failed)} of {counted(len(units), 'search')} failed ({reached}; "
        text += f"median {100 * float(np.median(units)):.1f})."
        detail = "Means and tests count it; a “better” is about a search that does not fail."
        yield Finding("limit", text, "search", detail)


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
    between = search_deviation(own.units for own in found.values.values() if own.searched)
    if claimed and between is not None and between.deviation > 0:
        fixed = units_for(len(question.compared), min(claimed) / between.deviation, question.compare)
        needed = "more than can be asked for" if fixed is None else str(fixed)
        detail += (
            f" A fixed plan that shows the smallest of these differences, {100 * min(claimed):.1f} points, with a "
            f"probability of {power_words(question.compare)} takes {needed} searches of each."
        )
    yield Finding("note", f"{outcome} after {question.units} searches of each method; {planned}.", "search", detail)
