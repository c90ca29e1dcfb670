"""The progress of long work before a run: lines in a log."""

import io

import pytest
from rich.console import Console

from reproduce.monitoring.bars import Bars


@pytest.fixture
def log(monkeypatch):
    """Returns a function that reports progress at some seconds, and the lines that it prints."""
    seconds = 0.0
    monkeypatch.setattr("reproduce.monitoring.bars.time.monotonic", lambda: seconds)

    def lines(*reports):
        nonlocal seconds
        text = io.StringIO()
        with Bars(Console(file=text, width=140)) as bars:
            progress = bars.of("reading images")
            for at, done, total in reports:
                seconds = at
                progress(done, total)
        return text.getvalue().splitlines()

    return lines


def test_long_work_prints_a_line_at_its_start_every_30_seconds_and_at_its_end(log):
    reports = [(second, 100 * second, 7000) for second in range(1, 71)]
    assert log(*reports) == [f"reading images: {done:,} of 7,000" for done in (100, 3100, 6100, 7000)]


def test_short_work_prints_nothing(log):
    assert log((0.2, 10, 100), (0.9, 100, 100)) == []
    assert log((3.0, 100, 100)) == []


def test_the_amount_in_total_may_be_unknown(log):
    assert log((2.0, 4096, None)) == ["reading images: 4,096"]
