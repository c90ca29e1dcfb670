"""The sentence for a paper has all that a reader needs to compute its p value and its interval again."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.sentences import how_tested, sentence, sentences
from results.answer.answer_question import answer
from results.answer.question import Question
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import searched

TWO_SEARCHES = {"Spread": (16.00, 13.26), "Triplet": (7.58, 11.89), "Proxy-Anchor": (16.83, 14.53)}
UNEQUAL = {"A": (71.2, 73.9, 72.4, 70.8, 72.0), "B": (68.1, 69.5, 71.0), "C": (73.3, 74.1)}
ALIKE = {"A": (71.2, 73.9, 72.4), "B": (68.1, 70.5, 68.0), "C": (73.3, 74.9, 74.1)}
NUMBER = r"(−?[\d.]+)"


def table(values, column="seed"):
    rows = [(method, place, one) for method, own in values.items() for place, one in enumerate(own)]
    return pd.DataFrame(rows, columns=["method", column, "accuracy"])


def numbers(text):
    return [float(one.replace("−", "-")) for one in text]


def said_of(values, text):
    """The names of both methods in the order of the sentence, the difference's interval, and p."""
    at = {name: re.search(rf"(?<![\w-]){name}(?![\w-])", text) for name in values}
    names = sorted((name for name in at if at[name]), key=lambda name: at[name].start())
    found = re.search(rf"95 % interval {NUMBER} to {NUMBER}; p = {NUMBER}, adjusted", text)
    return names, numbers(found.groups())


def errors_of_means(values, text):
    """The error of each difference and its degrees, by the words for independent searches or runs."""
    assert "A method's variance is the larger of its own and that pooled over methods, times 1 + 1/(S − 1)² for" in text
    own = {name: np.var(one, ddof=1) for name, one in values.items()}
    degrees = sum(len(one) - 1 for one in values.values())
    pooled = sum((len(one) - 1) * own[name] for name, one in values.items()) / degrees
    square = {name: (1 + 1 / (len(one) - 1) ** 2) * max(own[name], pooled) / len(one) for name, one in values.items()}
    return lambda a, b: (square[a] + square[b]) ** 0.5


def errors_of_pairs(values, text):
    """The same by the words for methods that share blocks, or folds of a cross-validation."""
    grid = np.array([*values.values()])
    count = grid.shape[1]
    rest = grid - grid.mean(axis=1, keepdims=True) - grid.mean(axis=0) + grid.mean()
    mean_square = (rest**2).sum() / ((len(grid) - 1) * (count - 1))
    of_mean = 1 / count
    if folds := re.search(r"times 1/n \+ 1/(\d+) for n scores", text):
        of_mean += 1 / int(folds[1])

    def error(a, b):
        own = np.var(np.subtract(values[a], values[b]), ddof=1)
        if len(values) > 2:
            assert "the larger of its own and twice the mean square that is left without the means of" in text
            own = max(own, 2 * mean_square) * (1 + 1 / (count - 1) ** 2)
        return (own * of_mean) ** 0.5

    return error


def adjusted(p_values, text):
    """The p values of a family by the words of a sentence."""
    order = np.argsort(p_values)
    factors = np.ones(len(p_values))
    if holm := re.search(r"adjusted by Holm's method for (\d+) comparisons(?: with no factor below ([\d.]+))?", text):
        factors = np.maximum(int(holm[1]) - np.arange(len(p_values)), float(holm[2] or 1))
    if best := re.search(r"times r \(r − 1\) / 2, but at least (\d+), and .*; or (\d+) times the largest", text):
        ranks = np.arange(2, len(p_values) + 2)
        ordered = np.maximum(ranks * (ranks - 1) / 2, int(best[1])) * p_values
        ordered = np.maximum.accumulate(ordered[::-1])[::-1]
        result = np.minimum(ordered, int(best[2]) * max(p_values))
    else:
        result = np.empty(len(p_values))
        result[order] = np.maximum.accumulate(np.minimum(factors * np.asarray(p_values)[order], 1))
    above, below = map(int, re.search(r"multiplied by (\d)/(\d), since three quarters", text).groups())
    return np.minimum(np.minimum(result, 1) * above / below, 1)


@pytest.mark.parametrize(
    ("values", "column", "compare", "paired"),
    [
        (TWO_SEARCHES, "seed", "Spread", False),
        (TWO_SEARCHES, "seed", "all", False),
        (UNEQUAL, "seed", "all", False),
        (UNEQUAL, "seed", "best", False),
        ({name: UNEQUAL[name] for name in "AB"}, "seed", "all", False),
        (ALIKE, "split", "all", True),
        (ALIKE, "split", "B", True),
        ({name: ALIKE[name] for name in "AB"}, "split", "all", True),
        (ALIKE, "fold", "all", True),
        ({name: ALIKE[name] for name in "AC"}, "fold", "all", True),
    ],
)
def test_interval_and_p_value_follow_from_the_words(values, column, compare, paired):
    found = answer(table(values, column), Question(compare=compare, paired=column if column == "split" else ""))
    said, steps = [sentence(found, pair) for pair in found.shown_pairs], how_tested(found)
    means = {name: np.mean(own) for name, own in values.items()}
    asked = [pair for pair in combinations(values, 2) if compare in ("all", *pair)]
    if compare == "best":
        first, *others = sorted(means, key=means.get, reverse=True)
        asked = [(first, other) for other in others]
    assert len(said) == len(asked)
    error = (errors_of_pairs if paired else errors_of_means)(values, steps)
    degrees = float(re.search(rf"with {NUMBER} degrees? of freedom", said[0])[1])
    p_values = [2 * stats.t.sf(abs(means[a] - means[b]) / error(a, b), degrees) for a, b in asked]
    expected = {frozenset(pair): p for pair, p in zip(asked, adjusted(p_values, steps), strict=True)}
    for text in said:
        names, (low, high, p) = said_of(values, text)
        half = stats.t.ppf(0.975, degrees) * error(*names)
        size = abs(means[names[0]] - means[names[1]])
        assert (low, high) == pytest.approx((size - half, size + half), abs=0.006)
        assert p == pytest.approx(expected[frozenset(names)], abs=0.0006)
    if values is TWO_SEARCHES and compare == "Spread":
        assert "p = 0.771, adjusted by Holm's method for 2 comparisons;" in " ".join(said)


