"""Training batches: the same pixels whichever way they are made, and the reference's distribution."""

import numpy as np
import pytest
import torch

from protocols.images.packed_images import LabelledImages, PackedImages
from protocols.images.samples import BatchSource
from results.spec.conditions import ImageSettings
from tests.support.packs import pack_arrays, training_batch

CPU = torch.device("cpu")
ROWS = [np.array(rows) for rows in ([2, 0, 5, 5], [1, 3, 4, 0], [5, 1, 2, 3], [4, 4, 0, 2], [3, 2, 1, 0])]
SETTINGS = ImageSettings(crop=24)


@pytest.fixture(params=[1, 3], ids=["grey", "colour"])
def images(tmp_path, request):
    pixels = np.random.default_rng(1).integers(0, 256, (9, 61, 47, request.param), dtype=np.uint8)
    packed = pack_arrays(pixels, tmp_path / "pack")
    # Some images of the pack, not in its order.
    return LabelledImages(np.array([7, 2, 3, 8, 0, 5]), np.zeros(6, dtype=np.int64), packed)


def _reference(images):
    generator = torch.Generator().manual_seed(4)
    return [training_batch(images, rows, SETTINGS, generator) for rows in ROWS]


@pytest.mark.parametrize("resident", [None, True, False])
def test_every_way_gives_the_same_bits(images, resident):
    source, generator = BatchSource(images, SETTINGS, CPU, resident=resident), torch.Generator().manual_seed(4)
    for rows, expected in zip(ROWS, _reference(images), strict=True):
        assert torch.equal(source.training_batch(rows, generator), expected)


def test_resident_images_are_read_once(images, monkeypatch):
    resident = BatchSource(images, SETTINGS, CPU, resident=True)
    expected = _reference(images)

    def gone(*_):
        raise AssertionError("pixels were sent again")

    monkeypatch.setattr(PackedImages, "image", gone)
    generator = torch.Generator().manual_seed(4)
    assert all(torch.equal(resident.training_batch(r, generator), e) for r, e in zip(ROWS, expected, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("resident", [None, False])
def test_a_gpu_sees_the_same_bits(images, resident):
    gpu = torch.device("cuda")
    source, generator = BatchSource(images, SETTINGS, gpu, resident=resident), torch.Generator().manual_seed(4)
    for rows, expected in zip(ROWS, _reference(images), strict=True):
        crops = source.training_batch(rows, generator)
        assert crops.device.type == "cuda"
        assert torch.equal(crops.cpu(), expected)
