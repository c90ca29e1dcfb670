"""The embedded dataset `glyphs`: its form, its content, and that raw pixels do not solve it."""

import numpy as np
import pytest
import torch

from protocols.datasets.dataset import DataRequest
from protocols.datasets.glyphs import ALPHABET, SIDE, open_glyphs
from protocols.metrics.retrieval import normalized, query_scores
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return open_glyphs(DataRequest(DataChoice(name="glyphs"), ImageSettings(), tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def pictures(dataset):
    images = dataset.images
    return np.stack([images.image(row)[..., 0] for row in range(len(images))])


def test_images_labels_and_names_have_the_documented_form(dataset, pictures):
    assert pictures.shape == (len(dataset.labels), SIDE, SIDE)
    assert dataset.labels.dtype == np.int64
    assert (np.unique(dataset.labels) == np.arange(len(ALPHABET))).all()
    assert (np.diff(dataset.labels) >= 0).all()
    assert len(set(dataset.names)) == len(dataset.names) == len(pictures)
    assert dataset.class_names[ALPHABET.index("A")] == "U+0041 LATIN CAPITAL LETTER A"
    assert "U+0041/DejaVuSans-Bold" in dataset.names
    for name, label in zip(dataset.names, dataset.labels, strict=True):
        assert name.split("/")[0] == dataset.class_names[label].split()[0]


def test_the_pictures_are_those_of_the_kept_records(dataset):
    assert dataset.fingerprint == "163e613bf8e759390385b98fd39e4a02"


def test_raw_pixels_do_not_solve_it(dataset, pictures):
    rows = torch.from_numpy(pictures.reshape(len(pictures), -1)).float()
    scores = query_scores(normalized(rows), torch.from_numpy(dataset.labels)).mean()
    assert 0.01 < scores.map_at_r < 0.15
    assert scores.precision_at_1 < 0.5
