"""Intervals over drawn test classes."""

from reports.page.sections.class_intervals import over_classes
from reports.page.sections.pair_matrix import pair_matrix
from tests.support.page_material import A, B, material, values, with_classes


def test_a_difference_that_hangs_on_the_test_classes_says_so():
    runs = values(a=A, b=[x - 0.02 for x in A], c=B)
    steady, moved = [0, 0, 0, 0], [0.1, -0.1, 0.1, -0.1]
    whole = material(
        {"a": with_classes(runs["a"], moved), "b": with_classes(runs["b"], steady), "c": with_classes(runs["c"], moved)}
    )
    found = [cell for row in pair_matrix(whole, over_classes(whole)).rows for cell in row if cell.kind == "better"]
    (small,) = [cell.detail for cell in found if "better than B" in cell.text]
    (large,) = [cell.detail for cell in found if "A is better than C" in cell.text]
    assert "the interval of the difference over drawn classes contains 0" in small
    assert "over drawn classes" not in large
    assert set(over_classes(whole).gaps) == {"b", "c"}
    assert over_classes(material(runs)) is None
