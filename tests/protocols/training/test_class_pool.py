"""Embeddings of a few images per class, for losses that choose among samples."""

import numpy as np
import pytest
import torch

from losses.schedule import SamplePool
from protocols.images.packed_images import LabelledImages
from protocols.images.samples import BatchSource
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import IMAGES, pattern_dataset

# No crop and no flip: every image has one embedding.
WHOLE = IMAGES.model_copy(update={"area": (1.0, 1.0), "ratio": (1.0, 1.0), "flip": False})


@pytest.fixture
def images(tmp_path):
    dataset = pattern_dataset(tmp_path, classes=8, per_class=4)
    # Classes of 4, 4 and 3 images, not in order.
    return LabelledImages(np.array([9, 0, 4, 1, 5, 2, 6, 3, 7, 8, 10]), np.zeros(11, np.int64), dataset.images.images)


TARGETS = np.array([2, 0, 1, 0, 1, 0, 1, 0, 1, 2, 2])


def _pool(images, seed=0):
    torch.manual_seed(0)
    model = EmbeddingModel(TrunkSpec(name="small_conv", weights="random"), 5)
    source, crops = BatchSource(images, WHOLE, torch.device("cpu")), torch.Generator().manual_seed(seed)
    return SamplePool(model, lambda rows: source.training_batch(rows, crops), TARGETS, seed)


def _spy(monkeypatch):
    drawn = []
    training_batch = BatchSource.training_batch

    def spy(source, rows, generator):
        drawn.extend(rows.tolist())
        return training_batch(source, rows, generator)

    monkeypatch.setattr(BatchSource, "training_batch", spy)
    return drawn


def test_embeddings_come_by_class(images, monkeypatch):
    drawn = _spy(monkeypatch)
    pool = _pool(images)
    embeddings = pool(3)
    assert embeddings.shape == (3, 3, 5)
    assert not embeddings.requires_grad
    assert TARGETS[drawn].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    pixels = torch.stack([torch.from_numpy(images.image(row).transpose(2, 0, 1).copy()) for row in drawn])
    with torch.no_grad():
        expected = pool.model.eval()(pixels)
    assert torch.allclose(embeddings.reshape(9, 5), expected, atol=1e-6)


def test_a_class_is_used_up_before_an_image_comes_again(images, monkeypatch):
    drawn = _spy(monkeypatch)
    pool = _pool(images)
    for _ in range(12):
        pool(2)
    by_class = {target: [row for row in drawn if TARGETS[row] == target] for target in range(3)}
    for target, size in ((0, 4), (1, 4), (2, 3)):
        rows = by_class[target]
        assert len(rows) == 24
        passes = [rows[first : first + size] for first in range(0, 24, size)]
        assert all(sorted(one) == np.flatnonzero(target == TARGETS).tolist() for one in passes)
        assert len({tuple(one) for one in passes}) > 1, "not reshuffled"


def test_the_seed_decides_and_global_random_numbers_do_not(images):
    one, other = _pool(images), _pool(images, seed=1)
    again = _pool(images)
    state = torch.get_rng_state()
    first = one(2)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert torch.equal(again(2), first)
    assert not torch.equal(other(2), first)
