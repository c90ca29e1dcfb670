"""Leaving out small classes, and all faults of a dataset at once."""

from pathlib import Path

import pytest

from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.listing import DataError
from tests.support.image_folders import data_request, make_folder


def uneven(root: Path) -> Path:
    """Ten classes of three images; of class_2 only one is left, of class_5 two."""
    make_folder(root, classes=10, per_class=3)
    for name in ("class_2/1.png", "class_2/2.png", "class_5/2.png"):
        (root / name).unlink()
    return root


def test_small_classes_are_left_out_by_name(tmp_path: Path) -> None:
    root = uneven(tmp_path / "photos")
    dataset = open_dataset(data_request(root, tmp_path / "cache", min_images=3))
    assert dataset.class_names == tuple(f"class_{c}" for c in (0, 1, 3, 4, 6, 7, 8, 9))
    assert [dataset.class_names[label] for label in dataset.images.labels] == [n.split("/")[0] for n in dataset.names]
    assert dataset.trainval_classes == 4
    assert dataset.left_out == ("2 class(es) with fewer than 3 images (class_2, class_5)",)
    # What is trained differs, so its name does.
    other = open_dataset(data_request(root, tmp_path / "cache", min_images=2))
    assert other.n_classes == 9
    assert other.fingerprint != dataset.fingerprint


def test_images_that_cannot_be_decoded_do_not_count(tmp_path: Path) -> None:
    root = uneven(tmp_path / "photos")
    (root / "class_5" / "0.png").write_bytes(b"no image")
    dataset = open_dataset(data_request(root, tmp_path / "cache", skip_broken_images=True, min_images=2))
    assert "class_5" not in dataset.class_names
    assert dataset.left_out[1:] == (
        "1 image(s) that cannot be decoded (class_5/0.png)",
        "1 class(es) with fewer than 2 images (class_5)",
    )


def test_a_run_names_the_first_fault_and_counts_the_others(tmp_path: Path) -> None:
    root = uneven(tmp_path / "photos")
    (root / "class_8" / "empty").mkdir()
    (root / "class_9x").mkdir()
    with pytest.raises(
        DataError,
        match=r"class 'class_2' has only one image; .* dataset.min_images=2, in checks --min-images 2. .and 1 more;",
    ) as caught:
        open_dataset(data_request(root, tmp_path / "cache"))
    assert ["class_2" in caught.value.faults[0], "class_9x" in caught.value.faults[1]] == [True, True]
