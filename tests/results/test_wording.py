"""Numbers and lists in sentences, with and without commas in the names."""

import pytest

from results.wording import counted, joined, listed


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


def test_numbers_of_things():
    assert [counted(number, "search") for number in (1, 2, 1000)] == ["1 search", "2 searches", "1,000 searches"]
