"""CUB-200-2011 in its official layout, and what is said about malformed copies."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.cub200 import list_cub200
from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.listing import MissingImagesError, check_counts
from protocols.datasets.publication import Counts
from protocols.images.decoding import decode
from tests.support.image_folders import BIRDS, assert_said, data_request, paint


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


def test_images_that_are_not_listed_are_left_alone(cub: Path) -> None:
    paint(cub / "images" / BIRDS[0] / "more.jpg", 0)
    assert len(list_cub200(cub).names) == 16


def test_a_part_must_be_meant_as_one(cub: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_dataset(data_request(cub, tmp_path / "cache", "cub200", subset=False))
    assert_said(caught, "16 images of 8 classes", "11788", "200", "--subset")


@pytest.mark.parametrize(("counts", "whole"), [((8, 16, 8), True), ((8, 16, 9), False), ((8, 17, 8), False)])
def test_the_counts_are_checked(cub: Path, counts: tuple[int, int, int], whole: bool) -> None:
    classes, images, first_half = counts
    expected = nullcontext() if whole else pytest.raises(DataError, match="complete the download")
    with expected:
        check_counts(list_cub200(cub), Counts(classes, images, 4, first_half))


@pytest.mark.parametrize("missing", ["images.txt", "classes.txt", "image_class_labels.txt", "images"])
def test_a_missing_part_is_named(cub: Path, missing: str) -> None:
    (cub / missing).rename(cub / "hidden")
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, str(cub), missing)
    assert any(word in str(caught.value) for word in ("unpack", "--data"))


def test_missing_images_are_all_known(cub: Path) -> None:
    paths = [cub / "images" / BIRDS[c] / f"Bird_{c}_0000.jpg" for c in (2, 5)]
    for path in paths:
        path.unlink()
    with pytest.raises(MissingImagesError) as caught:
        list_cub200(cub)
    assert_said(caught, str(paths[0]), "and 1 more")
    assert (caught.value.paths, caught.value.listed) == (tuple(paths), 16)


def test_an_image_named_twice(cub: Path) -> None:
    with (cub / "images.txt").open("a") as file:
        file.write(f"17 {BIRDS[0]}/Bird_0_0000.jpg\n")
    with (cub / "image_class_labels.txt").open("a") as file:
        file.write("17 1\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, "images.txt", f"image {BIRDS[0]}/Bird_0_0000.jpg is named twice")


@pytest.mark.parametrize("file", ["images.txt", "classes.txt", "image_class_labels.txt"])
def test_another_encoding_is_named(cub: Path, file: str) -> None:
    (cub / file).write_bytes("1 Möwe\n".encode("latin-1"))
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, str(cub / file), "not a text file in UTF-8")


def test_the_same_folder_by_another_name_is_not_packed_again(
    cub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_dataset(data_request(cub, tmp_path / "cache", "cub200"))
    monkeypatch.chdir(tmp_path)
    again = open_dataset(data_request(Path("CUB_200_2011"), tmp_path / "cache", "cub200"))
    assert again.images.images.folder == first.images.images.folder
    assert again.fingerprint == first.fingerprint


def test_a_missing_image_is_named(cub: Path) -> None:
    path = cub / "images" / BIRDS[3] / "Bird_3_0001.jpg"
    path.unlink()
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, str(path), "missing", "unpack the archive again")


@pytest.mark.parametrize("file", ["images.txt", "classes.txt", "image_class_labels.txt"])
@pytest.mark.parametrize("line", ["17", "1 again", "   17   "])
def test_a_bad_line_is_named(cub: Path, file: str, line: str) -> None:
    text = (cub / file).read_text()
    (cub / file).write_text(f"{text}\n{line}\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    number = len(text.splitlines()) + 2
    assert_said(caught, f"{cub / file}, line {number}: expected `id value`", repr(line))


def test_empty_lines_are_no_harm(cub: Path) -> None:
    (cub / "classes.txt").write_text("\n" + (cub / "classes.txt").read_text() + "\n\n")
    assert len(list_cub200(cub).names) == 16


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


def test_a_class_without_images_is_named(cub: Path, tmp_path: Path) -> None:
    with (cub / "classes.txt").open("a") as file:
        file.write("9 009.Bird_8\n")
    with pytest.raises(DataError) as caught:
        open_dataset(data_request(cub, tmp_path / "cache", "cub200"))
    assert_said(caught, "cub200: class '009.Bird_8' has no image")
