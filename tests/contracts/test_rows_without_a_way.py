"""Every row that a paper measured can be run with a shipped file, or data and docs/deviations.md say why not."""

import re

from reproduce.outputs.covered_rows import CoveredRow
from results.published.rows import RowOrigin, row_origin
from results.published.tables import PublishedRow, published_table, published_tables
from tests.support.published_files import ROOT, covered


def origins() -> list[tuple[str, PublishedRow, RowOrigin]]:
    return [
        (name, row, row_origin(name, row, column.dataset))
        for name in published_tables()
        for row in published_table(name).rows
        for column in published_table(name).columns
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
