"""What a printed ± says about the deviation between runs, and which ± of the papers are pooled."""

import pytest

from results.published.rows import row_origin
from results.published.spreads import READINGS, Reading, Spread, pooled_spread, printed_spreads
from results.published.tables import PublishedColumn, published_table

R1_OF_CUB = PublishedColumn("cub200", "precision_at_1", "single")


@pytest.mark.parametrize(
    ("spread", "deviation"),
    [
        (Spread(0.3, 9, "standard deviation"), {0.3}),
        # t(0.975, 9) = 2.262
        (Spread(0.3, 10, "95 % interval"), {0.3 * 10**0.5 / 2.262}),
        (Spread(0.3, 9, "not stated"), {0.3, 0.9}),
        (Spread(0.3, None, "not stated"), {0.3, 0.3 * 2**0.5, 0.3 * 5**0.5}),
    ],
)
def test_what_is_stated_is_read_in_one_way_and_the_rest_in_all(spread, deviation):
    read = {spread.read(reading)[0] for reading in READINGS}
    assert sorted(read) == pytest.approx(sorted(deviation), rel=1e-3)
    assert spread.stated == (len(deviation) == 1)


def test_deviations_are_pooled_by_their_degrees_of_freedom():
    reading = Reading(standard_error=False, runs=2)
    spreads = [Spread(0.3, 4, "standard deviation"), Spread(0.6, None, "not stated"), Spread(9, 1, "not stated")]
    deviation, degrees = pooled_spread(spreads, reading)
    assert degrees == 4
    assert deviation == pytest.approx(((3 * 0.09 + 0.36) / 4) ** 0.5)
    assert pooled_spread([], reading) is pooled_spread([Spread(0, 5, "standard deviation")], reading) is None


def test_values_that_a_paper_measured_are_pooled_once_and_quoted_ones_never():
    spreads = printed_spreads(R1_OF_CUB)
    tables = {spread.table for spread in spreads}
    assert tables == {"proxy_isa_table2", "nir_table1", "nir_table2", "nir_table4", "nir_table5"}
    for name in tables:
        rows = published_table(name).rows
        with_spread = [row.cells[R1_OF_CUB] for row in rows if row_origin(name, row, "cub200").kind == "measured"]
        assert sum(spread.table == name for spread in spreads) <= len(with_spread)
    isa = [spread for spread in spreads if spread.table == "proxy_isa_table2"]
    assert len(isa) == 2, "Proxy-ISA and Proxy-Anchor; the others quote MLRC"
    printed_twice = [row.cells[R1_OF_CUB] for row in published_table("nir_table5").rows[:1]]
    assert printed_twice[0].as_published == "66.0"
    assert sum(spread.table == "nir_table5" for spread in spreads) == len(published_table("nir_table5").rows) - 1


def test_only_mlrc_says_what_its_spread_is():
    mlrc = printed_spreads(PublishedColumn("cars196", "map_at_r", "concatenated"))
    assert {(spread.runs, spread.kind, spread.table) for spread in mlrc} == {(10, "95 % interval", "mlrc_cars196")}
    assert not any(spread.stated for spread in printed_spreads(R1_OF_CUB))
    assert printed_spreads(PublishedColumn("inshop", "precision_at_1", "single")) == ()
