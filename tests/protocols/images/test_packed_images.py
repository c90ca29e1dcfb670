"""The memory map and selections of it."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from protocols.images.packed_images import LabelledImages, PackedImages
from tests.support.packs import pack_arrays


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (12, 5, 4, 3), dtype=np.uint8)


@pytest.fixture
def images(tmp_path: Path, pixels: np.ndarray) -> PackedImages:
    return pack_arrays(pixels, tmp_path / "pack")


def test_images_are_read_only_views_of_the_map_and_pickles_are_the_path_alone(
    images: PackedImages, pixels: np.ndarray
) -> None:
    assert len(images) == 12
    image = images.image(7)
    assert isinstance(images._pixels.base, np.memmap)
    assert np.shares_memory(image, images._pixels)
    with pytest.raises(ValueError, match="read-only"):
        image[0, 0, 0] = 1
    pickled = pickle.dumps(images)
    assert len(pickled) < 1000, "the pixels travel along"
    copy = pickle.loads(pickled)
    assert copy == images
    assert (copy.image(7) == pixels[7]).all()


def test_a_selection_gives_its_own_images_in_order_and_no_others(images: PackedImages, pixels: np.ndarray) -> None:
    selection = LabelledImages(np.array([9, 2, 4, 7]), np.array([5, 3, 5, 8]), images)
    for index, row in enumerate([9, 2, 4, 7]):
        assert (selection.image(index) == pixels[row]).all()
    picked = selection.of_classes((8, 5, 6))
    assert (picked.labels.tolist(), picked.rows.tolist()) == ([5, 5, 8], [9, 4, 7])
    assert (picked.image(1) == pixels[4]).all()
    with pytest.raises(IndexError):
        picked.image(3)
    assert len(selection.of_classes(())) == 0
