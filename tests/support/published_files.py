"""The published tables' files as they are, and the method cards."""

import csv
from functools import cache
from pathlib import Path

from reproduce.config.strict_yaml import read_yaml

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results" / "published"
CARDS = {path.stem: read_yaml(path.read_text()) for path in (ROOT / "reproduce" / "methods").glob("*.yaml")}


def lines(name):
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def covered():
    """Every published row, and whether a shipped file runs it."""
    from reproduce.outputs.covered_rows import covered_rows

    return covered_rows()
