"""Datasets by name, and what their publishers said about them."""

from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.listing import DataError
from tests.support.image_folders import assert_said, data_request


@pytest.mark.parametrize("name", ["folder", "cub200", "features"])
def test_a_dataset_without_a_place(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_dataset(data_request(None, tmp_path, name))
    assert_said(caught, name, "--data")


def test_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_dataset(data_request(tmp_path, tmp_path, "cub"))
    assert_said(caught, "unknown dataset 'cub'", *DATASETS)


def test_published_counts_add_up() -> None:
    """The numbers of the specification, section 1, each in two ways."""
    counts = {name: entry.publication for name, entry in DATASETS.items() if entry.publication}
    assert set(counts) == {"cub200", "cars196", "sop", "inshop"}
    of = {name: (c.classes, c.images, c.trainval_classes) for name, c in counts.items()}
    assert of["cub200"] == (200, 5_864 + 5_924, 100)
    assert of["cars196"] == (196, 8_054 + 8_131, 98)
    assert of["sop"] == (11_318 + 11_316, 59_551 + 60_502, 11_318)
    assert of["inshop"] == (3_997 + 3_985, 25_882 + 14_218 + 12_612, 3_997)
    assert (counts["cub200"].trainval_images, counts["cars196"].trainval_images) == (5_864, 8_054)
    assert (counts["inshop"].queries, counts["inshop"].gallery) == (14_218, 12_612)


def test_glyphs_need_no_place(tmp_path: Path) -> None:
    one, again = (open_dataset(data_request(None, tmp_path, "glyphs")) for _ in range(2))
    assert one.fingerprint == again.fingerprint
    assert (again.images.image(7) == one.images.image(7)).all()
    assert one.images.images.channels == 1
    assert one.images.image(0).shape == (32, 32, 1)
    assert one.n_classes == len(np.unique(one.images.labels)) >= 200
