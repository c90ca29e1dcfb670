"""The records kept in the repository: whole, readable by today's code, and each with its origin."""

import math

import pytest

from reports.tables import table_of
from results.measured import FOLDER, MeasuredExperiment

FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_records_make_a_whole_table(path):
    measured = MeasuredExperiment.from_json(path.read_text(encoding="utf-8"))
    table = table_of(measured)
    assert table.complete
    assert [row.key for row in table.rows] == list(measured.summary["methods"])
    for row in table.rows:
        assert all(math.isfinite(cell.mean) and 0 < cell.mean <= 1 for cell in row.cells.values()), row.key
        assert row.n == measured.summary["reproductions"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_records_say_where_they_come_from(path):
    measured = MeasuredExperiment.from_json(path.read_text(encoding="utf-8"))
    for record in measured.records:
        assert not record.provenance.tree_dirty
        assert len(record.provenance.commit) == 40
        assert len(record.fold_fingerprints) == measured.summary["settings"]["folds"]
    assert measured.to_json() == MeasuredExperiment.from_json(measured.to_json()).to_json()


def test_there_are_records():
    assert {"quickstart", "all_methods_glyphs"} <= {path.stem for path in FILES}
