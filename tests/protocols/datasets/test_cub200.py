"""CUB-200-2011 in its official layout, and what is said about malformed copies."""

from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.cub200 import list_cub200
from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import open_dataset
from protocols.images.decoding import decode
from tests.support.image_folders import BIRDS, assert_said, data_request


@pytest.mark.parametrize("above", [False, True])
def test_cub_in_its_official_layout(cub: Path, tmp_path: Path, above: bool) -> None:
    dataset = open_dataset(data_request(cub.parent if above else cub, tmp_path / "cache", "cub200"))
    assert dataset.name == "cub200"
    assert dataset.class_names == BIRDS
    assert dataset.images.labels.tolist() == np.arange(8).repeat(2).tolist()
    first = decode(cub / "images" / "001.Bird_0" / "Bird_0_0000.jpg", 8)
    assert (dataset.images.image(0) == first).all()


def test_classes_are_ranked_by_number_and_images_in_the_order_of_the_list(cub: Path) -> None:
    # Ids as text would put 10 before 9.
    (cub / "classes.txt").write_text("".join(f"{12 - c} {name}\n" for c, name in enumerate(BIRDS)))
    labels = [f"{number} {12 - (number - 1) // 2}" for number in range(1, 17)]
    (cub / "image_class_labels.txt").write_text("\n".join(labels))
    lines = (cub / "images.txt").read_text().splitlines()
    (cub / "images.txt").write_text("\n".join(lines[::-1]))
    listing = list_cub200(cub)
    assert listing.class_names == BIRDS[::-1]
    assert listing.names == tuple(line.split()[1] for line in lines[::-1])
    assert listing.labels.tolist() == np.arange(8).repeat(2).tolist()


def test_the_same_folder_by_another_name_is_not_packed_again(
    cub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_dataset(data_request(cub, tmp_path / "cache", "cub200"))
    monkeypatch.chdir(tmp_path)
    again = open_dataset(data_request(Path("CUB_200_2011"), tmp_path / "cache", "cub200"))
    assert again.images.images.folder == first.images.images.folder
    assert again.fingerprint == first.fingerprint


def test_the_fingerprint_changes_with_a_class_name_alone(cub: Path, tmp_path: Path) -> None:
    before = open_dataset(data_request(cub, tmp_path / "cache", "cub200"))
    classes = cub / "classes.txt"
    classes.write_text(classes.read_text().replace(BIRDS[3], "004.Penguin"))
    after = open_dataset(data_request(cub, tmp_path / "cache", "cub200"))
    assert after.class_names[3] == "004.Penguin"
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize("change", ["no label", "unknown class"])
def test_an_image_without_a_class_is_named(cub: Path, change: str) -> None:
    lines = (cub / "image_class_labels.txt").read_text().splitlines()
    lines[4:5] = [] if change == "no label" else ["5 99"]
    (cub / "image_class_labels.txt").write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(
        caught, str(cub / "image_class_labels.txt"), "image 5 (003.Bird_2/Bird_2_0000.jpg) has no class of classes.txt"
    )


def test_a_class_number_must_be_one(cub: Path) -> None:
    with (cub / "classes.txt").open("a") as file:
        file.write("nine 009.Bird_8\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, str(cub / "classes.txt"), "'nine' is not a class number")
