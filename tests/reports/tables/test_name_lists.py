"""Lists of names, with and without commas in the names."""

import pytest

from reports.wording import joined, joined_groups, listed


@pytest.mark.parametrize(
    ("names", "plain", "with_and"),
    [
        (["a"], "a", "a"),
        (["a", "b", "c"], "a, b, c", "a, b and c"),
        (["a, margin 1", "b", "c"], "a, margin 1; b; c", "a, margin 1; b; and c"),
        (["a, margin 1", "b"], "a, margin 1; b", "a, margin 1; and b"),
    ],
)
def test_a_comma_in_a_name_does_not_break_a_list(names, plain, with_and):
    assert (joined(names), listed(names)) == (plain, with_and)


def test_a_comma_in_a_name_does_not_break_groups():
    assert joined_groups([("a", "b"), ("b", "c")]) == "a, b; b, c"
    assert joined_groups([("a, 1", "b"), ("b", "c")]) == "(a, 1; b); (b; c)"
