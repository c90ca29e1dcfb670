"""Retrieval metrics against the bare matrix product and PML's AccuracyCalculator with faiss, on 2 threads.

`.venv/bin/python -m tests.benchmarks.retrieval_peers` prints the ratios, with `--full` those of SOP's size too.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor

from protocols.metrics import neighbours
from protocols.metrics.retrieval import normalized, retrieval_scores

Row = tuple[str, list[float], list[float], str, str, str]
"""Name, our values and the peer's (one per round), the bar, how equality was checked, and the unit (`s` or `MiB`)."""

THREADS = 2
TOLERANCE = 1e-4
"""Allowed difference of scores: distances round to float32 in other ways, and near images then change places."""

_CHECKED = 200
_PEAK = """
import torch
from tests.benchmarks.retrieval_peers import THREADS, retrieval_scores, sop
from tests.support.process_memory import process_memory
torch.set_num_threads(THREADS)
retrieval_scores(*sop())
print(process_memory("VmHWM"))
"""


def measure(rounds: int, *, full: bool = False) -> list[Row]:
    """Measure all cases, ours and the peer in turn, after a check that both find the same.

    Args:
        rounds: Number of rounds. The two large cases take at most 3.
        full: Whether to measure SOP's size too, which takes minutes.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        rows = [
            against_product("CUB, 5,924 x 512", cub(), rounds),
            against_pml("CUB, 5,924 x 512", cub(), rounds, "at least 2.5"),
            against_pml("20,000 x 512, one class of 5,000", long_tail(), min(rounds, 3), "at least 5"),
        ]
        return [*rows, against_product("SOP, 60,502 x 512", sop(), min(rounds, 3)), peak()] if full else rows
    finally:
        torch.set_num_threads(threads)


def cub() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of CUB's test set: 5,924 images of 100 classes."""
    return _embeddings(torch.arange(5924) % 100)


def long_tail() -> tuple[Tensor, Tensor]:
    """20,000 embeddings, a quarter of them in one class and the others in 300."""
    return _embeddings(torch.cat([torch.zeros(5000, dtype=torch.int64), 1 + torch.arange(15000) % 300]))


def sop() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of SOP's test set: 60,502 images of 11,316 classes."""
    return _embeddings(torch.arange(60502) % 11316)


def _embeddings(labels: Tensor) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    centres = normalized(torch.randn(int(labels.max()) + 1, 512, generator=generator))
    return normalized(centres[labels] + 0.1 * torch.randn(len(labels), 512, generator=generator)), labels


def against_product(name: str, data: tuple[Tensor, Tensor], rounds: int) -> Row:
    """Compare the metrics with the matrix product alone, in chunks of as many queries."""
    embeddings = data[0]
    rows = max(neighbours.LEAST_ROWS, neighbours.CHUNK_ELEMENTS // len(embeddings))

    def product() -> None:
        for part in embeddings.split(rows):
            part @ embeddings.T

    difference = _difference_from_definition(*data)
    seconds = _in_turn(lambda: retrieval_scores(*data), product, rounds)
    equal = f"MAP@R of {_CHECKED} queries differs by {difference:.0e} from its definition in float64"
    return f"retrieval, {name} / bare product", *seconds, "at most 1.5", equal, "s"


def against_pml(name: str, data: tuple[Tensor, Tensor], rounds: int, bar: str) -> Row:
    """Compare the metrics with PML's AccuracyCalculator, which searches with faiss."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    include = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
    calculator = AccuracyCalculator(include=include, k="max_bin_count", device=torch.device("cpu"))
    ours, theirs = retrieval_scores(*data), calculator.get_accuracy(*data)
    pairs = zip((ours.precision_at_1, ours.r_precision, ours.map_at_r), (theirs[key] for key in include), strict=True)
    difference = max(abs(mine - other) for mine, other in pairs)
    assert difference < TOLERANCE, f"{name}: our scores differ from PML's by {difference}"
    seconds = _in_turn(lambda: retrieval_scores(*data), lambda: calculator.get_accuracy(*data), rounds)
    return f"retrieval, {name} / PML", *seconds, bar, f"three scores differ by at most {difference:.0e}", "s"


def peak() -> Row:
    """Measure the largest memory of a process that computes the metrics of SOP's size, with torch and all data."""
    printed = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True).stdout
    return "retrieval, SOP: peak memory", [float(printed)], [float("nan")], "at most 2048 MiB", "no peer", "MiB"


def _difference_from_definition(embeddings: Tensor, labels: Tensor) -> float:
    """Difference from MAP@R by a full sort in float64, for the first queries."""
    queries = embeddings[:_CHECKED]
    distances = torch.cdist(queries.double(), embeddings.double(), compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(torch.inf)
    values = []
    for row, label in zip(distances, labels, strict=False):
        correct = (labels[row.argsort()] == label)[: int((labels == label).sum()) - 1].double()
        values.append((correct * correct.cumsum(0) / torch.arange(1, len(correct) + 1)).mean())
    depths = (torch.bincount(labels)[labels] - 1) * (torch.arange(len(labels)) < _CHECKED)
    ours = []
    for rows, found in neighbours.nearest_in_parts(embeddings, embeddings, depths, exclude_self=True):
        correct = (labels[found] == labels[rows][:, None]).double()
        correct *= torch.arange(found.shape[1]) < depths[rows][:, None]
        precision = correct.cumsum(1) / torch.arange(1, found.shape[1] + 1)
        ours.append((correct * precision).sum(1) / depths[rows])
    difference = abs(float(torch.cat(ours).mean() - torch.stack(values).mean()))
    assert difference < TOLERANCE, f"MAP@R differs from its definition by {difference}"
    return difference


def _in_turn(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of both in each round; who is first alternates."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        works = [(ours, seconds[0]), (peer, seconds[1])]
        for work, kept in works if number % 2 else reversed(works):
            started = time.perf_counter()
            work()
            kept.append(time.perf_counter() - started)
    return seconds


def main() -> None:
    """Print the median ratio and the range of each case."""
    for name, ours, peer, bar, equal, unit in measure(5, full="--full" in sys.argv):
        if unit == "MiB":
            print(f"{name}: {ours[0]:.0f} MiB ({bar})")
            continue
        pairs = zip(ours, peer, strict=True)
        ratios = [b / a if bar.startswith("at least") else a / b for a, b in pairs]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{name}: {spread}, {bar}; {statistics.median(ours):.2f} s; {equal}", flush=True)


if __name__ == "__main__":
    main()
