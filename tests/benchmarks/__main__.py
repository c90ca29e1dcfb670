"""`make bench`: the suite's own code beside what one would use instead, measured in turn in one run.

Before the clock starts, it is checked that both sides compute the same. Nothing here decides a test.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import torch

from tests.benchmarks import peer_fold, retrieval_peers
from tests.benchmarks.bench_record import BenchRecord, BenchRow, write_page

ROOT = Path(__file__).resolve().parents[2]


def help_of_the_command(rounds: int) -> list[BenchRow]:
    """Measure `reproduce --help`."""
    seconds = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "reproduce", "--help"], cwd=ROOT, check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    return [BenchRow(name="`reproduce --help`", ours=tuple(seconds[1:]), bar=0.4)]


def main() -> None:
    """Measure the subjects; after each one, record and page are written."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--images", type=Path, help="folder of CUB-200-2011, or of a part of it, for a fold")
    parser.add_argument("--only", nargs="+", help="subjects to measure; the others are kept")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s; short works take more")
    args = parser.parse_args()
    if args.images is not None and not args.images.is_dir():
        parser.error(f"--images: there is no folder {args.images}")
    subjects = {
        "retrieval": (lambda: retrieval_peers.measure(args.rounds), retrieval_peers.THREADS),
        "glyphs": (lambda: peer_fold.glyphs(args.rounds), 1),
        "photographs": (lambda: peer_fold.photographs(args.rounds, args.images), 1),
        "commands": (lambda: help_of_the_command(args.rounds), 1),
    }
    if unknown := set(args.only or ()) - set(subjects):
        parser.error(f"--only: {min(unknown)} is unknown; known are {', '.join(subjects)}")
    torch.set_num_threads(1)
    for name, (measure, threads) in subjects.items():
        if (args.only and name not in args.only) or (name == "photographs" and args.images is None):
            continue
        record = BenchRecord.load().with_rows(name, measure(), threads)
        record.save()
        write_page(record)
        for row in record.subjects[name].rows:
            print(row.as_markdown(), flush=True)


if __name__ == "__main__":
    main()
