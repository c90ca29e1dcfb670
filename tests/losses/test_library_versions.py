"""The page on versions 2.9 and 3 of pytorch-metric-learning has the numbers that its block prints."""

import re

import pytest

from losses.bridge import THREE
from tests.support.documentation import ROOT, blocks, text_of

PAGE = ROOT / "docs" / "library_versions.md"


def test_the_table_has_the_numbers_of_the_installed_version():
    """Under the real version 3 a difference means that a page of its documentation was misread."""
    (code,) = blocks(PAGE, "python")
    exec(code, names := {})
    rows = re.findall(r"^\| ([^|]+) \| (\d+\.\d{3}) \| (\d+\.\d{3}) \|", text_of(PAGE), re.MULTILINE)
    column = 2 if THREE else 1
    assert {row[0]: float(row[column]) for row in rows} == pytest.approx(names["values"], abs=2e-3)
