"""Every printed row says who measured it."""

from collections import Counter

import pytest

from results.published.rows import row_origin
from results.published.tables import published_table, published_tables, read_published

ROWS = [
    (name, row, dataset)
    for name in published_tables()
    for row in published_table(name).rows
    for dataset in dict.fromkeys(column.dataset for column in published_table(name).columns)
]


def test_every_row_of_every_table_has_an_origin_on_every_dataset():
    kinds = Counter(row_origin(*place).kind for place in ROWS)
    assert set(kinds) == {"measured", "quoted", "unclear"}


def test_a_quoted_row_names_its_source_and_a_measured_row_has_none():
    for place in ROWS:
        origin = row_origin(*place)
        assert origin.evidence, place
        if origin.kind != "unclear":
            assert bool(origin.quoted_from) == (origin.kind == "quoted"), place


def test_no_line_of_the_file_is_about_a_row_that_no_table_prints():
    lines = read_published("rows")
    keys = {(name, row.label, row.trunk, str(row.dimensions or ""), row.setting) for name, row, _ in ROWS}
    columns = ["table", "label", "trunk", "dimensions", "setting"]
    assert set(lines[columns].itertuples(index=False, name=None)) == keys


def test_the_counts_of_the_audit():
    """220 printed rows; the audit of the papers found so many that a paper measured itself on at least one dataset."""
    by_row: dict[tuple[str, str, str, int | None, str], set[str]] = {}
    for name, row, dataset in ROWS:
        key = (name, row.label, row.trunk, row.dimensions, row.setting)
        by_row.setdefault(key, set()).add(row_origin(name, row, dataset).kind)
    assert len(by_row) == 220
    assert sum("measured" in kinds for kinds in by_row.values()) == 149
    assert sum("quoted" in kinds for kinds in by_row.values()) == 69


@pytest.mark.parametrize(
    ("table", "label", "dataset", "kind"),
    [
        ("proxy_isa_table2", "Margin", "cub200", "quoted"),
        ("proxy_isa_table2", "SoftTriplet", "cub200", "unclear"),
        ("proxy_isa_table2", "SoftTriplet", "cars196", "quoted"),
        ("proxy_isa_table1", "Proxy-Anchor", "sop", "measured"),
        ("ccp_table1", "HPL-PA", "sop", "quoted"),
        ("mlrc_cars196", "Contrastive", "cars196", "measured"),
    ],
)
def test_rows_that_were_checked_by_hand(table, label, dataset, kind):
    row = next(row for row in published_table(table).rows if row.label == label)
    assert row_origin(table, row, dataset).kind == kind
