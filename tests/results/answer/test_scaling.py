"""Ratios: differences of logarithms, told as how many times one score is of another, wherever an answer is read."""

import json
import math
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from reports.headline import comparison_lines, headline
from reports.page.ranking import matrix
from reports.sentences import sentences
from reports.tables.differences import differences
from reports.tables.formats import to_json, to_latex
from reports.tables.holds import holds_table
from reports.tables.result_table import table_of
from reports.tables.table import cell_text
from results.answer import Question, answer
from results.answer.audit import audit
from results.answer.planning import more_for
from results.answer.scaling import scaling_of
from results.reading.scores_table import Reading, ScoreScale, ScoresError

TIMES = {"A": [120.5, 131.0, 118.2, 125.9], "B": [180.3, 171.2, 192.8, 177.7], "C": [121.0, 127.7, 133.2, 119.9]}
GEOMETRIC = {key: stats.gmean(own) for key, own in TIMES.items()}
QUESTION = Question(score="ms", run="seed", scale="times", lower_is_better=True, margin=1.05)


def table(scores):
    rows = [(key, seed, value) for key, own in scores.items() for seed, value in enumerate(own)]
    return pd.DataFrame(rows, columns=["method", "seed", "ms"])


@pytest.fixture(scope="module")
def found():
    return answer(table(TIMES), QUESTION)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(0.01, 1e4), min_size=4, max_size=4, unique=True), min_size=3, max_size=3))
def test_the_tests_are_those_of_differences_of_logarithms(scores):
    named = dict(zip("ABC", scores, strict=True))
    assume(all(np.std(np.log(own)) > 0.01 for own in scores))
    ratios = answer(table(named), Question(score="ms", run="seed", scale="times"))
    logs = answer(
        table({key: np.log(own) for key, own in named.items()}), Question(score="ms", run="seed", scale="points")
    )
    for pair, other in zip(ratios.pairs, logs.pairs, strict=True):
        for name in ("difference", "half_width", "p_better", "smallest"):
            # Both floors of rounding are far below these deviations.
            assert getattr(pair, name) == pytest.approx(getattr(other, name), rel=1e-3, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e3))
def test_another_unit_changes_no_ratio(factor):
    first = answer(table(TIMES), QUESTION).to_frame()
    other = answer(table({key: np.multiply(own, factor) for key, own in TIMES.items()}), QUESTION).to_frame()
    numbers = ["difference", "low", "high"]
    assert first[numbers].to_numpy() == pytest.approx(other[numbers].to_numpy(), rel=1e-3)
    assert first["verdict"].tolist() == other["verdict"].tolist()


def test_the_plain_test_is_of_logarithms(found):
    (pair,) = (one for one in json.loads(to_json(differences(found))) if (one["a"], one["b"]) == ("A", "B"))
    assert pair["plain_p"] == pytest.approx(stats.ttest_ind(*np.log([TIMES["A"], TIMES["B"]]), equal_var=False).pvalue)
    assert pair["difference"] == pytest.approx(GEOMETRIC["A"] / GEOMETRIC["B"])
    assert pair["low"] < pair["difference"] < pair["high"] < 1
    assert pair["low"] * pair["high"] == pytest.approx(pair["difference"] ** 2)


def test_every_reader_has_ratios(found):
    by, low, high = (
        f"{GEOMETRIC['B'] / GEOMETRIC['A']:.2f}",
        *found.difference_words(found.pair("B", "A")).split()[1:],
    )
    assert headline(found).startswith(f"A beats B by {by} {low} {high} times in ms")
    assert comparison_lines(found)[0] == f"A beats B by {by} {low} {high} times"
    ratio = GEOMETRIC["A"] / GEOMETRIC["B"]
    assert cell_text(differences(found).row("A / B")["ratio"]).startswith(f"{ratio:.3f} [")
    assert differences(found).row("A / B")["size"].value == "beyond 1.05"
    assert holds_table(found).rows[0].head == "A / B"
    assert f"${ratio:.3f}\\ [" in to_latex(differences(found))
    assert any(
        f"by {GEOMETRIC['B'] / GEOMETRIC['A']:.3f} times ({GEOMETRIC['A']:.1f}" in one for one in sentences(found)
    )
    assert "tested as differences of logarithms" in sentences(found)[-1]
    assert "A / B" in found._repr_html_()
    assert f"A / B: {ratio:.2f} [" in repr(found)
    assert matrix(found)[0][1][2].words.splitlines()[1].endswith("times")


