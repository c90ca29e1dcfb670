"""Follows one hyperparameter from its card to a table cell, and compares its way with the page that describes it."""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from tests.support.command_line import ROOT, TINY, ask

VALUE = 0.12345678
CARD = f"""\
key: probe
title: Probe
source: A card for this test.
loss: {{name: TripletMarginLoss, arguments: {{margin: 0.3}}}}
search:
  loss.margin: {{scale: choice, choices: [{VALUE}, {VALUE}]}}
"""
MOST_FILES = 14
# These take the finished cell further: to a file, to the page, to the figures of a search, to the note on ends of
# ranges. The last one looks for damage in a stored search before it is read.
BEYOND_THE_CELL = (
    *("reports/page/", "reports/figures/", "reports/tables/", "results/statistics/range_ends.py"),
    *("reproduce/outputs/search_histories.py", "reproduce/store_care/damaged_studies.py"),
)
CELL = "reports/tables/hyperparameters.py"


def listed_files() -> list[str]:
    """The stations that docs/architecture.md lists."""
    section = (
        (ROOT / "docs" / "architecture.md").read_text().split("## The way of a hyperparameter")[1].split("\n## ")[0]
    )
    return re.findall(r"^\d+\. `([^`]+)`", section, flags=re.MULTILINE)


def holds(value: object) -> bool:
    """Whether a local variable is the followed value, or a dictionary or list with it."""
    if isinstance(value, dict):
        return any(holds(part) for part in list(value.values()))
    if isinstance(value, list | tuple):
        return any(type(part) is float and part == VALUE for part in value)
    return type(value) is float and value == VALUE


class Follower:
    """A profiler that notes the suite's files in whose frames the value is."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        # By the file of the code; None for files that need not be looked at, which are most and must cost little.
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        file = frame.f_code.co_filename
        if file not in self._names:
            name = str(Path(file).relative_to(ROOT)) if file.startswith(f"{ROOT}/") else ".venv"
            self._names[file] = None if name.startswith((".venv", "tests")) else name
        watched = self._names[file]
        if watched is None or event not in ("call", "return"):
            return
        if any(holds(value) for value in list(frame.f_locals.values())) or holds(result):
            self.files.add(watched)
            self._names[file] = None


@pytest.mark.slow
def test_the_way_is_the_one_that_the_page_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe.yaml").write_text(CARD)
    (tmp_path / "tiny.yaml").write_text(TINY.replace("[untrained, contrastive]", "[probe.yaml]"))
    monkeypatch.chdir(tmp_path)
    follower, before = Follower(), sys.getprofile()
    brief = ("--workers", "1", "--device", "cpu", "--trials", "1", "--folds", "1")
    sys.setprofile(follower)
    try:
        ran = ask("run", "tiny.yaml", *brief, capsys=capsys, monkeypatch=monkeypatch)
        drawn = ask("table", "tiny", "--what", "hyperparameters", capsys=capsys, monkeypatch=monkeypatch)
    finally:
        sys.setprofile(before)
    assert (ran.code, drawn.code) == (0, 0), ran.err + drawn.err
    assert "0.1235" in drawn.out
    entered = {name for name in follower.files if name == CELL or not name.startswith(BEYOND_THE_CELL)}
    assert entered == {name for name in listed_files() if not name.endswith(".yaml")}


def test_the_way_is_short() -> None:
    assert 0 < len(listed_files()) <= MOST_FILES
