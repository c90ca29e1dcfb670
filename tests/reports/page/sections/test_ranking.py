"""The ranking: order, groups, and where intervals are drawn."""

import pytest

from reports.page.build import build_page
from reports.page.content import RankedRow
from reports.page.render import render_page
from reports.page.sections.ranking import ranking
from tests.support.page_material import A, B, C, material, values


def test_methods_are_sorted_and_grouped_as_in_the_comparison():
    ranked = ranking(material(values(b=B, a=A, c=C), titles={"b": "B", "a": "A", "c": "C", "never": "Never run"}))
    assert [(row.title, row.letters, row.leads) for row in ranked.rows] == [
        ("C", ("a",), True) if sum(C) > sum(A) else ("A", ("a",), True),
        ("A", ("a",), True) if sum(C) > sum(A) else ("C", ("a",), True),
        ("B", ("",), False),
        ("Never run", (), False),
    ]
    assert ranked.rows[-1].drawn is None
    assert [note.split(":")[0] for note in ranked.notes] == ["Same letter", "No letter"]


def test_all_values_lie_on_the_axis_and_long_intervals_are_cut():
    world = material(values(a=[0.5, 0.6], b=[0.52, 0.58]))
    ranked = ranking(world)
    wide = ranked.rows[0].drawn
    assert (wide.low, wide.high, wide.cut_low, wide.cut_high) == (0, 100, True, True)
    low, high = (float(end) for end in ranked.ends)
    for row, by_run in zip(ranked.rows, world.values(world.scores[0]).values(), strict=True):
        expected = [100 * (100 * value - low) / (high - low) for value in by_run.values()]
        assert row.drawn.points == pytest.approx(expected, abs=1)


def test_equal_values_and_single_runs_have_no_interval_and_a_place():
    for runs in ({"a": [0.5]}, {"a": [0.5, 0.5]}, {"a": [0.0, 0.0]}, {"a": [4.0, 4.0]}):
        (row,) = ranking(material(values(**runs))).rows
        assert row.drawn.low == row.drawn.high == row.drawn.mean
        assert 0 <= row.drawn.mean <= 100


def test_the_ranking_is_on_the_page_before_all_other_tables():
    page = render_page(build_page(material(values(a=A, b=B))).content)
    assert page.index('class="headline"') < page.index('class="limits"') < page.index('class="ranking"')
    assert page.count("<table") > 1
    assert page.index("<table") == page.index('<table class="ranking"')


@pytest.mark.parametrize(
    ("letters", "spans"),
    [
        (("a", "b", "c", "", "e", "f", "", "h"), "a–c, e–f, h"),
        (("", "", "", "d"), "d"),
        (("", ""), ""),
    ],
)
def test_many_letters_are_written_as_spans_on_a_phone(letters, spans):
    assert RankedRow("A", letters=letters).spans == spans
