"""Numbers in sentences: intervals end where scores end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.wording import counted, counted_span, interval_words, percent, verb

PERCENT = (0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "half_width", "ends", "words"),
    [
        (0.503, 0.1, PERCENT, "± 10.0"),
        (0.03, 0.04, PERCENT, "[0.0, 7.0]"),
        (0.98, 0.04, PERCENT, "[94.0, 100.0]"),
        (0.503, 0.513, PERCENT, ""),
        (0.4, 0.7, (-1.0, 1.0), "[-30.0, 100.0]"),
        (0.02, 1.4, (-1.0, 1.0), ""),
        (2.049, 7.303, (float("-inf"), float("inf")), "± 730.3"),
    ],
)
def test_what_cannot_be_is_not_written(value, half_width, ends, words):
    assert interval_words(value, half_width, ends=ends) == words


@given(st.floats(0, 1), st.floats(0, 3))
def test_no_written_interval_passes_an_end(value, half_width):
    words = percent(value, half_width, ".6f", PERCENT).replace("[", "").replace("]", "").replace(",", "")
    middle, *others = [float(part) for part in words.split() if part != "±"]
    ends = (middle - others[0], middle + others[0]) if len(others) == 1 else tuple(others) or (0, 100)
    assert -1e-5 <= ends[0] <= middle + 1e-5
    assert middle - 1e-5 <= ends[1] <= 100 + 1e-5


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
