"""Findings about a table of scores that nobody planned: what it takes to tell, and what in it does not hold."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special

from results.answer.answers import Answer
from results.answer.caveats import NAMED, caveats, in_records, takes_words
from results.answer.compare import compare
from results.answer.pair_tests import MOST_DEGREES, SHARE_OF_BETTER, Numbers, break_even, family, power_words
from results.answer.planning import more_for
from results.answer.values import MOST_RUNS, Finding, Pair
from results.reading.columns import RUN
from results.wording import counted, few, joined, listed, some, things, verb

FEWEST_TOGETHER = 4
"""Runs of each method that a correlation takes."""


@dataclass(frozen=True, repr=False)
class ScoresAnswer(Answer):
    """The answer to a question about a table of scores that nobody planned.

    Attributes:
        without_score: Rows without a score, by method.
        reading: What the reading of the table left out or merged, in sentences.
    """

    without_score: Mapping[str, list[int]] = field(default_factory=dict)
    reading: tuple[str, ...] = ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know beside the numbers."""
        return tuple(_findings(self))


def _findings(found: ScoresAnswer) -> Iterator[Finding]:
    yield from (Finding("warning", sentence, "data") for sentence in found.reading)
    yield from caveats(found)
    yield from _uncounted(found)
    yield from _needed(found)
    yield from _single(found)
    yield from _left_out(found)
    for kind in (_unshared, _together, _unequal, _equal, _rounded):
        yield from kind(found)


def _uncounted(found: Answer) -> Iterator[Finding]:
    """Say what is not known of means of an unknown number of runs, and what a standard error would change."""
    question, words = found.question, found.sample.words
    if found.sample.counted or not found.shown_pairs:
        return
    text = (
        f"Nothing says how many {words} (n) are behind each mean, so no pair has a verdict, but the smallest n up to "
        f"{MOST_RUNS} with which it would differ."
    )
    n = "5-folds" if question.folds else "5"
    parts = [f"--n {n} answers for 5 {words} of each, with intervals and p values"]
    if not question.folds:
        parts.append("--n 5-folds for folds of a cross-validation, which show less")
    detail = f"{'; '.join(parts)}."
    if question.plus_minus is None:
        if_errors = compare(replace(question, plus_minus="se"), found.values)
        shown, taken = (sum(pair.fewest is not None for pair in pairs) for pairs in (if_errors, found.pairs))
        detail += (
            f" Each ± is taken as a standard deviation of the {words}. As standard errors (--plus-minus se) they show, "
            f"up to n = {MOST_RUNS}, not {taken} but {counted(shown, 'difference')}."
        )
    yield Finding("limit", text, "comparison", detail)


def _needed(found: Answer) -> Iterator[Finding]:
    """The searches or runs that would show the open differences, of the pairs with the highest means."""
    pairs = [pair for pair in found.shown_pairs if pair.untested is None]
    open_ones = [pair for pair in pairs if not (pair.verdict or pair.means_disagree)]
    open_ones = [pair for pair in open_ones if pair.difference]
    if len(open_ones) > NAMED:
        open_ones.sort(key=lambda pair: -abs(pair.difference))
    if not open_ones or not found.sample.takes_more:
        return
    parts = [
        f"{_ahead(found, pair)} takes {takes_words(found, [more_for(found, pair, abs(pair.difference))])}"
        for pair in open_ones[:NAMED]
    ]
    left = len(open_ones) - NAMED
    more = f"; {counted(left, 'more pair')} {verb(left, 'are')} open" if left > 0 else ""
    text = f"{found.sample.words.capitalize()}{found.sample.each} that would show a difference of the size seen here: "
    detail = f"With a probability of {power_words(found.question.compare)}, if the true difference is as large."
    yield Finding("note", f"{text}{joined(parts)}{more}.", "comparison", detail)


def _ahead(found: Answer, pair: Pair) -> str:
    pair = pair if found.question.sign * pair.difference >= 0 else pair.turned()
    return f"{found.titles[pair.a]} over {found.titles[pair.b]} ({found.scaling.gap(abs(pair.difference))})"


