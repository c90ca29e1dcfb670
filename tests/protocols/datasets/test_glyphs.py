"""The embedded dataset `glyphs`: its form, its repeatability, and that raw pixels do not solve it."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from protocols.datasets.glyphs import ALPHABET, FACES, SIDE, Glyphs, render

MIN_FACES = 12


def _raw_pixel_scores(dataset: Glyphs) -> tuple[float, float]:
    """Return MAP@R and precision at 1 of the raw pixels' cosine similarity."""
    vectors = dataset.images.reshape(len(dataset.images), -1).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -np.inf)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : len(FACES) - 1]
    relevant = np.bincount(dataset.labels)[dataset.labels] - 1
    hits = dataset.labels[nearest] == dataset.labels[:, None]
    ranks = np.arange(1, nearest.shape[1] + 1)
    counted = np.where(ranks <= relevant[:, None], hits * hits.cumsum(axis=1) / ranks, 0)
    return float((counted.sum(axis=1) / relevant).mean()), float(hits[:, 0].mean())


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
    map_at_r, precision = _raw_pixel_scores(dataset)
    assert 0.01 < map_at_r < 0.15
    assert precision < 0.5


def test_rendering_is_the_same_in_another_process(dataset: Glyphs) -> None:
    code = (
        "import hashlib; from protocols.datasets.glyphs import render; g = render(); "
        "print(hashlib.sha256(g.images.tobytes() + g.labels.tobytes() + repr((g.class_names, g.image_names)).encode())"
        ".hexdigest())"
    )
    again = render()
    names = repr((dataset.class_names, dataset.image_names)).encode()
    here = hashlib.sha256(dataset.images.tobytes() + dataset.labels.tobytes() + names).hexdigest()
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert (again.images == dataset.images).all()
    assert here == there
