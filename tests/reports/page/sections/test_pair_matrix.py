"""The matrix and the list of pairs claim what the comparison claims."""

import numpy as np
import pytest

from reports.page.build import build_page
from reports.page.material import Material
from reports.page.render import render_page
from reports.page.sections.pair_matrix import MOST_METHODS, pair_matrix
from reports.wording import p_value
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, comparing, material, searched, values
from tests.support.published_world import MLRC

SEARCHES = {"a": (30.0, 30.6, 30.3), "b": (27.9, 28.4, 28.6), "c": (29.9, 30.5, 30.1)}


def cells(world):
    return {cell.text: cell for row in pair_matrix(world).rows for cell in row}


def test_every_pair_has_the_verdict_of_the_comparison():
    world = searched(**SEARCHES)
    matrix = pair_matrix(world)
    assert (matrix.heading, matrix.titles) == ("Every pair of methods", ("A", "C", "B"))
    assert [[cell.kind for cell in row] for row in matrix.rows] == [["open"], ["better", "better"]]
    assert matrix.rows[1][0].text == "A is better than B, by more than 0.5 points"
    pair, detail = world.comparison.pair("a", "b"), matrix.rows[1][0].detail
    assert "difference 2.00 points, 95 % interval of this pair alone" in detail
    assert f"of this pair alone {100 * pair.low:.2f} to {100 * pair.high:.2f}" in detail
    assert f"3 searches, adjusted {p_value(pair.p_better)}" in detail
    undecided = matrix.rows[0][0].detail
    assert f"could have shown {100 * world.comparison.pair('a', 'c').smallest:.2f} points" in undecided
    assert matrix.caption.endswith("Tests of all pairs; the probability of any wrong claim is at most 5 %.")


def test_the_bar_shows_how_sure_it_is_and_says_it():
    world = searched(**SEARCHES)
    pair, cell = world.comparison.pair("a", "c"), pair_matrix(world).rows[0][0]
    assert cell.shares == pytest.approx(
        [100 * pair.share_better, 100 * pair.share_within, 100 * pair.share_worse], abs=0.01
    )
    assert sum(cell.shares) == pytest.approx(100, abs=0.02)
    assert cell.sure == (
        f"{cell.shares[0]:.0f} % better by more than 0.5 points, {cell.shares[1]:.0f} % within, "
        f"{cell.shares[2]:.0f} % worse by more"
    )
    page = render_page(build_page(world).content)
    assert f'aria-label="A and C: cannot tell which is better; {cell.sure}"' in page
    assert page.count('<span class="sure"') == 3
    assert f'<span class="share-1" style="width:{cell.shares[0]}%">' in page


def test_the_interval_has_the_sign_of_the_method_with_the_higher_mean():
    world = material(values(b=B, a=A))
    pair = world.comparison.pair("a", "b")
    (cell,) = cells(world).values()
    assert f"alone {100 * pair.low:.2f} to {100 * pair.high:.2f}" in cell.detail
    assert pair.low > 0


def test_equal_methods_and_untested_pairs_have_their_words():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    equal = cells(material(values(a=0.5 + steps, b=0.5 + steps[::-1]), reproductions=10))
    assert "A and B: cannot tell which is better, within 0.5 points" in equal
    missing = searched(a=SEARCHES["a"], b=SEARCHES["b"][:1], c=SEARCHES["c"])
    pairs = cells(missing)
    assert pairs["A and B: not tested"].detail == (
        "A and B: not tested, because B has 1 of 3 searches\n2.40 points apart"
    )
    assert pairs["A and B: not tested"].shares == ()
    assert "Interim: searches or runs are missing, and verdicts can change." in pair_matrix(missing).caption
    (single,) = cells(material(values(a=A[:1], b=B[:1]), reproductions=1)).values()
    assert (single.kind, "because A and B have a single run" in single.detail) == ("untested", True)


def test_without_a_record_there_are_reasons_and_no_bars():
    matrix = pair_matrix(Material("quickstart", MeasuredExperiment.kept("quickstart_one_search")))
    assert {cell.kind for cell in matrix.cells} == {"untested"}
    assert all("how far two searches of this size differ is not known" in cell.detail for cell in matrix.cells)
    assert matrix.caption.endswith("is not known, so there are no verdicts about methods.")
    assert 'class="sure"' not in render_page(build_page(material(values(a=A, b=B), trials=5)).content)


@pytest.mark.parametrize(
    ("how", "heading", "rows"),
    [
        (
            "best",
            "A and every other method",
            [("C", "cannot tell", "cannot tell"), ("B", "better", "by more than 0.5 points")],
        ),
        (
            "b",
            "B and every other method",
            [("A", "worse", "by more than 0.5 points"), ("C", "worse", "by more than 0.5 points")],
        ),
    ],
)
def test_the_pairs_with_one_method_are_a_list(how, heading, rows):
    world = searched(settings=comparing(how, {**MLRC, "methods": ["a", "b", "c"]}), **SEARCHES)
    matrix = pair_matrix(world)
    assert (matrix.heading, matrix.rows) == (heading, ())
    assert [(other.title, other.direction, other.size) for other in matrix.others] == rows
    pair = world.comparison.pair(world.comparison.reference, "c")
    shown = next(other for other in matrix.others if other.title == "C")
    assert shown.difference == f"{100 * pair.difference:+.2f}".replace("-", "\u2212")
    page = render_page(build_page(world).content)
    assert page.count('<span class="sure"') == 2
    assert f'<span class="hidden">{shown.cell.sure}</span>' in page


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
