"""Retrieval metrics against the bare matrix product and PML's AccuracyCalculator with faiss, on 2 threads.

Each side has a process of its own, set up as its users have it; the bare product is made in the suite's process.
`.venv/bin/python -m tests.benchmarks.retrieval_peers` prints the ratios, with `--full` those of SOP's size too.
"""

import multiprocessing
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from threadpoolctl import threadpool_info
from torch import Tensor

from protocols.metrics import neighbours
from protocols.metrics.retrieval import normalized, retrieval_scores
from reproduce.execution.devices import prepare_process
from tests.benchmarks.bench_rows import seconds_in_turn

Row = tuple[str, list[float], list[float], str, str, str]
"""Name, our values and the peer's (one per round), the bar, how equality was checked, and the unit (`s` or `MiB`)."""

Data = Callable[[], tuple[Tensor, Tensor]]
"""Embeddings and their labels. Each process makes them itself, once."""

Scores = tuple[float, float, float]
"""Precision@1, R-precision and MAP@R."""

THREADS = 2
TOLERANCE = 1e-4
"""Allowed difference of scores: distances round to float32 in other ways, and near images then change places."""

SHORT_ROUNDS = 20
"""Fewest rounds of the cases that take a part of a second."""

_CHECKED = 200
_PEAK = """
from reproduce.execution.devices import prepare_process
from tests.benchmarks.retrieval_peers import THREADS, retrieval_scores, sop
from tests.support.process_memory import process_memory
prepare_process("cpu", THREADS)
retrieval_scores(*sop())
print(process_memory("VmHWM"))
"""


def measure(rounds: int, *, full: bool = False) -> list[Row]:
    """Measure all cases, ours and the peer in turn, after a check that both find the same.

    Args:
        rounds: Number of rounds. The short cases take at least `SHORT_ROUNDS`, the two large ones at most 3.
        full: Whether to measure SOP's size too, which takes minutes.
    """
    context = multiprocessing.get_context("spawn")
    few, many = min(rounds, 3), max(rounds, SHORT_ROUNDS)
    with (
        ProcessPoolExecutor(1, context, prepare_process, ("cpu", THREADS)) as suite,
        ProcessPoolExecutor(1, context, _prepare_pml) as pml,
    ):
        rows = [
            against_product("CUB, 5,924 x 512", cub, suite, many),
            against_pml("CUB, 5,924 x 512", cub, suite, pml, many, "at least 2.5"),
            against_pml("20,000 x 512, one class of 5,000", long_tail, suite, pml, few, "at least 5"),
        ]
        return [*rows, against_product("SOP, 60,502 x 512", sop, suite, few), peak()] if full else rows


def _prepare_pml() -> None:
    import faiss

    torch.set_num_threads(THREADS)
    faiss.omp_set_num_threads(THREADS)


@cache
def cub() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of CUB's test set: 5,924 images of 100 classes."""
    return _embeddings(torch.arange(5924) % 100)


@cache
def long_tail() -> tuple[Tensor, Tensor]:
    """20,000 embeddings, a quarter of them in one class and the others in 300."""
    return _embeddings(torch.cat([torch.zeros(5000, dtype=torch.int64), 1 + torch.arange(15000) % 300]))


@cache
def sop() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of SOP's test set: 60,502 images of 11,316 classes."""
    return _embeddings(torch.arange(60502) % 11316)


def _embeddings(labels: Tensor) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    centres = normalized(torch.randn(int(labels.max()) + 1, 512, generator=generator))
    return normalized(centres[labels] + 0.1 * torch.randn(len(labels), 512, generator=generator)), labels


def against_product(name: str, data: Data, suite: ProcessPoolExecutor, rounds: int) -> Row:
    """Compare the metrics with the matrix product alone, in chunks of as many queries."""
    difference = suite.submit(_difference_from_definition, data).result()
    seconds = seconds_in_turn(
        lambda: suite.submit(_score, data).result(), lambda: suite.submit(_multiply, data).result(), rounds
    )
    equal = f"MAP@R of {_CHECKED} queries differs by {difference:.0e} from its definition in float64"
    return f"retrieval, {name} / bare product", *seconds, "at most 1.5", equal, "s"


def against_pml(
    name: str, data: Data, suite: ProcessPoolExecutor, pml: ProcessPoolExecutor, rounds: int, bar: str
) -> Row:
    """Compare the metrics with PML's AccuracyCalculator, which searches with faiss."""
    ours, theirs = suite.submit(_score, data).result(), pml.submit(_score_by_pml, data).result()
    difference = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
    assert difference < TOLERANCE, f"{name}: our scores differ from PML's by {difference}"
    seconds = seconds_in_turn(
        lambda: suite.submit(_score, data).result(), lambda: pml.submit(_score_by_pml, data).result(), rounds
    )
    equal = f"three scores differ by at most {difference:.0e}. {pml.submit(_faiss_products).result()}"
    return f"retrieval, {name} / PML", *seconds, bar, equal, "s"


def peak() -> Row:
    """Measure the largest memory of a process that computes the metrics of SOP's size, with torch and all data."""
    printed = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True).stdout
    return "retrieval, SOP: peak memory", [float(printed)], [float("nan")], "at most 2048 MiB", "no peer", "MiB"


def _score(data: Data) -> Scores:
    found = retrieval_scores(*data())
    return found.precision_at_1, found.r_precision, found.map_at_r


def _score_by_pml(data: Data) -> Scores:
    include = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
    calculator = AccuracyCalculator(include=include, k="max_bin_count", device=torch.device("cpu"))
    found = calculator.get_accuracy(*data())
    first, r_precision, map_at_r = (float(found[key]) for key in include)
    return first, r_precision, map_at_r


def _multiply(data: Data) -> None:
    embeddings = data()[0]
    for part in embeddings.split(max(neighbours.LEAST_ROWS, neighbours.CHUNK_ELEMENTS // len(embeddings))):
        part @ embeddings.T


def _faiss_products() -> str:
    """The library and kernels by which faiss multiplies in this process. An older library can miss new processors."""
    import faiss

    for library in threadpool_info():
        if "faiss" in library["filepath"] and library["user_api"] == "blas":
            kernels = f"{library['internal_api']} {library['version']} with kernels for {library['architecture']}"
            return f"faiss {faiss.__version__} multiplies by {kernels}"
    return f"faiss {faiss.__version__} does not show by what it multiplies"


def _difference_from_definition(data: Data) -> float:
    """Difference from MAP@R by a full sort in float64, for the first queries."""
    embeddings, labels = data()
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
