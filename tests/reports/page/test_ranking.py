"""The ranking: order, ranks, and where intervals are drawn. The matrix of pairs: whose row it is, signs and words."""

import pandas as pd
import pytest

from reports.page.page import build_page
from reports.page.ranking import matrix, ranking, reading_of_marks
from results.answer.audit import audit
from tests.support.page_material import A, B, C, comparing, material, searched, values
from tests.support.published_world import MLRC


def test_methods_are_sorted_and_have_the_ranks_of_the_comparison():
    ranked = ranking(material(values(b=B, a=A, c=C)))
    assert [(row.title, row.rank, row.leads) for row in ranked.rows] == [
        ("A", "1 to 2", True),
        ("C", "1 to 2", True),
        ("B", "3", False),
    ]


def test_while_searches_are_missing_no_method_leads_and_rows_count_searches():
    titles = {"b": "B", "a": "A", "never": "Never run"}
    ranked = ranking(searched(titles=titles, a=(30.0, 30.6, 30.3), b=(20.0, 20.5)))
    assert [(row.title, row.count, row.rank, row.leads) for row in ranked.rows] == [
        ("A", "3", "", False),
        ("B", "2 of 3", "", False),
        ("Never run", "0", "", False),
    ]
    assert ranked.rows[-1].drawn is None
    assert not ranked.has_ranks


def test_the_points_are_the_single_searches_and_the_interval_is_that_of_the_comparison():
    world = searched(reproductions=2, a=(30.0, 30.6, 30.3), b=(8.1, 28.0, 29.3))
    first, second = ranking(world).rows
    assert [len(row.drawn.points) for row in (first, second)] == [3, 2]
    assert "searches: 28.00, 29.30; set aside: 8.10" in second.detail
    assert (second.count, second.mean) == ("2 of 3", "28.65")
    half_width = 100 * world.answer.intervals["a"].half_width
    assert first.spread == f"± {half_width:.2f}"
    assert half_width > 1.1, "the variance of B's searches counts for A too"


def test_the_method_that_others_are_compared_with_is_first_and_rows_say_what_they_show_against_it():
    ranked = ranking(material(values(a=A, b=B, c=C), settings=comparing("b", {**MLRC, "methods": ["a", "b", "c"]})))
    assert [(row.title, row.asked, row.mark and row.mark.sign) for row in ranked.rows] == [
        ("B", True, None),
        ("A", False, "▲"),
        ("C", False, "▲"),
    ]
    assert (ranked.against, ranked.has_ranks) == ("B", False)
    assert ranked.rows[1].mark.words.startswith("A − B\n+2.5")


def test_all_values_lie_on_the_axis_and_long_intervals_are_cut():
    world = material(values(a=[0.5, 0.6], b=[0.52, 0.58]))
    ranked = ranking(world)
    wide = ranked.rows[0].drawn
    assert (wide.low, wide.high, wide.cut_low, wide.cut_high) == (0, 100, True, True)
    assert ranked.is_cut
    assert "Bars with a dotted end go on beyond the axis." in build_page(world)[0]
    low, high = (float(end) for end in ranked.ends)
    for row, own in zip(ranked.rows, world.answer.values.values(), strict=True):
        expected = [100 * (100 * value - low) / (high - low) for value in own.units]
        assert row.drawn.points == pytest.approx(expected, abs=1)


def test_equal_values_and_single_runs_have_no_interval_and_a_place():
    for runs in ({"a": [0.5]}, {"a": [0.5, 0.5]}, {"a": [0.0, 0.0]}):
        (row,) = ranking(material(values(**runs))).rows
        assert row.drawn.low == row.drawn.high == row.drawn.mean
        assert 0 <= row.drawn.mean <= 100


def test_a_row_shows_what_its_method_shows_against_each_other_one():
    found = searched(a=(30.0, 30.1, 29.9), b=(20.0, 20.1, 19.9), c=(29.9, 30.0, 30.1)).answer
    rows = matrix(found)
    assert [title for title, _ in rows] == ["A", "C", "B"]
    signs = ["".join(one.sign if one else " " for one in marks) for _, marks in rows]
    assert signs == [" =▲", "= ▲", "▼▼ "]
    best = rows[0][1][2]
    half_width = 100 * found.pair("a", "b").half_width
    assert best.words == f"A − B\n+10.00 ± {half_width:.2f} points\nA is better, beyond 0.5 points"
    assert rows[2][1][0].words.endswith("\nB is worse, beyond 0.5 points")


@pytest.mark.parametrize(
    ("below", "spread", "sign", "kind"),
    [(0.01, 1, "=", "equal"), (1.0, 1, "▲", "better"), (0.4, 1, "△", "better"), (0.2, 5, "·", "open")],
)
def test_the_margin_is_in_the_sign(below, spread, sign, kind):
    steps = [spread * step for step in (-0.1, 0.0, 0.1, 0.05, -0.05)]
    means = {"a": tuple(30 + step for step in steps), "b": tuple(30 - below - step for step in steps)}
    mark = matrix(searched(searches=5, **means).answer)[0][1][1]
    assert (mark.sign, mark.kind) == (sign, kind)


def test_pairs_without_a_test_have_a_dash_that_is_explained():
    found = material(values(a=A, b=B[:1])).answer
    assert {one.sign for _, marks in matrix(found) for one in marks if one} == {"–"}
    assert "– not tested" in reading_of_marks(found)
    assert "not tested" not in reading_of_marks(material(values(a=A, b=B)).answer)


def test_there_is_a_matrix_of_all_pairs_only():
    settings = comparing("b", {**MLRC, "methods": ["a", "b"]})
    assert matrix(material(values(a=A, b=B), settings=settings).answer) == []
    assert matrix(material(values(a=A)).answer) == []


def test_a_pair_of_means_without_n_has_the_runs_that_would_show_it():
    table = pd.DataFrame({"method": ["A", "B", "C"], "accuracy": ["70.2 ± 0.7", "71.5 ± 0.8", "71.5 ± 0.9"]})
    (found,) = audit(table).answers.values()
    marks = [mark for _, row in matrix(found) for mark in row if mark]
    (fewest,) = {pair.fewest for pair in found.pairs if {"A", "B"} == {pair.a, pair.b}}
    assert f"n ≥ {fewest}:" in [mark.sign for mark in marks]
    assert "–" in [mark.sign for mark in marks], "equal means are shown by no number of runs"
    assert reading_of_marks(found).startswith("n ≥: so many runs behind each mean, or more, would show the difference")
