"""The embedded dataset `glyphs`: its form, its repeatability, and that raw pixels do not solve it."""

import numpy as np
import pytest
import torch

from protocols.datasets.glyphs import ALPHABET, FACES, SIDE, Glyphs, render
from protocols.metrics.retrieval import normalized, query_scores

MIN_FACES = 12


@pytest.fixture(scope="module")
def dataset() -> Glyphs:
    return render()


def test_images_labels_and_names_have_the_documented_form(dataset: Glyphs) -> None:
    assert dataset.images.shape == (len(dataset.labels), SIDE, SIDE)
    assert dataset.images.dtype == np.uint8
    assert dataset.labels.dtype == np.int64
    assert (np.unique(dataset.labels) == np.arange(len(ALPHABET))).all()
    assert (np.diff(dataset.labels) >= 0).all()
    assert len(set(dataset.image_names)) == len(dataset.image_names) == len(dataset.images)
    assert dataset.class_names[ALPHABET.index("A")] == "U+0041 LATIN CAPITAL LETTER A"
    assert "U+0041/DejaVuSans-Bold" in dataset.image_names
    for name, label in zip(dataset.image_names, dataset.labels, strict=True):
        assert name.split("/")[0] == dataset.class_names[label].split()[0]


def test_there_are_at_least_200_classes_of_at_least_twelve_typefaces(dataset: Glyphs) -> None:
    counts = np.bincount(dataset.labels)
    assert len(counts) >= 200
    assert counts.min() >= MIN_FACES
    assert counts.max() == len(FACES) == 16


def test_every_image_holds_a_whole_glyph(dataset: Glyphs) -> None:
    border = np.concatenate([dataset.images[:, [0, -1], :], dataset.images[:, :, [0, -1]].transpose(0, 2, 1)], axis=1)
    assert border.max() <= 8, "ink cut off at the frame"
    assert (dataset.images.reshape(len(dataset.images), -1).max(axis=1) >= 128).all(), "a nearly empty image"
    assert len({image.tobytes() for image in dataset.images}) == len(dataset.images)


def test_both_halves_of_the_classes_hold_every_script(dataset: Glyphs) -> None:
    half = len(dataset.class_names) // 2
    for names in (dataset.class_names[:half], dataset.class_names[half:]):
        scripts = {name.split()[1] for name in names}
        assert {"DIGIT", "LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN"} <= scripts


def test_raw_pixels_do_not_solve_it(dataset: Glyphs) -> None:
    rows = torch.from_numpy(dataset.images.reshape(len(dataset.images), -1)).float()
    scores = query_scores(normalized(rows), torch.from_numpy(dataset.labels)).mean()
    assert 0.01 < scores.map_at_r < 0.15
    assert scores.precision_at_1 < 0.5
