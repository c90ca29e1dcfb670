"""The matrix of all pairs claims what the comparison claims."""

import numpy as np

from reports.page.build import build_page
from reports.page.render import render_page
from reports.page.sections.pair_matrix import MOST_METHODS, pair_matrix
from reports.wording import p_value
from tests.support.page_material import A, B, material, values


def cells(world):
    return {cell.text: cell for row in pair_matrix(world).rows for cell in row}


def test_every_pair_has_the_verdict_of_the_comparison():
    world = material(values(a=A, b=B, c=[0.58, 0.63, 0.60, 0.59]))
    matrix = pair_matrix(world)
    assert matrix.titles == ("A", "C", "B")
    assert [[cell.kind for cell in row] for row in matrix.rows] == [["open"], ["worse", "worse"]]
    assert matrix.rows[1][0].text == "A is better than B"
    gap = 100 * (np.mean(A) - np.mean(B)) / 4
    pair = world.comparison.pair("a", "b")
    assert f"difference {gap:.2f} points" in matrix.rows[1][0].detail
    assert f"of this pair alone {100 * pair.low:.2f} to {100 * pair.high:.2f}" in matrix.rows[1][0].detail
    assert p_value(pair.p_better) in matrix.rows[1][0].detail
    undecided = matrix.rows[0][0].detail
    assert f"could have shown {100 * world.comparison.pair('a', 'c').smallest:.2f} points" in undecided
    assert "tests of all 3 pairs: the probability of any wrong claim is at most 5 %" in matrix.caption


def test_the_interval_has_the_sign_of_the_method_with_the_higher_mean():
    world = material(values(b=B, a=A))
    pair = world.comparison.pair("a", "b")
    assert f"alone {-100 * pair.high:.2f} to {-100 * pair.low:.2f}" in cells(world)["A is better than B"].detail


def test_equal_methods_and_too_few_runs_have_their_words():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    assert "A and B: equal within 0.5 points" in cells(material(values(a=0.5 + steps, b=0.5 + steps[::-1])))
    (single,) = cells(material(values(a=A[:1], b=B[:1]))).values()
    assert (single.kind, "1 run and 1 run" in single.detail) == ("untested", True)


def test_one_method_has_no_matrix_and_very_many_have_counts():
    assert pair_matrix(material(values(a=A))) is None
    many = material(values(**{f"m{n}": [value - 0.01 * n for value in A] for n in range(MOST_METHODS + 1)}))
    matrix = pair_matrix(many)
    assert matrix.rows == ()
    assert matrix.caption.startswith("Of 820 pairs, ")
    built = build_page(many)
    assert [figure.name for figure in built.figures if "intervals" in figure.name] == [
        "intervals_concatenated_map_at_r"
    ]
    page = render_page(built.content)
    assert "too many for a matrix" in page
    assert "differences.csv" in page
    assert page.count("M0 is better than") == 0


def test_the_page_has_a_cell_for_every_pair_and_no_sentence():
    page = render_page(build_page(material(values(a=A, b=B))).content)
    assert page.count('aria-label="A is better than B"') == 1
    assert "Is the difference real?" not in page