def test_means_are_geometric_with_the_ends_of_their_intervals(found):
    drawn = table_of(found)
    assert "geometric mean [95 % interval]" in drawn.caption
    own = drawn.row("A")["ms"]
    assert cell_text(own).startswith(f"{GEOMETRIC['A']:.1f} [")
    (row,) = (one for one in json.loads(to_json(drawn)) if one["method"] == "A")
    assert row["mean"] == pytest.approx(GEOMETRIC["A"])
    assert row["ci95_factor"] > 1


def test_what_would_have_shown_is_a_ratio_and_takes_its_runs(found):
    pair = found.pair("A", "C")
    shown = math.exp(pair.smallest)
    (text,) = (one for one in found.findings if one.text.startswith("Differences below"))
    assert text.text == f"Differences below {shown:.2f} times can stay unseen."
    needed = 4 + more_for(found, min(found.pairs, key=lambda one: one.smallest), math.log(1.05))
    assert f"A difference of 1.05 times takes {needed}" in text.detail


def test_a_deviation_of_searches_is_given_as_a_ratio():
    first = {key: own[:1] for key, own in TIMES.items()}
    with pytest.raises(ValueError, match=r"0\.5 is no ratio"):
        answer(table(first), QUESTION).scaling.to_gap(0.5)
    ((_, given_one),) = audit(
        table(first), Reading(score="ms", scale="times", lower_is_better=True), deviation=1.02
    ).answers.items()
    assert given_one.question.assumed.deviation == pytest.approx(math.log(1.02))
    assert given_one.pair("A", "B").better == "A"
    assert "the given 1.02 times" in " ".join(finding.sentences for finding in given_one.findings)


@pytest.mark.parametrize("scale", get_args(ScoreScale))
def test_every_scale_is_read_and_written(scale):
    found = audit(table({key: np.divide(own, 200) for key, own in TIMES.items()}), Reading(score="ms", scale=scale))
    scaling = scaling_of(scale)
    assert scaling.read_as in found.read
    (own,) = found.answers.values()
    one = own.pair("A", "B")
    assert one.better == "A", "ms are better when lower"
    assert f"by {own.difference_words(one, size=True)}{scaling.gap_unit}" in headline(own)
    assert scaling.short_gap(scaling.to_gap(1.0)) == f"1{scaling.one_gap}"
    assert math.isfinite(json.loads(to_json(differences(own)))[0]["difference"])
    assert to_latex(table_of(own)).count(r"\\") == 4


@pytest.mark.parametrize(("scale", "said"), [("fractions", True), ("percent", True), ("points", False)])
def test_deviations_of_kept_records_are_told_beside_percentages_alone(scale, said):
    scores = {key: np.divide(own, 200) for key, own in TIMES.items()}
    found = answer(table(scores).rename(columns={"ms": "map_at_r"}), Question(score="map_at_r", scale=scale))
    assert any("In the kept records they vary by" in finding.sentences for finding in found.findings) == said


def test_scores_that_need_many_digits_are_told_apart():
    near = {"A": [0.693147, 0.6931472, 0.6931468], "B": [0.693151, 0.6931512, 0.6931508]}
    own = answer(table(near), Question(score="ms", run="seed", scale="points"))
    shown = [cell_text(cell).split()[0] for cell in table_of(own).column("ms")]
    assert shown == ["0.69314700", "0.69315100"]
    assert "0.69314700 against 0.69315100" in sentences(own)[0]


def test_scores_without_a_ratio_are_refused_with_the_remedy():
    with pytest.raises(ScoresError, match="row 2: 0 in 'ms' has no ratio; use --scale points"):
        answer(table({**TIMES, "A": [120.0, 130.0, 0.0, 125.0]}), QUESTION)
    summaries = pd.DataFrame({"method": ["A", "B"], "ms": ["120 ± 3", "180 ± 4"], "n": [5, 5]})
    with pytest.raises(ScoresError, match="has no ratio of single scores"):
        audit(summaries, Reading(score="ms", scale="times", lower_is_better=True))


@pytest.mark.parametrize(
    ("kind", "gap", "words"),
    [("percent", 0.00649, "0.64 points"), ("points", 0.0649, "0.064"), ("times", math.log(1.0129), "1.012 times")],
)
def test_a_deviation_is_rounded_down_to_two_digits(kind, gap, words):
    assert scaling_of(kind).two_digits(gap, down=True) == words
