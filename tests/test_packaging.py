"""Licence, version and type information agree wherever they are said."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def test_version_and_licence_are_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {PROJECT['version']}\n" in citation
    assert f"\n## {PROJECT['version']}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["license"] == "MIT"
    assert "license: MIT\n" in citation
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_every_package_says_that_it_is_typed() -> None:
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    for room in ("losses", "results", "protocols", "reports", "reproduce"):
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in data[room]
