"""Training batches from packed images, beside decoding JPEGs again; `images.py` measures whole folds side by side."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from protocols.images.crops import training_batch
from protocols.images.decoding import decode
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from results.spec.training_spec import ImageSettings
from tests.benchmarks.bench_rows import BenchRow, seconds_in_turn
from tests.benchmarks.images import BATCH, made_up_images


def measure(rounds: int) -> list[BenchRow]:
    """Measure batches of 32 random crops to 227 pixels, from images of CUB's size.

    Args:
        rounds: Number of rounds.
    """
    settings, rows = ImageSettings(), np.arange(BATCH)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made_up_images(folder, BATCH)
        names = [f"{number}.jpg" for number in range(BATCH)]
        packing = pack_files(folder, names, settings.resize, folder / "packed")

        class Decoded(LabelledImages):
            def image(self, index: int) -> np.ndarray:
                return decode(folder / names[index], settings.resize)

        packed, decoded = (kind(packing.images, rows, rows) for kind in (LabelledImages, Decoded))
        batches = [
            training_batch(images, rows, settings, torch.Generator().manual_seed(0)) for images in (packed, decoded)
        ]
        torch.testing.assert_close(batches[0], batches[1])
        generator = torch.Generator().manual_seed(0)
        seconds = seconds_in_turn(
            lambda: training_batch(packed, rows, settings, generator),
            lambda: training_batch(decoded, rows, settings, generator),
            rounds,
        )
    name = f"batch of {BATCH} crops from packed images / from JPEGs"
    return [BenchRow(name, *seconds, "at least 1", "equal crops with equal random numbers")]
