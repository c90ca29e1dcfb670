"""`python -m tests.benchmarks.features`: time and peak memory of a whole comparison on features without images.

It writes random features of some classes, runs an experiment on them with `reproduce run` in a process of its own, and
measures from outside: seconds until the first training, seconds until the page, and the largest memory of all processes
together (their proportional set sizes, so that shared pages count once; Linux only). The classes overlap, so that the
scores are neither 0 nor 1. Nothing here decides a test.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import yaml

from results.records.provenance import provenance

METHODS = (
    *("contrastive", "triplet", "ntxent", "proxy_nca", "margin", "margin_class", "normalized_softmax"),
    *("cosface", "arcface", "fastap", "snr_contrastive", "multi_similarity", "multi_similarity_miner", "soft_triple"),
)
"""The 14 losses that MLRC compares."""


@dataclass(frozen=True)
class Measured:
    """What a run needed.

    Attributes:
        seconds_to_forecast: Seconds from the start until the features are checked and the trainings begin.
        seconds: Seconds of the whole run.
        peak_mebibytes: Largest memory of all processes together.
    """

    seconds_to_forecast: float
    seconds: float
    peak_mebibytes: float


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.features", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=768, help="features per row (default %(default)s)")
    parser.add_argument("--classes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--methods", type=int, default=len(METHODS), help="number of methods (default %(default)s)")
    parser.add_argument("--trials", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--reproductions", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=20, help="of 50 steps (default %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="trainings at a time (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/features.json"), help="default: %(default)s")
    return parser.parse_args()


def write_features(folder: Path, rows: int, width: int, classes: int) -> None:
    """Write features of overlapping classes, in parts, and their labels."""
    chance = np.random.default_rng(0)
    labels = np.arange(rows) % classes
    centres = chance.standard_normal((classes, width), dtype=np.float32)
    values = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=(rows, width))
    for first in range(0, rows, 10_000):
        part = labels[first : first + 10_000]
        values[first : first + len(part)] = centres[part] + 3 * chance.standard_normal((len(part), width), np.float32)
    values.flush()
    np.save(folder / "labels.npy", labels)


def write_experiment(path: Path, args: argparse.Namespace) -> None:
    """Write the experiment file."""
    optimizer = {"name": "Adam", "lr": 1e-4, "arguments": {}}
    experiment = {
        "title": "Random features",
        "dataset": {"name": "features", "root": "."},
        "methods": list(METHODS[: args.methods]),
        "embedder": {"init": "pca"},
        "training": {
            **{"batch_size": 128, "iterations_per_epoch": 50, "max_epochs": args.epochs, "patience": 4},
            "optimizer": optimizer,
        },
        "search": {"trials": args.trials},
        "reproductions": args.reproductions,
    }
    path.write_text(yaml.safe_dump(experiment))


def measured_run(path: Path, workers: int) -> Measured:
    """Run an experiment file, and measure its process with all processes that it starts."""
    started, peak, done = time.perf_counter(), [0.0], threading.Event()
    command = [sys.executable, "-m", "reproduce", "run", path.name, "--workers", str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE, text=True, env=environment)

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], sum(_memory(pid) for pid in _with_descendants(process.pid)) / 1024)

    watcher = threading.Thread(target=watch)
    watcher.start()
    until_forecast = 0.0
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        if "trainings to do" in line:
            until_forecast = time.perf_counter() - started
    code = process.wait()
    done.set()
    watcher.join()
    if code:
        raise SystemExit(f"the run ended with exit code {code}")
    return Measured(until_forecast, time.perf_counter() - started, peak[0])


def _with_descendants(pid: int) -> Iterator[int]:
    """Yield a process and all processes below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _text(task).split():
            yield from _with_descendants(int(child))


def _memory(pid: int) -> int:
    """Return the proportional set size of a process in KiB; 0 if it has ended."""
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def main() -> None:
    """Write the features, run the experiment, and print and write what it needed."""
    args = parsed()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_features(folder, args.rows, args.width, args.classes)
        write_experiment(folder / "random_features.yaml", args)
        measured = measured_run(folder / "random_features.yaml", args.workers)
    print(
        f"{measured.seconds:.0f} s in all, {measured.seconds_to_forecast:.0f} s until the first training; "
        f"{measured.peak_mebibytes:.0f} MiB at most in all processes"
    )
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    origin = provenance("cpu", 1).model_dump(mode="json")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"settings": settings, **asdict(measured), "provenance": origin}, indent=1) + "\n")
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