def _single(found: Answer) -> Iterator[Finding]:
    """Name methods of one run or search, and the deviation that would give a verdict about them."""
    assumed = found.question.assumed
    names = [found.titles[key] for key in found.compared if found.values[key].n == 1]
    if not names or found.sample.paired or (assumed is not None and assumed.given):
        return
    text = f"One {found.sample.value} each, so there is no verdict about {few(names, most=8)}."
    detail = f"Three {found.sample.values} of each would give one."
    single_runs = not found.sample.of_searches and found.sample.test != "welch"
    limits = _largest_deviations(found) if single_runs else {}
    if limits:
        largest = max(limits, key=lambda pair: limits[pair])
        named = dict.fromkeys([next(iter(limits)), largest])
        below = {pair: found.scaling.two_digits(limits[pair], down=True) for pair in named}
        option = found.scaling.two_digits(limits[largest], down=True, unit=False)
        cases = joined([f"{_ahead(found, pair)} below {deviation}" for pair, deviation in below.items()])
        detail = (
            f"If you know by how much searches of one method vary (their standard deviation), --assume-deviation gives "
            f"verdicts: {cases}, as with --assume-deviation {option}. {detail}{in_records(found)}"
        )
    yield Finding("limit", text, "comparison", detail)


def _largest_deviations(found: Answer) -> dict[Pair, float]:
    """How much searches may vary for a claim about two single runs; without pairs that can have none."""
    level = SHARE_OF_BETTER * found.question.alpha / family(found.question.compare, len(found.question.compared))
    rounding = np.array(found.question.step / np.sqrt(6))  # The error of a difference of two rounded scores.
    limits = {
        pair: float(break_even(np.array(pair.difference), rounding, np.array(MOST_DEGREES), level))
        for pair in found.shown_pairs
        if len(found.values[pair.a].units) == len(found.values[pair.b].units) == 1
    }
    return {pair: limit for pair, limit in limits.items() if limit > 0}


def _left_out(found: ScoresAnswer) -> Iterator[Finding]:
    for key, rows in found.without_score.items():
        shown = f"{things(len(rows), 'row')} {some([str(row) for row in rows], NAMED)}"
        text = f"{found.titles.get(key, key)}: {counted(len(rows), 'run')} without a score, left out ({shown})."
        yield Finding("warning", text, "data", "If they failed, the mean of the others is too high.")


def _unequal(found: Answer) -> Iterator[Finding]:
    if found.sample.paired:
        return
    counts = {found.titles[key]: found.values[key].count for key in found.compared}
    if len(set(counts.values())) > 1:
        named = [f"{title} {count}" for title, count in counts.items()]
        spread = joined(named) if len(named) <= 8 else f"{min(counts.values())} to {max(counts.values())}"
        text = f"Unequal numbers of {found.sample.words}: {spread}."
        yield Finding("note", text, "data", "Tests and intervals count them.")


def _unshared(found: Answer) -> Iterator[Finding]:
    """Name the blocks, folds or datasets that not all methods have, which are left out."""
    if not found.sample.paired or not found.runs:
        return
    by = "dataset" if found.sample.test == "ranks" else "run"
    whole = next(iter(found.runs.values()))
    gone = [key for key in dict.fromkeys(found.frame[by]) if key not in whole]
    if gone:
        text = f"Left out: {some(gone)}, which not all methods have."
        yield Finding("warning", text, "data", "Methods are compared on what all of them have.")


def _together(found: Answer) -> Iterator[Finding]:
    """Say when runs of equal seeds move together: whether to pair them is decided before the scores are seen."""
    seed, sample = found.question.shared, found.sample
    by_runs = sample.test == "pooled" and sample.about == "settings" and seed.casefold() in RUN
    if not by_runs or len(found.compared) < 2:
        return
    shared = _shared_runs(found)
    if len(shared) < FEWEST_TOGETHER:
        return
    low, mean, high = shared_part(shared.to_numpy().T)
    if low > 0:
        text = f"Rows of equal {seed} move together: their correlation is {mean:.2f} ({low:.2f} to {high:.2f})."
        detail = (
            f"If the {seed} sets what all methods share, such as splits or the order of the data, --paired {seed} "
            "compares within it. Decide that by what it sets, not by this number."
        )
        yield Finding("note", text, "data", detail)


