"""A claim that leans on few searches which happened to agree is marked, and stays a claim."""

import math
import re
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from reports.headline import comparison_lines, headline
from reports.page.ranking import pair_mark
from reports.tables.differences import differences
from reports.tables.formats import to_latex, to_markdown
from results.answer.answer_question import answer_on
from results.answer.compare import record_for_marks
from results.answer.deviations import nearest_search_deviation
from results.findings.experiment import answer_of
from tests.support.sample_searches import searched

AGREE, NEAR, FAR = (0.300, 0.301, 0.302), (0.280, 0.281, 0.282), (0.200, 0.201, 0.202)
"""Searches that differ by far less than those of the records."""


def answer_about(*methods, trials=12, searches=3, **settings):
    values = {name: [(one, one) for one in own] for name, own in zip("abc", methods, strict=False)}
    return answer_of(searched(values, searches=searches, trials=trials, **settings))


def recurring(values, least):
    """The claims of all pairs with variances not below a record's, by the formulas of the docs; of equal numbers."""
    count, methods = len(values[0]), len(values)
    variances = [np.var(own, ddof=1) for own in values]
    pooled, degrees = np.mean(variances), min(methods * (count - 1), 40)
    squares = [(1 + 1 / (count - 1) ** 2) * max(one, pooled, least**2) / count for one in variances]
    pairs = []
    for a, b in combinations(range(methods), 2):
        difference = np.mean(values[a]) - np.mean(values[b])
        p = 2 * stats.t.sf(abs(difference) / math.sqrt(squares[a] + squares[b]), degrees)
        pairs.append((p, (a, b) if difference > 0 else (b, a)))
    claims, worst = set(), 0.0
    for rank, (p, claim) in enumerate(sorted(pairs)):
        worst = max(worst, p * max(len(pairs) - rank, len(pairs) / 2) / 0.75)
        claims |= {claim} if worst < 0.05 else set()
    return claims


def test_the_marked_claims_are_those_that_the_deviation_of_the_record_takes_away():
    marked = unmarked = 0
    for seed in range(60):
        noise = np.random.default_rng(seed)
        values = (0.3 + noise.normal(0, 0.03, (3, 1)) + noise.normal(0, 0.01, (3, 3))).tolist()
        found = answer_about(*values)
        least = nearest_search_deviation(found.question.experiment, "map_at_r", "concatenated").deviation
        left = {("abc"[better], "abc"[worse]) for better, worse in recurring(values, least)}
        assert {(pair.better, pair.worse) for pair in found.may_not_recur} == found.claims - left
        marked, unmarked = marked + len(found.may_not_recur), unmarked + len(left)
    assert min(marked, unmarked) > 10


def test_a_mark_changes_no_verdict_and_stands_beside_it_everywhere():
    found = answer_about(AGREE, NEAR)
    (pair,) = found.pairs
    assert (pair.better, pair.may_not_recur, found.claims) == ("a", True, {("a", "b")})
    assert headline(found) == "A beats B by 2.0 ± 0.3 points of MAP@R. Another three searches may not show it."
    words = "; another three searches may not show it"
    assert comparison_lines(found) == [f"A beats B by 2.0 ± 0.3 points{words}"]
    table = differences(found)
    assert f"A better{words}" in to_markdown(table)
    assert f"A better{words}" in re.sub(r"\s+", " ", to_latex(table))
    assert table.sheet.rows[0][table.sheet.header.index("may_not_recur")] is True
    assert pair_mark(found, pair).words.endswith(words)
    (finding,) = (one for one in found.findings if one.text.startswith("Another three"))
    assert finding.text == "Another three searches may not show 1 of 1 claim: A over B."
    assert f"varied by {100 * record_for_marks(found).deviation:.2f} points" in finding.detail
    three = answer_about(AGREE, NEAR, FAR)
    assert headline(three).endswith(" Another three searches may not show 1 of 3 claims.")


def test_methods_that_are_equal_by_a_lucky_deviation_are_marked_too():
    found = answer_about(AGREE, [one + 0.0001 for one in AGREE])
    assert [pair.size for pair in found.may_not_recur] == ["within"]
    assert headline(found) == "B and A are equal within 0.5 points. Another three searches may not show it."


@pytest.mark.parametrize(
    "changes",
    [
        {"trials": 9},  # Searches of fewer trials vary more than any record says.
        {"trials": 0},  # Runs.
        {"trunk": {"name": "resnet50", "weights": "imagenet"}, "dataset": {"name": "cars196"}},  # No record is near.
    ],
)
def test_without_a_record_nothing_is_marked(changes):
    found = answer_about(AGREE, NEAR, **changes)
    assert found.claims == {("a", "b")}
    assert not found.may_not_recur


def test_ten_degrees_of_freedom_say_as_much_as_a_record():
    own = [0.300 + 0.001 * place for place in range(6)]
    assert not answer_about(own, [one - 0.02 for one in own], searches=6).may_not_recur
    (pair,) = answer_about(own[:5], [one - 0.02 for one in own[:5]], searches=5).may_not_recur
    assert pair.better == "a"
    assert not answer_about(own[:5], [one - 0.06 for one in own[:5]], searches=5).may_not_recur


def test_other_scores_have_no_mark():
    found = answer_about(AGREE, NEAR)
    other = answer_on(found, "map_at_r", "separated")
    assert other.claims
    assert not other.may_not_recur


def test_looks_are_marked_if_no_look_would_show_the_claim():
    search = {"search": {"trials": 12, "searches": 3, "until_decided": True}}
    assert [pair.better for pair in answer_about(AGREE, NEAR, **search).may_not_recur] == ["a"]
    assert not answer_about(AGREE, [one - 0.1 for one in FAR], **search).may_not_recur
