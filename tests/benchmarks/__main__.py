"""`make bench`: what the suite's own code gains over the usual way, as ratios measured side by side in one run.

Ratios and not seconds, since they carry over from machine to machine. Both sides of a ratio alternate, and before the
clock starts, their results are compared. Nothing here decides a test.
"""

import argparse
import importlib.util
import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from reproduce.monitoring.time_left import in_words
from tests.benchmarks.bench_record import PAGE, RECORD, BenchRecord, measured_subject, terminal_table, write_page
from tests.benchmarks.bench_rows import BenchRow

MODULES = "tests.benchmarks"


@dataclass(frozen=True)
class Subject:
    """A module with a function `measure(rounds) -> list[BenchRow]`, its rounds, and about how long it takes."""

    module: str
    rounds: int
    seconds: float


SUBJECTS = {
    "losses": Subject("loss_steps", 5, 60),
    "folds": Subject("peer_fold", 3, 250),
    "retrieval": Subject("retrieval_peers", 3, 90),
    "commands": Subject("commands", 3, 120),
    "search": Subject("search_asks", 3, 40),
    "images": Subject("image_batches", 5, 10),
}
"""The subjects in the order of the tables."""


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, help="subjects to measure; the others are kept")
    parser.add_argument("--rounds", type=int, help="rounds of every subject, for a quick look")
    parser.add_argument("--full", action="store_true", help="retrieval at the size of Stanford Online Products too")
    parser.add_argument("--images", type=Path, help="folder of CUB-200-2011, or of a part of it, for a fold")
    parser.add_argument("--draw", action="store_true", help="measure nothing, only renew the page from the record")
    parser.add_argument("--out", type=Path, default=RECORD, help="file of the record")
    parser.add_argument("--page", type=Path, default=PAGE, help="page of the docs whose tables are renewed")
    args = parser.parse_args()
    if not args.page.is_file():
        parser.error(f"--page: there is no {args.page}; give a page that has the marks of the tables")
    if args.images is not None and not args.images.is_dir():
        parser.error(f"--images: there is no folder {args.images}")
    return args


def present(subject: Subject) -> bool:
    """Return whether the module of a subject exists."""
    return importlib.util.find_spec(f"{MODULES}.{subject.module}") is not None


def rows_of(measure: Callable[..., Iterable[Any]], rounds: int, args: argparse.Namespace) -> list[BenchRow]:
    """Call a subject's `measure` with the options that it knows. Some return tuples or other values of a row."""
    known = inspect.signature(measure).parameters
    options = {name: getattr(args, name) for name in ("full", "images") if name in known}
    return [BenchRow.of(*(row if isinstance(row, tuple) else astuple(row))) for row in measure(rounds, **options)]


def main() -> None:
    """Measure the subjects; after each one its table is shown, and record and page are written."""
    args, console = parsed(), Console(width=200)
    torch.set_num_threads(1)
    names = [] if args.draw else args.only or SUBJECTS
    chosen = {name: SUBJECTS[name] for name in names if present(SUBJECTS[name])}
    record = BenchRecord.load(args.out)
    expected = {name: record.took(name) or subject.seconds for name, subject in chosen.items()}
    for name, subject in chosen.items():
        # The times of the last record tell how long the rest takes.
        console.print(f"{name}: about {in_words(expected[name])}; all: about {in_words(sum(expected.values()))} left")
        rounds, started = args.rounds or subject.rounds, time.perf_counter()
        module = importlib.import_module(f"{MODULES}.{subject.module}")
        rows = rows_of(module.measure, rounds, args)
        took = time.perf_counter() - started
        del expected[name]
        measured = measured_subject(name, took, rows, getattr(module, "THREADS", 1))
        record = BenchRecord.load(args.out).with_subject(measured, list(SUBJECTS))
        record.save(args.out)
        console.print(terminal_table(measured))
        write_page(record, args.page)
    if args.draw:
        write_page(record, args.page)
    console.print(f"written: {args.out}, {args.page}")


if __name__ == "__main__":
    main()
