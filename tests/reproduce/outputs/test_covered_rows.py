"""Which published rows a shipped experiment file reproduces."""

from collections import Counter

from reproduce.outputs.covered_rows import covered_rows
from results.published.rows import row_origin
from results.published.tables import published_table, published_tables

ROWS = covered_rows()


def test_every_row_of_every_table_is_counted_once_for_each_dataset():
    counted = Counter((row.table, row.dataset) for row in ROWS)
    for name in published_tables():
        table = published_table(name)
        for dataset in {column.dataset for column in table.columns}:
            assert counted[name, dataset] == len(table.rows), (name, dataset)


def test_every_method_of_mlrc_is_runnable_by_the_file_of_its_own_dataset():
    """The shipped file for Cars196 was held against CUB's settings once, and filled nothing."""
    for dataset, count in {"cub200": 15, "cars196": 15, "sop": 14}.items():
        rows = [row for row in ROWS if row.table == f"mlrc_{dataset}"]
        assert {(row.status, row.detail) for row in rows} == {("runnable", f"mlrc_{dataset}")}
        assert len(rows) == count


def test_quoted_rows_are_never_runnable():
    for row in ROWS:
        table = published_table(row.table)
        origins = {row_origin(row.table, one, row.dataset).kind for one in table.rows if one.label == row.label}
        if origins == {"quoted"}:
            assert row.status == ("method not in the suite" if row.method is None else "quoted")
            assert row.detail


def test_a_row_of_our_reading_is_runnable_and_says_so():
    readings = [row for row in ROWS if row.our_reading]
    assert {row.status for row in readings} == {"runnable"}
    assert ("mlrc_cub200", "pretrained_test_pca") in {(row.table, row.method) for row in readings}
    alone = {row.dataset: row for row in ROWS if row.method == "nir_proxy_anchor_alone"}
    assert {dataset: row.detail for dataset, row in alone.items()} == {
        "cub200": "nir_table4/cub200",
        "cars196": "nir_table4/cars196",
    }
