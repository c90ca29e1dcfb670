"""Retrieval metrics beside PML's AccuracyCalculator with faiss, on 2 threads, each in a process of its own."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor

from protocols.metrics.retrieval import normalized, retrieval_scores
from reproduce.execution.devices import prepare_process
from tests.benchmarks.bench_record import BenchRow, seconds_in_turn

Data = Callable[[], tuple[Tensor, Tensor]]
"""Embeddings and their labels. Each process makes them itself, once."""

THREADS = 2
TOLERANCE = 1e-4
"""Allowed difference of scores: distances round to float32 in other ways, and near images then change places."""

_PEAK = """
from reproduce.execution.devices import prepare_process
from tests.benchmarks.retrieval_peers import THREADS, retrieval_scores, sop
from tests.support.process_memory import process_memory
prepare_process("cpu", THREADS)
retrieval_scores(*sop())
print(process_memory("VmHWM"))
"""


def measure(rounds: int) -> list[BenchRow]:
    """Measure the search at CUB's size, and the largest memory of a process that searches at SOP's size."""
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, context, prepare_process, ("cpu", THREADS)) as suite,
        ProcessPoolExecutor(1, context, _prepare_pml) as pml,
    ):
        found = suite.submit(scores, cub).result(), pml.submit(scores_by_pml, cub).result()
        difference = max(abs(ours - theirs) for ours, theirs in zip(*found, strict=True))
        assert difference < TOLERANCE, f"our scores differ from PML's by {difference}"
        ours, theirs = seconds_in_turn(
            lambda: suite.submit(scores, cub).result(), lambda: pml.submit(scores_by_pml, cub).result(), 4 * rounds
        )
    peak = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True).stdout
    return [
        BenchRow(name="retrieval, CUB, 5,924 x 512 / PML with faiss", ours=tuple(ours), peer=tuple(theirs), bar=1),
        BenchRow(name="retrieval, SOP, 60,502 x 512: memory", ours=(float(peak),), bar=2048, unit="MiB"),
    ]


def _prepare_pml() -> None:
    import faiss

    torch.set_num_threads(THREADS)
    faiss.omp_set_num_threads(THREADS)


@cache
def cub() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of CUB's test set: 5,924 images of 100 classes."""
    return _embeddings(torch.arange(5924) % 100)


@cache
def sop() -> tuple[Tensor, Tensor]:
    """Embeddings of the size of SOP's test set: 60,502 images of 11,316 classes."""
    return _embeddings(torch.arange(60502) % 11316)


def _embeddings(labels: Tensor) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    centres = normalized(torch.randn(int(labels.max()) + 1, 512, generator=generator))
    return normalized(centres[labels] + 0.1 * torch.randn(len(labels), 512, generator=generator)), labels


def scores(data: Data) -> tuple[float, ...]:
    """Precision@1, R-precision and MAP@R by the suite."""
    found = retrieval_scores(*data())
    return found.precision_at_1, found.r_precision, found.map_at_r


def scores_by_pml(data: Data) -> tuple[float, ...]:
    """The same scores by PML."""
    include = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
    calculator = AccuracyCalculator(include=include, k="max_bin_count", device=torch.device("cpu"))
    found = calculator.get_accuracy(*data())
    return tuple(float(found[key]) for key in include)
