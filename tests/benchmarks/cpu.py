"""`make bench`: retrieval beside pytorch-metric-learning (PML), measured in turn; both compute the same.

Writes results/measured/bench_cpu.json and the table of docs/speed.md. Each side has a process of its own, set up as its
users have it. `make bench-gpu` measures trainings. Nothing here decides a test.
"""

import argparse
import json
import logging
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor

from protocols.metrics.retrieval import normalized, query_scores
from reproduce.run.devices import prepare_process
from results.atomic_files import write_atomically
from results.records.provenance import processor, provenance
from results.store.experiment_results import FOLDER

RECORD = FOLDER / "bench_cpu.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "speed.md"
START, END = "<!-- table: bench -->", "<!-- end of table -->"
SCORES = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
TOLERANCE = 1e-4
"""Allowed difference of scores: distances round to float32 in other ways, and near images then change places."""


@cache
def embeddings(images: int, classes: int, size: int) -> tuple[Tensor, Tensor]:
    generator, labels = torch.Generator().manual_seed(0), torch.arange(images) % classes
    centres = normalized(torch.randn(classes, size, generator=generator))
    return normalized(centres[labels] + 0.1 * torch.randn(images, size, generator=generator)), labels


def scores(*size: int) -> tuple[float, ...]:
    found = query_scores(*embeddings(*size)).mean()
    return found.precision_at_1, found.r_precision, found.map_at_r


def scores_by_pml(*size: int) -> tuple[float, ...]:
    calculator = AccuracyCalculator(include=SCORES, k="max_bin_count", device=torch.device("cpu"))
    found = calculator.get_accuracy(*embeddings(*size))
    return tuple(float(found[key]) for key in SCORES)


def retrieval(rounds: int) -> dict[str, Any]:
    """Search at the size of CUB's test set, on two threads."""
    ours, theirs = in_turn(scores, scores_by_pml, [(5924, 100, 512)] * rounds, 2)
    difference = max(abs(one - other) for one, other in zip(ours[0][1], theirs[0][1], strict=True))
    assert difference < TOLERANCE, f"our scores differ from PML's by {difference}"
    seconds = {"ours": [of for of, _ in ours], "peer": [of for of, _ in theirs]}
    origin = provenance(processor() or "cpu", 2).model_dump(mode="json")
    return {"name": "retrieval, CUB, 5,924 x 512 / PML with faiss", **seconds, "provenance": origin}


# --- measuring, and the record ---

Measured = list[tuple[float, Any]]
"""Seconds and result of each round."""


def in_turn(
    ours: Callable[..., Any], theirs: Callable[..., Any], rounds: Sequence[tuple[Any, ...]], threads: int
) -> tuple[Measured, Measured]:
    """Call both with the arguments of each round, after one to warm up; the first of a round is second in the next."""
    context, measured = multiprocessing.get_context("spawn"), ([], [])
    with (
        ProcessPoolExecutor(1, context, prepare_process, ("cpu", threads)) as suite,
        ProcessPoolExecutor(1, context, _prepare_pml, (threads,)) as pml,
    ):
        for number, arguments in enumerate((rounds[0], *rounds)):
            sides = [(suite, ours, measured[0]), (pml, theirs, measured[1])]
            for process, work, kept in sides if number % 2 else reversed(sides):
                found = process.submit(_timed, work, arguments).result()
                if number:
                    kept.append(found)
    return measured


def _prepare_pml(threads: int) -> None:
    import faiss

    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    logging.getLogger("PML").setLevel(logging.WARNING)


def _timed(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work(*arguments)
    return time.perf_counter() - started, found


def as_markdown(record: dict[str, Any]) -> str:
    """The table of the docs: medians, the smallest and largest ratio of a round, and where it was measured."""
    # Both sides of a round were measured next to each other.
    times = [peer / ours for ours, peer in zip(record["ours"], record["peer"], strict=True)]
    middle, where = statistics.median(times), record["provenance"]
    cells = [_amount(record["ours"]), _amount(record["peer"]), f"{middle:.3g} ({min(times):.3g} to {max(times):.3g})"]
    return f"""\
| what | ours | peer | times as fast | bar |
|---|--:|--:|--:|---|
| {record["name"]} | {" | ".join(cells)} | at least 1, {"met" if middle >= 1 else "missed"} |

{where["device"]}, {where["cpu_count"]} cores, {where["threads"]} threads, {where["finished_at"][:10]}, \
commit {where["commit"][:12]}{", with uncommitted changes" if where["tree_dirty"] else ""}, \
torch {where["versions"]["torch"]}"""


def _amount(values: Sequence[float]) -> str:
    value = statistics.median(values)
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def main() -> None:
    """Measure, and write record and page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="default: %(default)s")
    record = retrieval(parser.parse_args().rounds)
    write_atomically(RECORD, json.dumps(record, indent=1) + "\n")
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    write_atomically(PAGE, f"{before}{START}\n\n{as_markdown(record)}\n\n{END}{rest.split(END)[1]}")
    print(as_markdown(record))


if __name__ == "__main__":
    main()