def test_a_claim_of_equality_names_its_two_tests_and_its_share():
    equal = {"A": (70.0, 70.1, 69.9, 70.0), "B": (70.0, 70.1, 70.0, 69.9)}
    text, steps = sentences(answer(table(equal), Question()))
    share = 'multiplied by 4, since a quarter of the level is spent on "equal"'
    assert f"P values are of two one-sided tests, {share}" in steps
    _, (low, high, p) = said_of(equal, text.replace("p < 0.001", "p = 0"))
    error = errors_of_means(equal, steps)("A", "B")
    assert p == pytest.approx(4 * stats.t.sf(0.5 / error, 6), abs=0.0006)
    assert high == pytest.approx(stats.t.ppf(0.975, 6) * error, abs=0.006)
    assert low == pytest.approx(-high, abs=0.006)


def test_a_test_without_these_steps_does_not_name_them():
    frame = pd.DataFrame([("A", 71.0, 0.8, 5), ("B", 73.0, 1.1, 5)], columns=["method", "mean", "std", "n"])
    text, steps = sentences(answer(frame, Question(n="runs")))
    error = ((0.8**2 + 1.1**2) / 5) ** 0.5
    assert "1/(S − 1)²" not in steps
    degrees = float(re.search(rf"Welch's t test from means and deviations with {NUMBER} degrees", text)[1])
    p = float(re.search(rf"p = {NUMBER}, adjusted;", text)[1])
    assert p == pytest.approx(2 * stats.t.sf(2 / error, degrees) / 0.75, abs=0.001)
    rows = [
        (name, data, 70 + step * data % 3 + gain)
        for name, gain, step in (("A", 0, 2), ("B", 2, 1))
        for data in range(8)
    ]
    ranks, *steps = sentences(answer(pd.DataFrame(rows, columns=["method", "dataset", "accuracy"]), Question()))
    assert "Wilcoxon's signed-rank test" in ranks
    assert "multiplied by 4/3" not in " ".join([ranks, *steps])
    assert "degrees" not in ranks


def test_latex_sets_the_factor_as_mathematics():
    *_, text = sentences(answer(table(UNEQUAL), Question()), latex=True)
    assert "times 1 + 1/(S $-$ 1)$^2$ for S runs" in text
    assert text.isascii()


def test_the_first_sentence_sums_up_and_open_pairs_stand_only_if_they_are_asked_for():
    found = answer_of(MeasuredExperiment.kept("reality_check_glyphs"))
    first, *others, _ = sentences(found)
    assert first.startswith("Compared in concatenated MAP@R: No verdict about methods: only after 400 steps")
    assert first.endswith("54 of 91 pairs are open; a difference of 7.1 to 13.1 points would have shown.")
    assert len(others) == 37
    one, steps = sentences(found.about(("hist", "proxy_anchor")))
    assert one.startswith("Proxy-Anchor and HIST are not shown to differ")
    assert "Holm's method for 91 comparisons" in steps, "the tests are those of all methods"
    assert steps.startswith("Tested among all 91 pairs of 14 methods. ")
    whole = {(pair.a, pair.b): pair for pair in found.pairs}
    (pair,) = found.about(("hist", "proxy_anchor")).shown_pairs
    assert pair == whole.get((pair.a, pair.b), pair.turned() if (pair.b, pair.a) in whole else None)


def test_how_some_methods_were_tested_names_no_other_method():
    """The first record has an untrained trunk that cannot vary, the second a method that is computed."""
    found = answer_of(MeasuredExperiment.kept("mlrc_frozen_cub200_2024_losses_subset"))
    losses = [key for key in found.question.compared if key != "untrained"]
    every, of_losses = how_tested(found), how_tested(found.about(set(losses[:2])))
    assert "Untrained trunk cannot vary and has none" in every
    assert "Untrained" not in of_losses
    found = answer_of(MeasuredExperiment.kept("reality_check_2026_birds_subset"))
    pooled = "is the larger of its own and that pooled over methods"
    assert f"{pooled} that are alike (trained or computed), times" in how_tested(found)
    assert f"{pooled} of the same kind, times" in how_tested(found.about({"pfml", "proxy_anchor"}))
    assert f"{pooled} that are alike (trained" in how_tested(found.about({"pfml", "within_class_whitening"}))


def test_while_searches_are_missing_no_sentence_claims():
    found = answer_of(searched(a=(30, 31, 32), b=(20, 21, 22), c=(10,)).measured)
    assert found.claims
    for about in (found, found.about({"a", "b"})):
        (only,) = sentences(about)
        assert only.startswith("Compared in concatenated MAP@R: Interim: A 31.0, B 21.0")
        assert only.endswith("Nothing is claimed before all searches and runs are there.")
