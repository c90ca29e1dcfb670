"""The copy of the quickstart's page in docs/: its numbers are those of the record that the repository keeps."""

import base64
import re

import pytest

from reports.tables.differences import differences
from reports.tables.formats import to_csv
from reports.tables.result_table import table_of
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.documentation import ROOT

PAGE = (ROOT / "docs" / "example.html").read_text(encoding="utf-8")
AGAIN = "call `make quickstart`, `make example`, and keep the new record, as docs/storage.md says"


def contained_file(name):
    (content,) = re.findall(rf'download="{name}" href="data:text/csv;base64,([^"]+)"', PAGE)
    return base64.b64decode(content).decode()


@pytest.fixture(scope="module")
def kept():
    return MeasuredExperiment.kept("quickstart")


def test_the_example_has_the_numbers_of_the_record(kept):
    assert contained_file("table.csv") == to_csv(table_of(answer_of(kept))), AGAIN
    assert contained_file("differences.csv") == to_csv(differences(answer_of(kept))), AGAIN
