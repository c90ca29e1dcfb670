"""Which published rows a shipped experiment file reproduces; data and docs/deviations.md say why not the others."""

import re
from collections import Counter

from results.published.tables import CoveredRow, PublishedRow, RowOrigin, published_table, published_tables
from tests.support.published_files import ROOT, covered


def test_every_row_of_every_table_is_counted_once_for_each_dataset():
    counted = Counter((row.table, row.dataset) for row in covered())
    for name in published_tables():
        table = published_table(name)
        for dataset in {column.dataset for column in table.columns}:
            assert counted[name, dataset] == len(table.rows), (name, dataset)


def test_every_method_of_mlrc_is_runnable_by_the_file_of_its_own_dataset():
    """The shipped file for Cars196 was held against CUB's settings once, and filled nothing."""
    for dataset, count in {"cub200": 15, "cars196": 15, "sop": 14}.items():
        rows = [row for row in covered() if row.table == f"mlrc_{dataset}"]
        assert {(row.status, row.detail) for row in rows} == {("runnable", f"mlrc_{dataset}")}
        assert len(rows) == count


def test_quoted_rows_are_never_runnable():
    for row in covered():
        table = published_table(row.table)
        cells = [cell for one in table.rows if one.label == row.label for cell in one.cells.values()]
        origins = {cell.origin.kind for cell in cells if cell.column.dataset == row.dataset}
        if origins == {"quoted"}:
            assert row.status == ("method not in the suite" if row.method is None else "quoted")
            assert row.detail


def test_a_row_of_our_reading_is_runnable_and_says_so():
    readings = [row for row in covered() if row.origin.our_reading]
    assert {row.status for row in readings} == {"runnable"}
    assert ("mlrc_cub200", "pretrained_test_pca") in {(row.table, row.method) for row in readings}
    alone = {row.dataset: row for row in covered() if row.method == "nir_proxy_anchor_alone"}
    assert {dataset: row.detail for dataset, row in alone.items()} == {
        "cub200": "nir_table4/cub200",
        "cars196": "nir_table4/cars196",
    }


def origins() -> list[tuple[str, PublishedRow, RowOrigin]]:
    return [
        (name, row, cell.origin)
        for name in published_tables()
        for row in published_table(name).rows
        for cell in row.cells.values()
    ]


def entries() -> list[str]:
    """The numbered entries of docs/deviations.md, each on one line."""
    text = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    return [" ".join(entry.split()) for entry in re.split(r"\n(?=\d+\. )", text)[1:]]


def not_runnable() -> list[CoveredRow]:
    return [row for row in covered() if row.status == "not runnable"]


def test_a_measured_row_is_runnable_or_the_data_say_why_not() -> None:
    measured = {(name, row.label) for name, row, origin in origins() if origin.kind == "measured"}
    statuses = {row.status for row in covered() if (row.table, row.label) in measured}
    assert "method not in the suite" not in statuses
    for row in not_runnable():
        reasons = {
            origin.not_determined
            for name, published, origin in origins()
            if (name, published.label) == (row.table, row.label)
        }
        assert reasons == {row.detail.removeprefix("cannot be determined: ")}, row
        assert "" not in reasons, row


def test_the_deviations_name_every_row_that_is_not_runnable_with_its_reason() -> None:
    assert not_runnable()
    for row in not_runnable():
        reason = row.detail.removeprefix("cannot be determined: ")
        words = (f"`{row.table}`", f'"{row.label}"', reason)
        assert any(all(word in entry for word in words) for entry in entries()), words
