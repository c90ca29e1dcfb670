"""Commands on a store of 20,000 trainings and 5,000 runs, beside an empty Python and an import of pandas."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from reproduce.cli import app
from results.store.store import Store
from tests.benchmarks.bench_rows import BenchRow, seconds_in_turn
from tests.benchmarks.big_store import FILE, TEST_RUNS, TRAININGS, enlarge, finished_run

ROOT = Path(__file__).resolve().parents[2]
REPRODUCE = ("-m", "reproduce")


def python(folder: Path, *arguments: str) -> str:
    """Run Python in a folder and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def row(folder: Path, rounds: int, arguments: tuple[str, ...], bar: str, equal: str) -> BenchRow:
    """Measure a command against an import of pandas, `--help` against an empty program."""
    usual = "pass" if arguments == ("--help",) else "import pandas"
    name = f"`reproduce {' '.join(arguments)}` / `python -c '{usual}'`"
    seconds = seconds_in_turn(
        lambda: python(folder, *REPRODUCE, *arguments), lambda: python(folder, "-c", usual), rounds
    )
    return BenchRow(name, *seconds, bar, equal)


def measure(rounds: int) -> list[BenchRow]:
    """Make the store, check what the commands print, and measure them.

    Args:
        rounds: Number of rounds.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        again = finished_run(folder)
        enlarge(Store(f"sqlite:///{folder}/runs/store.sqlite", folder / "runs" / "artifacts"))
        check(folder, again)
        name = Path(FILE).stem
        return [
            row(folder, rounds, ("--help",), "at most 0.4 s", "the help names every command"),
            row(folder, rounds, ("status",), "at most 1 s", "the printed counts are those of the records written"),
            row(folder, rounds, ("table", name), "at most 1.5 s", "the table has a row for every method"),
            row(folder, rounds, ("report", name), "at most 4 s", "the page has all sections of a finished run"),
            row(
                folder,
                rounds,
                tuple(again),
                "at most 3 s",
                "no training is made, and the page keeps its time of writing",
            ),
        ]


def check(folder: Path, again: list[str]) -> None:
    """Check that the commands do their work on the large store."""
    name = Path(FILE).stem
    shown = python(folder, *REPRODUCE, "--help")
    assert all(str(command.callback.__name__) in shown for command in app.registered_commands if command.callback)
    trainings, tests = map(
        int, re.findall(r"(\d+) (?:training|test evaluation)\(s\)", python(folder, *REPRODUCE, "status"))
    )
    assert trainings >= TRAININGS
    assert tests >= TEST_RUNS
    table = python(folder, *REPRODUCE, "table", name, "--format", "csv")
    assert len([line for line in table.splitlines() if line]) > 5
    page = folder / "runs" / "reports" / name / "index.html"
    python(folder, *REPRODUCE, "report", name)
    assert len(list((page.parent / "figures").iterdir())) >= 20
    drawn_at = page.stat().st_mtime_ns
    assert "0 trainings made" in python(folder, *REPRODUCE, *again)
    assert page.stat().st_mtime_ns == drawn_at
