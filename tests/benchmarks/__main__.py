"""`make bench`: what the suite's own code gains over the usual way, as ratios measured side by side in one run.

Ratios and not seconds, since they carry over from machine to machine; both sides of a ratio alternate, and the median
of the rounds is shown. Nothing here decides a test.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from rich.console import Console
from rich.table import Table

from protocols.images.crops import training_batch
from protocols.images.decoding import decode
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from protocols.metrics.retrieval import normalized, retrieval_scores
from results.training_spec import ImageSettings
from tests.benchmarks.loss_steps import STEPS

ROUNDS = 5


STEP_ROUNDS = 60


def ratio(ours: Callable[[], object], usual: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Median seconds of both and the median ratio usual / ours over alternating rounds, after one round to warm up."""
    pairs = []
    for round_number in range(rounds + 1):
        seconds = []
        for work in (ours, usual):
            started = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - started)
        if round_number:
            pairs.append(seconds)
    mine, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    return mine, theirs, statistics.median(pair[1] / pair[0] for pair in pairs)


def training_batches(folder: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """32 random crops to 227 pixels: from packed images, and decoding 500 x 375 JPEGs (CUB's size) again."""
    noise = np.random.default_rng(0)
    names = []
    for number in range(32):
        coarse = Image.fromarray(noise.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        coarse.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg", quality=92)
        names.append(f"{number}.jpg")
    settings = ImageSettings()
    packing = pack_files(folder, names, settings.resize, folder / "packed")
    rows = np.arange(32)
    packed = LabelledImages(packing.images, rows, rows)

    class Decoded(LabelledImages):
        def image(self, index: int) -> np.ndarray:
            return decode(folder / names[index], settings.resize)

    decoded = Decoded(packing.images, rows, rows)
    generator = torch.Generator().manual_seed(0)
    return (
        lambda: training_batch(packed, rows, settings, generator),
        lambda: training_batch(decoded, rows, settings, generator),
    )


def metrics() -> tuple[Callable[[], object], Callable[[], object]]:
    """P@1, R-precision and MAP@R of 3,000 embeddings of 50 classes: ours, and pytorch-metric-learning's."""
    generator = torch.Generator().manual_seed(0)
    embeddings = normalized(torch.randn(3000, 128, generator=generator))
    labels = torch.arange(3000) % 50
    calculator = AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"), k="max_bin_count"
    )
    return lambda: retrieval_scores(embeddings, labels), lambda: calculator.get_accuracy(embeddings, labels)


def main() -> None:
    """Prints the ratios."""
    torch.set_num_threads(1)
    table = Table(title=f"median of {ROUNDS} rounds ({STEP_ROUNDS} for steps), one thread")
    for name in ("what", "ours", "usual", "usual / ours"):
        table.add_column(name)
    with tempfile.TemporaryDirectory() as folder:
        for what, (ours, usual) in (
            ("training batch: packed images / JPEGs decoded again", training_batches(Path(folder))),
            ("retrieval metrics / pytorch-metric-learning", metrics()),
        ):
            mine, theirs, gain = ratio(ours, usual)
            table.add_row(what, f"{1000 * mine:.1f} ms", f"{1000 * theirs:.1f} ms", f"{gain:.1f}")
    for what, made in STEPS.items():
        mine, theirs, gain = ratio(*made(), STEP_ROUNDS)
        table.add_row(what, f"{1000 * mine:.1f} ms", f"{1000 * theirs:.1f} ms", f"{gain:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
