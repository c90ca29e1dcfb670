"""Numbers of things in sentences."""

import pytest

from results.wording import counted, counted_span, verb


def test_a_range_of_counts_has_its_plural():
    assert counted_span([1], "search") == "1 search"
    assert counted_span([2, 3, 2], "search") == "2 to 3 searches"


@pytest.mark.parametrize(
    ("count", "thing", "of_many", "words"),
    [
        (1, "class", "are", "1 class is"),
        (2, "class", "are", "2 classes are"),
        (3, "epoch", "were left", "3 epochs were left"),
        (1, "epoch", "were left", "1 epoch was left"),
        (1, "query", "need", "1 query needs"),
        (1200, "query", "need", "1,200 queries need"),
        (1, "search", "lie far below", "1 search lies far below"),
        (0, "search", "have", "0 searches have"),
        (1, "day", "do", "1 day does"),
        (2, "box", "pass", "2 boxes pass"),
        (1, "box", "pass", "1 box passes"),
    ],
)
def test_numbers_have_their_plurals_and_verbs(count, thing, of_many, words):
    assert f"{counted(count, thing)} {verb(count, of_many)}" == words
