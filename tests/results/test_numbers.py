"""Numbers are written in one way: intervals end where scores end, and a logarithm is shown as its ratio."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.numbers import ENDLESS, NumberFormat

SHARE = NumberFormat(digits=1, scale=100, ends=(0.0, 1.0))
RATIO = NumberFormat(digits=2, exponential=True)


@pytest.mark.parametrize(
    ("value", "half_width", "ends", "words"),
    [
        (0.503, 0.1, SHARE.ends, "± 10.0"),
        (0.03, 0.04, SHARE.ends, "[0.0, 7.0]"),
        (0.98, 0.04, SHARE.ends, "[94.0, 100.0]"),
        (0.503, 0.513, SHARE.ends, ""),
        (0.4, 0.7, (-1.0, 1.0), "[-30.0, 100.0]"),
        (0.02, 1.4, (-1.0, 1.0), ""),
        (2.049, 7.303, ENDLESS, "± 730.3"),
    ],
)
def test_what_cannot_be_is_not_written(value, half_width, ends, words):
    assert replace(SHARE, ends=ends).interval(value, half_width) == words


@given(st.floats(0, 1), st.floats(0, 3))
def test_no_written_interval_passes_an_end(value, half_width):
    words = replace(SHARE, digits=6).text(value, half_width).replace("[", "").replace("]", "").replace(",", "")
    middle, *others = [float(part) for part in words.split() if part != "±"]
    ends = (middle - others[0], middle + others[0]) if len(others) == 1 else tuple(others) or (0, 100)
    assert -1e-5 <= ends[0] <= middle + 1e-5
    assert middle - 1e-5 <= ends[1] <= 100 + 1e-5


@given(st.floats(0.01, 100), st.floats(1.01, 10))
def test_a_ratio_has_the_ends_of_its_interval(ratio, factor):
    words = replace(RATIO, digits=9).text(math.log(ratio), math.log(factor))
    shown, low, high = [float(part.strip("[],")) for part in words.split()]
    assert (shown, low, high) == pytest.approx((ratio, ratio / factor, ratio * factor), abs=1e-8)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (-0.0001, NumberFormat(digits=1), "0.0"),
        (0.0001, NumberFormat(digits=1, signed=True), "+0.0"),
        (1234567, NumberFormat(thousands=True), "1,234,567"),
        (12345.678, NumberFormat(digits=3, significant=True), "12346"),
        (1.5e9, NumberFormat(digits=3, significant=True), "1.5e+09"),
        (0.00012345, NumberFormat(digits=3, significant=True), "0.000123"),
        (0.0004, NumberFormat(digits=3, smallest=0.001), "< 0.001"),
        (9999.75, NumberFormat(digits=4, significant=True), "10000"),
        (0.6931472, NumberFormat(digits=7), "0.6931472"),
        (1.23456e-7, NumberFormat(digits=8), "1.23e-07"),
        (4.0234e-6, NumberFormat(digits=10), "4.0234e-06"),
        (math.log(1.5), RATIO, "1.50"),
        (math.log(170), replace(RATIO, digits=4, significant=True), "170.0"),
        (math.log(0.00017), replace(RATIO, digits=3, significant=True), "0.000170"),
    ],
)
def test_a_number_as_its_format_says(value, form, text):
    assert form.text(value) == text


def test_a_range_is_one_number_where_its_ends_look_alike():
    assert SHARE.range([0.25, 0.2, 0.3]) == "20.0 to 30.0"
    assert SHARE.range([0.2001, 0.2]) == "20.0"
