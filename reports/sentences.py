"""A sentence for a paper from each pair of an answer, in plain text or LaTeX, and one on how all pairs were tested.

A pair's has the difference with its 95 % interval, the p value that the verdict follows from, the number of values of
each method, the test and the correction. The last has the steps: with it a reader can compute interval and p value from
the single values.
"""

import re

from reports.headline import headline, if_so_many
from reports.tables.differences import P_VALUE, seen_words
from reports.tables.formats import escape_latex
from reports.tables.holds import stands_words
from reports.tables.table import Cell, value_text
from reports.tables.tests_in_words import adjustment_words, correction_words, variance_words
from results.answer.answers import Answer
from results.answer.compare import plain_test
from results.answer.values import MethodValues, Pair
from results.findings.holds import OtherConditions, counted_pairs
from results.wording import capitalized, counted, verb


def sentences(found: Answer, *, latex: bool = False) -> list[str]:
    """Write a sentence on all pairs, one on each with a verdict, or on each of some methods, and how they were tested.

    The first stands for a paper that has no room for more. While searches or runs are missing it is the only one.
    """
    if found.interim:
        return [_in_latex(summary(found)) if latex else summary(found)]
    several = len(found.shown_pairs) > 1
    pairs = [pair for pair in found.shown_pairs if pair.verdict or pair.fewest or found.only or not several]
    conditions, asked_again = OtherConditions(found), counted_pairs(found)
    texts = [summary(found)] if several or (found.only and not pairs) else []
    for pair in pairs:
        stands = stands_words(conditions, [pair]) if pair in asked_again else ""
        texts.append(f"{sentence(found, pair)} {stands}".rstrip())
    texts.append(how_tested(found))
    return [_in_latex(text) if latex else text for text in texts if text]


def summary(found: Answer) -> str:
    """Write in a sentence or two which methods are better, how many pairs are open, and what would have shown."""
    tested = [pair for pair in found.shown_pairs if not pair.untested]
    open_pairs = [pair for pair in tested if not pair.verdict]
    name, words = found.question.score_name, headline(found)
    if open_pairs and len(open_pairs) < len(tested) and not found.interim:
        seen = seen_words(found, open_pairs)
        words += f" {len(open_pairs)} of {counted(len(tested), 'pair')} {verb(len(open_pairs), 'are')} open"
        words += f"; {seen}." if seen else "."
    return f"Compared in {name}: {words}"


def how_tested(found: Answer) -> str:
    """Write the steps that the p values and intervals of all pairs have in common; empty if no pair was tested."""
    if not found.tested:
        return ""
    alone = "intervals are of each pair alone" if len(found.shown_pairs) > 1 else ""
    among = ""
    if found.only and found.reference is None:
        among = (
            f"tested among all {counted(len(found.pairs), 'pair')} of {counted(len(found.question.compared), 'method')}"
        )
    kinds = {pair.size == "within" and not pair.better for pair in found.shown_pairs if not pair.untested}
    adjusted = []
    for equal in sorted(kinds):
        of_kind = f' of "{"equal" if equal else "better"}"' if len(kinds) > 1 else ""
        if words := adjustment_words(found.question, equal=equal):
            adjusted.append(f"p values{of_kind} are {words}")
    steps = (among, alone, *adjusted, variance_words(found))
    return " ".join(f"{capitalized(text)}." for text in steps if text)


def _in_latex(text: str) -> str:
    text = re.sub(r"(?<![\w.])−(?=\d)", "\0", text)
    escaped = re.sub("\0\\$?([0-9.]+( .times 10\\^{-?\\d+})?)\\$?", r"$-\1$", escape_latex(text))
    return re.sub(r"\bp (=|\\textless\{\}) ([0-9.]+)", lambda m: f"$p {'=' if m[1] == '=' else '<'} {m[2]}$", escaped)


def sentence(found: Answer, pair: Pair) -> str:
    """Write what a pair shows in one sentence of plain text, with the better method first, or the one that is ahead."""
    if found.question.sign * pair.difference < 0:
        pair = pair.turned()
    a, b, question = found.titles[pair.a], found.titles[pair.b], found.question
    scores, gaps = found.scaling.score_format(more=True), found.scaling.gap_format(more=True)
    means = f"{_minus(scores.text(pair.of_a.mean))} against {_minus(scores.text(pair.of_b.mean))}{found.scaling.unit}"
    if not found.sample.counted:
        shown = f"{means}; {found.sample.test_words}, {correction_words(question)}"
        return f"{capitalized(if_so_many(found, pair, score=True))} ({shown})."
    if pair.untested:
        return f"{a} and {b} are not compared in {question.score_name} ({means}): {pair.untested}."
    size, score = found.scaling.gap_words(abs(pair.difference), more=True), question.score_name
    if pair.better:
        sentence = f"{a} is better than {b} in {score} by {size}"
    elif pair.ahead:
        sentence = f"{a} is {size} above {b} in {score} {pair.extent}, which is no verdict about the methods"
    elif pair.size == "within":
        sentence = f"{a} and {b} are equal in {score} within {question.margin_words}: they differ by {size}"
    else:
        sentence = f"{a} and {b} are not shown to differ in {score}: the difference is {size}"
    parts = [means]
    if ends := pair.interval:
        if pair.difference < 0:
            ends = -ends[1], -ends[0]
        parts.append(f"95 % interval {_minus(gaps.text(ends[0]))} to {_minus(gaps.text(ends[1]))}")
    plain = plain_test(question, pair) if question.experiment is None and found.sample.test != "ranks" else None
    parts += [_p_words(found, pair), _counts(found, pair), _test(found, pair)]
    parts += [f"{plain[0]} of this pair alone: {_p_text(plain[1])}"] if plain else []
    if pair.means_disagree:
        parts.append(f"{found.with_failed_words(pair)}, so there is no verdict")
    return f"{sentence} ({'; '.join(parts)})."


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _p_words(found: Answer, pair: Pair) -> str:
    equal = pair.size == "within" and not pair.better
    text = _p_text(pair.p_equal if equal else pair.p_better)
    return ", ".join(filter(None, [text, correction_words(found.question, equal=equal)]))


def _p_text(p: float | None) -> str:
    text = value_text(Cell(p, form=P_VALUE))
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _counts(found: Answer, pair: Pair) -> str:
    """The number of values of each method, and how many failed."""
    (one, of_one), (other, of_other) = ((own.n, _unit(found, own)) for own in (pair.of_a, pair.of_b))
    count = f"n = {counted(one, of_one)}{'' if found.sample.paired else ' each'}"
    if of_one != of_other:
        count = f"n = {counted(one, of_one)} and {counted(other, of_other)}"
    elif one != other:
        count = f"n = {one} and {counted(other, of_one)}"
    failed = [
        f"{len(own.failed)} of {own.count} of {found.titles[key]}"
        for key, own in ((pair.a, pair.of_a), (pair.b, pair.of_b))
        if own.failed
    ]
    return f"{count} that did not fail, {' and '.join(failed)} did" if failed else count


def _test(found: Answer, pair: Pair) -> str:
    if pair.degrees is None:
        return found.sample.test_words
    return (
        f"{found.sample.test_words} with {pair.degrees:.3g} {'degree' if pair.degrees == 1 else 'degrees'} of freedom"
    )


def _unit(found: Answer, own: MethodValues) -> str:
    """What a method's values are, in words; one that has nothing to search is repeated beside the searches."""
    repeated = found.sample.of_searches and not own.planned.by_search
    return "repetition" if repeated else found.sample.word
