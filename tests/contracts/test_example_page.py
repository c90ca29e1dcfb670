"""The copy of the quickstart's page in docs/: its numbers are those of the record that the repository keeps."""

import base64
import io
import re

import pandas as pd
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
    return frame(base64.b64decode(content).decode())


def frame(csv):
    return pd.read_csv(io.StringIO(csv))


@pytest.fixture(scope="module")
def kept():
    return MeasuredExperiment.kept("quickstart")


def test_the_example_has_the_numbers_of_the_record(kept):
    answer = answer_of(kept)
    for name, table in (("table.csv", table_of(answer)), ("differences.csv", differences(answer))):
        pd.testing.assert_frame_equal(contained_file(name), frame(to_csv(table)), rtol=1e-9, obj=f"{name}: {AGAIN}")
