"""A sentence for a paper from each pair of an answer, in plain text or LaTeX.

It has the difference with its 95 % interval, the p value that the verdict follows from, the number of values of each
method, the test and the correction: all that a reader needs to compute interval and p value from the single values.
"""

import re

from reports.tables.differences import P_VALUE
from reports.tables.formats import escape_latex
from reports.tables.table import Cell, value_text
from reports.tables.tests_in_words import adjustment_words, variance_words
from results.answer.answers import Answer
from results.answer.values import Pair
from results.wording import plural, score_form


def sentences(found: Answer, *, latex: bool = False) -> list[str]:
    """Write a sentence for each pair that was asked for, claims first."""
    write = latex_sentence if latex else sentence
    return [write(found, pair) for pair in found.shown_pairs]


def latex_sentence(found: Answer, pair: Pair) -> str:
    """Write the sentence of a pair for LaTeX."""
    text = re.sub(r"(?<![\w.])−(?=\d)", "\0", sentence(found, pair))
    escaped = re.sub("\0\\$?([0-9.]+( .times 10\\^{-?\\d+})?)\\$?", r"$-\1$", escape_latex(text))
    return re.sub(r"\bp (=|\\textless\{\}) ([0-9.]+)", lambda m: f"$p {'=' if m[1] == '=' else '<'} {m[2]}$", escaped)


def sentence(found: Answer, pair: Pair) -> str:
    """Write what a pair shows in one sentence of plain text, with the better method first, or the one that is ahead."""
    if found.question.sign * pair.difference < 0:
        pair = pair.turned()
    a, b, question = found.titles[pair.a], found.titles[pair.b], found.question
    unit = " %" if question.in_percent else ""
    means = f"{_number(found, pair.of_a.mean)} against {_number(found, pair.of_b.mean)}{unit}"
    if pair.untested:
        return f"{a} and {b} are not compared in {question.score_name} ({means}): {pair.untested}."
    size, score = f"{_number(found, abs(pair.difference))}{question.points}", question.score_name
    if pair.better:
        sentence = f"{a} is better than {b} in {score} by {size}"
    elif pair.size == "within":
        sentence = (
            f"{a} and {b} are equal in {score} within {question.margin_words}{question.points}: they differ by {size}"
        )
    else:
        sentence = f"{a} and {b} are not shown to differ in {score}: the difference is {size}"
    parts = [means]
    if ends := pair.interval:
        if pair.difference < 0:
            ends = -ends[1], -ends[0]
        alone = " of this pair alone" if len(found.pairs) > 1 else ""
        parts.append(f"95 % interval{alone} {_number(found, ends[0])} to {_number(found, ends[1])}")
    parts += [_p_words(found, pair), _counts(found, pair), _test(found, pair)]
    if pair.means_disagree:
        parts.append(f"{found.with_failed_words(pair)}, so there is no verdict")
    return f"{sentence} ({'; '.join(parts)})."


def _number(found: Answer, value: float) -> str:
    return found.question.number(value, form=f"z{score_form(found.question.digits + 1)}").replace("-", "−")


def _p_words(found: Answer, pair: Pair) -> str:
    equal = pair.size == "within" and not pair.better
    text = value_text(Cell(pair.p_equal if equal else pair.p_better, form=P_VALUE))
    adjusted = adjustment_words(found.question, equal=equal)
    return ", ".join(filter(None, [f"p {text}" if text.startswith("<") else f"p = {text}", adjusted]))


def _counts(found: Answer, pair: Pair) -> str:
    """The number of values of each method, and how many failed."""
    one, other = pair.of_a.n, pair.of_b.n
    unit = plural(found.unit_word)
    count = f"n = {one} {unit}{'' if found.question.unit in ('block', 'fold', 'dataset') else ' each'}"
    if one != other:
        count = f"n = {one} and {other} {unit}"
    failed = [
        f"{len(own.failed)} of {own.count} of {found.titles[key]}"
        for key, own in ((pair.a, pair.of_a), (pair.b, pair.of_b))
        if own.failed
    ]
    return f"{count} that did not fail, {' and '.join(failed)} did" if failed else count


def _test(found: Answer, pair: Pair) -> str:
    if found.question.unit == "dataset":
        return "Wilcoxon's signed-rank test; the difference is the median of Hodges and Lehmann"
    degrees = f"with {pair.degrees:.3g} degree{'' if pair.degrees == 1 else 's'} of freedom"
    variance = variance_words(found)
    match found.question.unit:
        case "block":
            test = f"paired t test over {plural(found.unit_word)} {degrees}"
        case "fold":
            test = f"corrected t test of cross-validation (Nadeau and Bengio, 2003) {degrees}"
        case "summary":
            test = f"Welch's t test from means and deviations {degrees}"
        case _:
            test = f"t test {degrees}"
    return f"{test}; {variance}" if variance else test
