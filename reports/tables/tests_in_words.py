"""The tests of an answer in words: the variances that they take, and how their p values are adjusted.

With the single values they are all that a reader needs to compute a p value again (docs/comparisons.md, The test).
"""

from collections.abc import Mapping
from fractions import Fraction

from results.answer.answers import Answer
from results.answer.pair_tests import SHARE_OF_BETTER, family, least_factor
from results.answer.question import AskedMethod, Question
from results.wording import counted, joined


def adjustment_words(question: Question, *, equal: bool = False) -> str:
    """Write how p values of "better", or of "equal", are adjusted; empty where they are not.

    It is what `compare` does: the correction for the family, the share of the level, and planned looks.
    """
    steps = ["".join(_correction(question, equal=equal))]
    if question.sample.test != "ranks":
        share, spent = (1 - SHARE_OF_BETTER, "a quarter") if equal else (SHARE_OF_BETTER, "three quarters")
        verdict = "equal" if equal else "better"
        steps.append(f'multiplied by {1 / Fraction(share)}, since {spent} of the level is spent on "{verdict}"')
    words = " and ".join(filter(None, steps))
    if question.looks:
        words += (
            f", and the least of those after l = {joined([*map(str, question.looks)])} searches, as far as there are "
            f"so many, each times {sum(question.looks)}/l"
        )
    return f"of two one-sided tests, {words}" if equal else words


def correction_words(question: Question, *, equal: bool = False) -> str:
    """Write the name of the correction for the number of comparisons alone; `adjusted` where there is one of them."""
    return _correction(question, equal=equal)[0] or ("" if question.sample.test == "ranks" else "adjusted")


def _correction(question: Question, *, equal: bool) -> tuple[str, str]:
    """How the p values of a family are corrected for its size: the name of the method, and its details."""
    methods, best = len(question.compared), question.compare == "best"
    if (count := family(question.compare, methods)) <= 1:
        return "", ""
    comparisons = counted(count, "comparison")
    test = question.sample.test
    if test == "assumed" or (best and (equal or test == "ranks")):
        return f"adjusted by Bonferroni's method for {comparisons}", ""
    if best:
        return f"adjusted for the choice of the best of {methods}", (
            f" (against the r-th times r (r − 1) / 2, but at least "
            f"{least_factor(methods)}, and no less than against the next; or {methods - 1} times the largest of all, "
            "if that is less)"
        )
    least = f" with no factor below {count / 2:g}" if question.compare == "all" and test != "ranks" else ""
    return f"adjusted by Holm's method for {comparisons}", least


def _unlike(planned: Mapping[str, AskedMethod]) -> list[str]:
    """Write in what methods differ that have variances of their own."""
    varied = [one for one in planned.values() if not one.constant]
    kinds = {
        "searched or not": {one.searched for one in varied},
        "trained or computed": {one.trained for one in varied},
    }
    return [words for words, found in kinds.items() if len(found) > 1]


def variance_words(found: Answer) -> str:
    """Write which variance the t tests take, and of what; empty for the textbook's test of differences of scores."""
    return "; ".join(filter(None, (_variance(found), found.scaling.note)))


def _variance(found: Answer) -> str:
    question, units = found.question, found.sample.words
    factor = f"times 1 + 1/(S − 1)² for S {units}"
    match found.sample.test:
        case "welch" if question.folds:
            return f"the variance of a mean is that of its folds times 1/n + 1/(n − 1) for n {units}"
        case "pooled":
            planned = {key: found.values[key].planned for key in question.compared}
            shown = {key: one for key, one in planned.items() if found.shows(key)}
            alike = " of the same kind" if _unlike(planned) else ""
            if unlike := _unlike(shown):
                alike = f" that are alike ({', '.join(unlike)})"
            constant = [found.titles[key] for key, one in shown.items() if one.constant]
            none = f"; {joined(constant)} cannot vary and {'has' if len(constant) == 1 else 'have'} none"
            return (
                f"a method's variance is the larger of its own and that pooled over methods{alike}, {factor}"
                f"{none if constant else ''}"
            )
        case "paired":
            larger = (
                "the variance of a pair's differences is the larger of its own and twice the mean square that is left "
                f"without the means of methods and {units}, {factor}"
            )
            many = len(question.compared) > 2
            of_folds = (
                f"the variance of their mean is {'this' if many else 'that of the differences'} times "
                f"1/n + 1/{question.folds - 1} for n scores of each method"
            )
            parts = [larger] if many else []
            return "; ".join([*parts, *([of_folds] if question.folds else [])])
        case "assumed":
            return (
                "the variance of a mean is that of its runs and, for its search, the square of "
                f"{question.assumed_words}"
            )
    return ""
