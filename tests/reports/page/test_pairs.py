"""The matrix of pairs: whose row it is, the signs, and their words."""

import pytest

from reports.page.pairs import matrix, reading_of_marks
from tests.support.page_material import A, B, comparing, material, searched, values
from tests.support.published_world import MLRC


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
