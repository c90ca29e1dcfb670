"""The matrix of pairs claims what the comparison claims."""

import numpy as np
import pytest

from reports.page.pair_matrix import MOST_METHODS, pair_matrix
from results.wording import p_value
from tests.support.page_material import A, B, comparing, material, searched, values
from tests.support.published_world import MLRC

SEARCHES = {"a": (30.0, 30.6, 30.3), "b": (27.9, 28.4, 28.6), "c": (29.9, 30.5, 30.1)}


def cells(world):
    return {cell.text: cell for row in pair_matrix(world).rows for cell in row}


def test_every_pair_has_the_verdict_of_the_comparison():
    world = searched(**SEARCHES)
    matrix = pair_matrix(world)
    assert matrix.titles == ("A", "C", "B")
    assert [[cell.kind for cell in row] for row in matrix.rows] == [["open"], ["better", "better"]]
    assert matrix.rows[1][0].text == "A is better than B, by more than 0.5 points"
    pair, detail = world.comparison.pair("a", "b"), matrix.rows[1][0].detail
    assert f"95 % interval of this pair alone {100 * pair.low:.2f} to {100 * pair.high:.2f}" in detail
    assert f"3 searches, adjusted {p_value(pair.p_better)}" in detail
    undecided = matrix.rows[0][0].detail
    assert f"could have shown {100 * world.comparison.pair('a', 'c').smallest:.2f} points" in undecided


def test_the_bar_shows_how_sure_it_is():
    world = searched(**SEARCHES)
    pair, cell = world.comparison.pair("a", "c"), pair_matrix(world).rows[0][0]
    shares = [100 * pair.share_better, 100 * pair.share_within, 100 * pair.share_worse]
    assert cell.shares == pytest.approx(shares, abs=0.01)
    assert f"A: {shares[0]:.0f} % better by more than 0.5 points, {shares[1]:.0f} % within" in cell.detail


def test_equal_methods_and_untested_pairs_have_their_words():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    equal = cells(material(values(a=0.5 + steps, b=0.5 + steps[::-1]), reproductions=10))
    assert "A and B: cannot tell which is better, within 0.5 points" in equal
    missing = cells(searched(a=SEARCHES["a"], b=SEARCHES["b"][:1], c=SEARCHES["c"]))["A and B: not tested"]
    assert missing.detail == "A and B: not tested, searches missing\n2.40 points apart"
    assert missing.shares == ()
    single = pair_matrix(material(values(a=A[:1], b=B[:1]), reproductions=1))
    assert (single.kinds, single.tested) == ({"untested"}, False)


def test_there_is_a_matrix_only_of_all_pairs_of_not_too_many_methods():
    assert pair_matrix(material(values(a=A))) is None
    best = comparing("best", {**MLRC, "methods": ["a", "b", "c"]})
    assert pair_matrix(searched(settings=best, **SEARCHES)) is None
    many = {f"m{number}": [value - 0.01 * number for value in A] for number in range(MOST_METHODS + 1)}
    assert pair_matrix(material(values(**many))) is None