def _shared_runs(found: Answer) -> pd.DataFrame:
    """The scores with a row per run and a column per compared method; no rows if one lacks a run."""
    question, frame = found.question, found.frame
    scores = frame[(frame["metric"] == question.score) & (frame["embeddings"] == question.embeddings)]
    compared = scores[scores["method"].isin(found.compared)]
    wide = compared.pivot_table(index="run", columns="method", values="value").dropna()
    return wide if len(wide) == scores["run"].nunique() else wide[:0]


def shared_part(values: Numbers) -> tuple[float, float, float]:
    """Return the correlation of methods over runs that share something, with its 95 % interval.

    It is the intraclass correlation of the deviations from the methods' means: (F - 1) / (F + k - 1) for the ratio F of
    the mean squares between runs and within them (Shrout and Fleiss, Psychological Bulletin 86, 1979, form 3,1).

    Args:
        values: Scores of shape (methods, runs).
    """
    k, b = values.shape
    rest = values - values.mean(axis=1, keepdims=True)
    between = k * float((rest.mean(axis=0) ** 2).sum()) / (b - 1)
    within = float(((rest - rest.mean(axis=0)) ** 2).sum()) / ((k - 1) * (b - 1))
    if within <= 0:
        return 1.0, 1.0, 1.0
    ratio, degrees = between / within, (b - 1, (k - 1) * (b - 1))
    ends = ratio / special.fdtri(*degrees, 0.975), ratio * special.fdtri(*reversed(degrees), 0.975)
    low, mean, high = ((one - 1) / (one + k - 1) for one in (ends[0], ratio, ends[1]))
    return low, mean, high


def _equal(found: Answer) -> Iterator[Finding]:
    """Name scores that are equal too often to be measured: a copied row, or a seed without effect."""
    question = found.question
    if found.sample.test == "welch":
        return
    coarse = found.scaling.coarse is not None and question.step >= found.scaling.coarse
    seen: dict[tuple[float, ...], list[str]] = {}
    for key in found.compared:
        values = [value for own in found.runs[key].values() for value in own]
        seen.setdefault(tuple(sorted(values)), []).append(found.titles[key])
        counts = Counter(values)
        ((_, most),) = counts.most_common(1)
        if most > 2 and 2 * most > len(values) and not coarse:
            text = f"{found.titles[key]}: {most} of {counted(len(values), 'run')} {verb(most, 'have')} the same score."
            yield Finding("warning", text, "data", "A copied row, or a seed without effect, counts as no new run.")
        elif len(counts) > 2 and min(counts.values()) > 1:
            text = f"{found.titles[key]}: every score is there {'twice' if most == 2 else 'several times'}."
            yield Finding("warning", text, "data", "Copied rows count as no new runs.")
    for scores, titles in seen.items():
        if len(set(scores)) > 1 and len(titles) > 1:
            text = f"{listed(titles)} have the same {counted(len(scores), 'score')}."
            yield Finding("warning", text, "data", "One may be a copy of the other.")


def _rounded(found: Answer) -> Iterator[Finding]:
    question, step = found.question, found.question.step
    varies = [float(np.std(own.units, ddof=1)) for own in found.values.values() if len(own.units) > 1]
    least = found.scaling.coarse
    coarse = step >= least if least is not None else bool(varies) and step > float(np.median(varies))
    if coarse and not question.tested and found.sample.test != "ranks":
        text = f"The scores are rounded to {found.scaling.short_gap(step)}."
        detail = "Nothing smaller can be seen, and no deviation is taken to be smaller than that of rounding."
        yield Finding("limit", text, "data", detail)
