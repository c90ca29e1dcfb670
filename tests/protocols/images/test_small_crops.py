"""Crops of small images, a batch at once: equal to Pillow's, and used where they fit only."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from protocols.images.batch_source import SMALL_BATCHES, BatchSource
from protocols.images.crops import cut_crops, random_cuts
from protocols.images.device_crops import EXACT_SHRINK
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_arrays
from protocols.images.small_crops import SmallCrops, fits
from results.spec.training_spec import ImageSettings

CPU = torch.device("cpu")


def noise(folder: Path, number: int, height: int, width: int, channels: int, seed: int = 0) -> LabelledImages:
    pixels = np.random.default_rng(seed).integers(0, 256, (number, height, width, channels), dtype=np.uint8)
    rows = np.arange(number)
    return LabelledImages(pack_arrays(pixels, folder / "pack").images, rows, rows)


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    channels=st.sampled_from([1, 3]),
    side=st.integers(1, 60),
    least=st.sampled_from([0.02, 0.2, 0.9]),
    seed=st.integers(0, 1000),
)
def test_the_crops_are_those_of_pillow(height, width, channels, side, least, seed):
    assume(max(height, width) <= EXACT_SHRINK * side)
    with tempfile.TemporaryDirectory() as folder:
        images = noise(Path(folder), 6, height, width, channels, seed)
        rows = np.random.default_rng(seed).integers(0, 6, 9)
        ranges = ImageSettings(resize=None, crop=side, area=(least, 1.0), ratio=(0.3, 3.0))
        cuts = random_cuts(images, rows, ranges, torch.Generator().manual_seed(seed))
        crops = SmallCrops(images, side)(rows, cuts)
        assert crops.dtype == torch.uint8
        assert torch.equal(crops, cut_crops(images, rows, cuts, side))


def test_images_of_different_sizes_are_cropped_together(tmp_path):
    parts = [noise(tmp_path / str(size), 2, size, size + 3, 1, size) for size in (7, 20, 12)]

    class Mixed:
        channels = 1

        def image(self, index: int) -> np.ndarray:
            return parts[index // 2].image(index % 2)

        def shape_of(self, index: int) -> tuple[int, int, int]:
            return parts[index // 2].images.shape_of(index % 2)

        def shapes_of(self, indices: np.ndarray) -> list[tuple[int, int, int]]:
            return [self.shape_of(index) for index in indices.tolist()]

    rows = np.arange(6)
    images = LabelledImages(Mixed(), rows, rows)  # type: ignore[arg-type]
    cuts = random_cuts(images, rows, ImageSettings(resize=None, crop=10), torch.Generator().manual_seed(1))
    assert torch.equal(SmallCrops(images, 10)(rows, cuts), cut_crops(images, rows, cuts, 10))


@pytest.mark.parametrize(
    ("side", "crop", "channels", "small"),
    [
        (32, 32, 1, True),
        (32, 32, 3, True),
        (48, 32, 1, True),
        (64, 64, 1, True),
        (31, 1, 1, True),
        (32, 1, 1, False),
        (48, 48, 3, False),
        (105, 64, 1, False),
        (256, 96, 1, False),
    ],
)
def test_only_small_images_fit(tmp_path, side, crop, channels, small):
    assert fits(noise(tmp_path, 2, side, side, channels), crop) == small


def test_a_source_of_batches_crops_some_batches_at_once_on_a_cpu(tmp_path, monkeypatch):
    images = noise(tmp_path, 8, 20, 20, 1)
    ranges = ImageSettings(resize=None, crop=16)
    rows = [np.roll(np.arange(8), number)[: 8 - number % 3] for number in range(SMALL_BATCHES + 2)]
    used = []
    call = SmallCrops.__call__
    monkeypatch.setattr(SmallCrops, "__call__", lambda self, *of: (used.append(1), call(self, *of))[1])
    batches = list(BatchSource(images, ranges, CPU).training_batches(iter(rows), torch.Generator().manual_seed(0)))
    assert len(used) == 2
    assert all(np.array_equal(given, expected) for (given, _), expected in zip(batches, rows, strict=True))
    monkeypatch.setattr("protocols.images.batch_source.fits", lambda *_: False)
    by_pillow = list(BatchSource(images, ranges, CPU).training_batches(iter(rows), torch.Generator().manual_seed(0)))
    assert len(used) == 2
    assert all(torch.equal(ours[1], theirs[1]) for ours, theirs in zip(batches, by_pillow, strict=True))
