"""Datasets of any layout: what they must hold, broken images, fingerprints."""

import os
import shutil

import numpy as np
import pytest

from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.listing import DataError
from results.spec.conditions import ImageSettings
from tests.support.image_folders import data_request, make_folder, paint, refused


def test_a_single_class(tmp_path):
    with refused("folder", "only one class found; check that --data names the folder that holds all"):
        open_dataset(data_request(make_folder(tmp_path / "data", 1), tmp_path / "cache"))


@pytest.mark.parametrize(("left", "message"), [(0, "has no image"), (1, "has only one image")])
def test_a_class_that_cannot_be_scored(folder, tmp_path, left, message):
    for i in range(left, 2):
        (folder / "class_5" / f"{i}.png").unlink()
    with refused("folder: class 'class_5'", message, "give it at least two, or remove the class"):
        open_dataset(data_request(folder, tmp_path / "cache"))
    assert not (tmp_path / "cache").exists(), "decoded before the classes were checked"


def test_a_name_with_control_characters_is_refused(folder, tmp_path):
    """In a terminal and on pages they are commands."""
    (folder / "class_5").rename(folder / "class_\x1b[31m5")
    with refused(r"folder: the name 'class_\x1b[31m5' is not UTF-8 or has control characters; rename it"):
        open_dataset(data_request(folder, tmp_path / "cache"))


# Fingerprints


def test_the_fingerprint_does_not_depend_on_place_time_or_size(folder, tmp_path):
    first = open_dataset(data_request(folder, tmp_path / "cache"))
    assert open_dataset(data_request(folder, tmp_path / "cache")).fingerprint == first.fingerprint
    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(folder, moved)
    assert open_dataset(data_request(moved, tmp_path / "cache")).fingerprint == first.fingerprint
    for path in folder.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))
    assert open_dataset(data_request(folder, tmp_path / "cache")).fingerprint == first.fingerprint
    assert open_dataset(data_request(folder, tmp_path / "other")).fingerprint == first.fingerprint
    # How large images are made is in the training's specification.
    small = ImageSettings(resize=6, crop=6)
    assert open_dataset(data_request(folder, tmp_path / "cache", images=small)).fingerprint == first.fingerprint


def _touch(path):
    paint(path, 12345)
    os.utime(path, ns=(10**18, 10**18))


CHANGES = {
    "first file": lambda root: _touch(root / "class_0" / "0.png"),
    "file name": lambda root: (root / "class_4" / "1.png").rename(root / "class_4" / "2.png"),
    "class name": lambda root: (root / "class_4").rename(root / "class_4b"),
    "one more": lambda root: paint(root / "class_4" / "2.png", 9),
    "two swapped": lambda root: _swap(root / "class_1" / "0.png", root / "class_1" / "1.png"),
    "another class": lambda root: (root / "class_1" / "0.png").rename(root / "class_2" / "3.png"),
}


def _swap(one, other):
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)
    os.utime(one, ns=(10**18, 10**18))


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with(change, tmp_path):
    root = make_folder(tmp_path / "photos", per_class=3)
    for c in range(8):
        (root / f"class_{c}" / "2.png").rename(root / f"class_{c}" / "9.png")
    before = open_dataset(data_request(root, tmp_path / "cache"))
    CHANGES[change](root)
    assert open_dataset(data_request(root, tmp_path / "cache")).fingerprint != before.fingerprint


# Small classes


def uneven(root):
    """Ten classes of three images; of class_2 only one is left, of class_5 two."""
    make_folder(root, classes=10, per_class=3)
    for name in ("class_2/1.png", "class_2/2.png", "class_5/2.png"):
        (root / name).unlink()
    return root


def test_small_classes_are_left_out_by_name(tmp_path):
    root = uneven(tmp_path / "photos")
    dataset = open_dataset(data_request(root, tmp_path / "cache", min_images=3))
    assert dataset.class_names == tuple(f"class_{c}" for c in (0, 1, 3, 4, 6, 7, 8, 9))
    assert [dataset.class_names[label] for label in dataset.images.labels] == [n.split("/")[0] for n in dataset.names]
    assert dataset.trainval_classes == 4
    assert dataset.left_out == ("2 classes with fewer than 3 images (class_2, class_5)",)
    # What is trained differs, so its name does.
    other = open_dataset(data_request(root, tmp_path / "cache", min_images=2))
    assert other.n_classes == 9
    assert other.fingerprint != dataset.fingerprint


def test_images_that_cannot_be_decoded_do_not_count(tmp_path):
    root = uneven(tmp_path / "photos")
    (root / "class_5" / "0.png").write_bytes(b"no image")
    dataset = open_dataset(data_request(root, tmp_path / "cache", skip_broken_images=True, min_images=2))
    assert "class_5" not in dataset.class_names
    assert dataset.left_out[1:] == (
        "1 image that cannot be decoded (class_5/0.png)",
        "1 class with fewer than 2 images (class_5)",
    )


def test_a_run_names_the_first_fault_and_counts_the_others(tmp_path):
    root = uneven(tmp_path / "photos")
    (root / "class_8" / "empty").mkdir()
    (root / "class_9x").mkdir()
    with pytest.raises(
        DataError,
        match=r"only one image; .* .--min-images 2, in a run --set dataset.min_images=2. .and 1 more;",
    ) as caught:
        open_dataset(data_request(root, tmp_path / "cache"))
    assert ["class_2" in caught.value.faults[0], "class_9x" in caught.value.faults[1]] == [True, True]


@pytest.mark.parametrize("name", ["folder", "cub200", "features"])
def test_a_dataset_without_a_place(name, tmp_path):
    with refused(name, "--data"):
        open_dataset(data_request(None, tmp_path, name))


def test_an_unknown_name(tmp_path):
    with refused("unknown dataset 'cub'", *DATASETS):
        open_dataset(data_request(tmp_path, tmp_path, "cub"))


def test_published_counts_add_up():
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


def test_glyphs_need_no_place(tmp_path):
    one, again = (open_dataset(data_request(None, tmp_path, "glyphs")) for _ in range(2))
    assert one.fingerprint == again.fingerprint
    assert (again.images.image(7) == one.images.image(7)).all()
    assert one.images.images.channels == 1
    assert one.images.image(0).shape == (32, 32, 1)
    assert one.n_classes == len(np.unique(one.images.labels)) >= 200
