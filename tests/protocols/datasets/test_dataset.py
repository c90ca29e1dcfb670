"""Datasets in their official layouts, and what is said about malformed ones."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocols.datasets import cub200
from protocols.datasets.cub200 import list_cub200, open_cub200
from protocols.datasets.dataset import DataError, DataRequest, Dataset, check_classes
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.embedded import EMBEDDED
from protocols.datasets.folder import list_folder, open_folder
from protocols.datasets.listing import MissingImagesError
from protocols.datasets.publication import CUB200, Counts
from protocols.images.packing import BrokenImageError, decode
from results.training_spec import ImageSettings

SETTINGS = ImageSettings(resize=8, crop=8)
BIRDS = tuple(f"{c + 1:03d}.Bird_{c}" for c in range(8))


def _paint(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def _make_folder(root: Path, classes: int = 8, per_class: int = 2) -> Path:
    for c in range(classes):
        for i in range(per_class):
            _paint(root / f"class_{c}" / f"{i}.png", seed=100 * c + i)
    return root


def _make_cub(root: Path, classes: int = 8, per_class: int = 2) -> Path:
    """The official layout: ids from 1, images by class folder, one space between the columns."""
    images, labels, names = [], [], []
    for c in range(classes):
        name = f"{c + 1:03d}.Bird_{c}"
        names.append(f"{c + 1} {name}")
        for i in range(per_class):
            number = len(images) + 1
            path = f"{name}/Bird_{c}_{i:04d}.jpg"
            _paint(root / "images" / path, seed=number)
            images.append(f"{number} {path}")
            labels.append(f"{number} {c + 1}")
    for file, lines in (("classes.txt", names), ("images.txt", images), ("image_class_labels.txt", labels)):
        (root / file).write_text("\n".join(lines) + "\n")
    return root


def _request(root: Path | None, cache: Path, name: str = "folder", **changes: Any) -> DataRequest:
    whole: dict[str, Any] = {"name": name, "images": SETTINGS, "cache": cache, "root": root, "subset": True}
    return DataRequest(**{**whole, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _make_folder(tmp_path / "photos")


@pytest.fixture
def cub(tmp_path: Path) -> Path:
    return _make_cub(tmp_path / "CUB_200_2011")


def _said(caught: pytest.ExceptionInfo[Exception], *words: str) -> None:
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


# Any folder


def test_a_folder_of_class_folders(folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset(_request(folder, tmp_path / "cache"))
    assert dataset.name == "folder"
    assert dataset.class_names == tuple(f"class_{c}" for c in range(8))
    assert dataset.n_classes == 8
    assert dataset.images.labels.tolist() == np.arange(8).repeat(2).tolist()
    assert dataset.skipped == ()
    for index, (c, i) in enumerate((c, i) for c in range(8) for i in range(2)):
        assert (dataset.images.image(index) == decode(folder / f"class_{c}" / f"{i}.png", 8)).all()


def test_only_images_count_and_at_any_depth(folder: Path) -> None:
    before = list_folder(folder)
    (folder / "class_0" / "notes.txt").write_text("no image")
    (folder / "class_0" / ".hidden.png").write_bytes(b"")
    (folder / "README.md").write_text("no class")
    _paint(folder / ".thumbnails" / "0.png", 0)
    assert list_folder(folder).names == before.names
    assert list_folder(folder).class_names == before.class_names
    _paint(folder / "class_3" / "more" / "deep.PNG", 0)
    after = list_folder(folder)
    assert set(after.names) - set(before.names) == {"class_3/more/deep.PNG"}
    assert after.labels[after.names.index("class_3/more/deep.PNG")] == 3


def test_classes_are_in_alphabetical_order(tmp_path: Path) -> None:
    for name in ("b", "a10", "a2", "C"):
        _paint(tmp_path / name / "0.png", 0)
    assert list_folder(tmp_path).class_names == ("C", "a10", "a2", "b")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list_folder(tmp_path / "nowhere")
    _said(caught, str(tmp_path / "nowhere"), "no such folder", "one folder of images per class")


@pytest.mark.parametrize(("opener", "name"), [(open_folder, "folder"), (open_cub200, "cub200")])
def test_a_dataset_without_a_place(opener: Callable[[DataRequest], Dataset], name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        opener(_request(None, tmp_path, name))
    _said(caught, name, "--data")


@pytest.mark.parametrize("make", [_make_folder, _make_cub], ids=["folder", "cub200"])
@pytest.mark.parametrize("classes", [1, 7])
def test_too_few_classes(tmp_path: Path, make: Callable[..., Path], classes: int) -> None:
    name = "folder" if make is _make_folder else "cub200"
    root = make(tmp_path / "data", classes)
    with pytest.raises(DataError) as caught:
        open_dataset(_request(root, tmp_path / "cache", name))
    _said(caught, name, f"{classes} classes found", "at least 8")


@pytest.mark.parametrize(("left", "message"), [(0, "has no image"), (1, "has only one image")])
def test_a_class_that_cannot_be_scored(folder: Path, tmp_path: Path, left: int, message: str) -> None:
    for i in range(left, 2):
        (folder / "class_5" / f"{i}.png").unlink()
    with pytest.raises(DataError) as caught:
        open_dataset(_request(folder, tmp_path / "cache"))
    _said(caught, "folder: class 'class_5'", message, "give it at least two, or remove the class")
    assert not (tmp_path / "cache").exists(), "decoded before the classes were checked"


def test_classes_that_can_be_scored_pass() -> None:
    check_classes("toys", [str(c) for c in range(8)], np.arange(8).repeat(2))


def test_a_broken_image_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "class_2" / "1.png").write_bytes(b"no image")
    with pytest.raises(BrokenImageError) as caught:
        open_dataset(_request(folder, tmp_path / "cache"))
    _said(caught, str(folder / "class_2" / "1.png"), "--skip-broken-images")


def test_a_broken_image_can_be_left_out(tmp_path: Path) -> None:
    root = _make_folder(tmp_path / "photos", per_class=3)
    whole = open_dataset(_request(root, tmp_path / "cache"))
    (root / "class_2" / "1.png").write_bytes(b"no image")
    dataset = open_dataset(_request(root, tmp_path / "cache", skip_broken=True))
    assert dataset.skipped == ("class_2/1.png",)
    assert len(dataset.images) == len(whole.images) - 1 == 23
    assert dataset.images.rows.tolist() == [row for row in range(24) if row != 7]
    assert (dataset.images.labels == 2).sum() == 2
    assert dataset.fingerprint != whole.fingerprint
    assert (dataset.images.image(7) == decode(root / "class_2" / "2.png", 8)).all()


def test_leaving_out_must_leave_two(folder: Path, tmp_path: Path) -> None:
    (folder / "class_2" / "1.png").write_bytes(b"no image")
    with pytest.raises(DataError) as caught:
        open_dataset(_request(folder, tmp_path / "cache", skip_broken=True))
    _said(caught, "class 'class_2' has only one image")


# Fingerprints


def test_the_fingerprint_does_not_depend_on_place_time_or_size(folder: Path, tmp_path: Path) -> None:
    first = open_dataset(_request(folder, tmp_path / "cache"))
    assert open_dataset(_request(folder, tmp_path / "cache")).fingerprint == first.fingerprint
    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(folder, moved)
    assert open_dataset(_request(moved, tmp_path / "cache")).fingerprint == first.fingerprint
    for path in folder.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))
    assert open_dataset(_request(folder, tmp_path / "cache")).fingerprint == first.fingerprint
    assert open_dataset(_request(folder, tmp_path / "other")).fingerprint == first.fingerprint
    # How large images are made is in the training's specification.
    small = ImageSettings(resize=6, crop=6)
    assert open_dataset(_request(folder, tmp_path / "cache", images=small)).fingerprint == first.fingerprint


def _touch(path: Path) -> None:
    _paint(path, 12345)
    os.utime(path, ns=(10**18, 10**18))


CHANGES: dict[str, Callable[[Path], object]] = {
    "first file": lambda root: _touch(root / "class_0" / "0.png"),
    "last file": lambda root: _touch(root / "class_7" / "1.png"),
    "file name": lambda root: (root / "class_4" / "1.png").rename(root / "class_4" / "2.png"),
    "class name": lambda root: (root / "class_4").rename(root / "class_4b"),
    "one more": lambda root: _paint(root / "class_4" / "2.png", 9),
    "two swapped": lambda root: _swap(root / "class_1" / "0.png", root / "class_1" / "1.png"),
    "another class": lambda root: (root / "class_1" / "0.png").rename(root / "class_2" / "3.png"),
}


def _swap(one: Path, other: Path) -> None:
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)
    os.utime(one, ns=(10**18, 10**18))


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with(change: str, tmp_path: Path) -> None:
    root = _make_folder(tmp_path / "photos", per_class=3)
    for c in range(8):
        (root / f"class_{c}" / "2.png").rename(root / f"class_{c}" / "9.png")
    before = open_dataset(_request(root, tmp_path / "cache"))
    CHANGES[change](root)
    assert open_dataset(_request(root, tmp_path / "cache")).fingerprint != before.fingerprint


# CUB-200-2011


@pytest.mark.parametrize("above", [False, True])
def test_cub_in_its_official_layout(cub: Path, tmp_path: Path, above: bool) -> None:
    dataset = open_dataset(_request(cub.parent if above else cub, tmp_path / "cache", "cub200"))
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
    listing = list_cub200(cub, subset=True)
    assert listing.class_names == BIRDS[::-1]
    assert listing.names == tuple(line.split()[1] for line in lines[::-1])
    assert listing.labels.tolist() == np.arange(8).repeat(2).tolist()


def test_images_that_are_not_listed_are_left_alone(cub: Path) -> None:
    _paint(cub / "images" / BIRDS[0] / "more.jpg", 0)
    assert len(list_cub200(cub, subset=True).names) == 16


def test_a_part_must_be_meant_as_one(cub: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_dataset(_request(cub, tmp_path / "cache", "cub200", subset=False))
    _said(caught, "16 images of 8 classes", "11788", "200", "--subset")


@pytest.mark.parametrize(("counts", "whole"), [((8, 16, 8), True), ((8, 16, 9), False), ((8, 17, 8), False)])
def test_the_counts_are_checked(
    cub: Path, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, int, int], whole: bool
) -> None:
    classes, images, first_half = counts
    monkeypatch.setattr(cub200, "CUB200", replace(CUB200, counts=Counts(classes, images, 4, first_half)))
    if whole:
        assert len(list_cub200(cub).names) == 16
    else:
        with pytest.raises(DataError, match="complete the download"):
            list_cub200(cub)


@pytest.mark.parametrize("missing", ["images.txt", "classes.txt", "image_class_labels.txt", "images"])
def test_a_missing_part_is_named(cub: Path, missing: str) -> None:
    (cub / missing).rename(cub / "hidden")
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(caught, str(cub), missing)
    assert any(word in str(caught.value) for word in ("unpack", "--data"))


def test_missing_images_are_all_known(cub: Path) -> None:
    paths = [cub / "images" / BIRDS[c] / f"Bird_{c}_0000.jpg" for c in (2, 5)]
    for path in paths:
        path.unlink()
    with pytest.raises(MissingImagesError) as caught:
        list_cub200(cub)
    _said(caught, str(paths[0]), "and 1 more")
    assert (caught.value.paths, caught.value.listed) == (tuple(paths), 16)


def test_an_image_named_twice(cub: Path) -> None:
    with (cub / "images.txt").open("a") as file:
        file.write(f"17 {BIRDS[0]}/Bird_0_0000.jpg\n")
    with (cub / "image_class_labels.txt").open("a") as file:
        file.write("17 1\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(caught, "images.txt", f"image {BIRDS[0]}/Bird_0_0000.jpg is named twice")


@pytest.mark.parametrize("file", ["images.txt", "classes.txt", "image_class_labels.txt"])
def test_another_encoding_is_named(cub: Path, file: str) -> None:
    (cub / file).write_bytes("1 Möwe\n".encode("latin-1"))
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(caught, str(cub / file), "not a text file in UTF-8")


def test_the_same_folder_by_another_name_is_not_packed_again(
    cub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_dataset(_request(cub, tmp_path / "cache", "cub200"))
    monkeypatch.chdir(tmp_path)
    again = open_dataset(_request(Path("CUB_200_2011"), tmp_path / "cache", "cub200"))
    assert again.images.images.folder == first.images.images.folder
    assert again.fingerprint == first.fingerprint


def test_a_missing_image_is_named(cub: Path) -> None:
    path = cub / "images" / BIRDS[3] / "Bird_3_0001.jpg"
    path.unlink()
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(caught, str(path), "missing", "unpack the archive again")


@pytest.mark.parametrize("file", ["images.txt", "classes.txt", "image_class_labels.txt"])
@pytest.mark.parametrize("line", ["17", "1 again", "   17   "])
def test_a_bad_line_is_named(cub: Path, file: str, line: str) -> None:
    text = (cub / file).read_text()
    (cub / file).write_text(f"{text}\n{line}\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    number = len(text.splitlines()) + 2
    _said(caught, f"{cub / file}, line {number}: expected `id value`", repr(line))


def test_empty_lines_are_no_harm(cub: Path) -> None:
    (cub / "classes.txt").write_text("\n" + (cub / "classes.txt").read_text() + "\n\n")
    assert len(list_cub200(cub, subset=True).names) == 16


def test_the_fingerprint_changes_with_a_class_name_alone(cub: Path, tmp_path: Path) -> None:
    before = open_dataset(_request(cub, tmp_path / "cache", "cub200"))
    classes = cub / "classes.txt"
    classes.write_text(classes.read_text().replace(BIRDS[3], "004.Penguin"))
    after = open_dataset(_request(cub, tmp_path / "cache", "cub200"))
    assert after.class_names[3] == "004.Penguin"
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize("change", ["no label", "unknown class"])
def test_an_image_without_a_class_is_named(cub: Path, change: str) -> None:
    lines = (cub / "image_class_labels.txt").read_text().splitlines()
    lines[4:5] = [] if change == "no label" else ["5 99"]
    (cub / "image_class_labels.txt").write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(
        caught, str(cub / "image_class_labels.txt"), "image 5 (003.Bird_2/Bird_2_0000.jpg) has no class of classes.txt"
    )


def test_a_class_number_must_be_one(cub: Path) -> None:
    with (cub / "classes.txt").open("a") as file:
        file.write("nine 009.Bird_8\n")
    with pytest.raises(DataError) as caught:
        list_cub200(cub, subset=True)
    _said(caught, str(cub / "classes.txt"), "'nine' is not a class number")


def test_a_class_without_images_is_named(cub: Path, tmp_path: Path) -> None:
    with (cub / "classes.txt").open("a") as file:
        file.write("9 009.Bird_8\n")
    with pytest.raises(DataError) as caught:
        open_dataset(_request(cub, tmp_path / "cache", "cub200"))
    _said(caught, "cub200: class '009.Bird_8' has no image")


# The registry


def test_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_dataset(_request(tmp_path, tmp_path, "cub"))
    _said(caught, "unknown dataset 'cub'", *DATASETS)


def test_published_counts_add_up() -> None:
    """The numbers of the specification, section 1, each in two ways."""
    counts = {name: entry.publication.counts for name, entry in DATASETS.items() if entry.publication}
    assert set(counts) == {"cub200", "cars196", "sop", "inshop"}
    of = {name: (c.classes, c.images, c.trainval_classes) for name, c in counts.items()}
    assert of["cub200"] == (200, 5_864 + 5_924, 100)
    assert of["cars196"] == (196, 8_054 + 8_131, 98)
    assert of["sop"] == (11_318 + 11_316, 59_551 + 60_502, 11_318)
    assert of["inshop"] == (3_997 + 3_985, 25_882 + 14_218 + 12_612, 3_997)
    assert (counts["cub200"].trainval_images, counts["cars196"].trainval_images) == (5_864, 8_054)
    assert (counts["inshop"].queries, counts["inshop"].gallery) == (14_218, 12_612)


def test_publications_say_what_a_person_needs() -> None:
    for entry in DATASETS.values():
        if entry.publication is None:
            continue
        source = entry.publication.source
        assert all(word in source for word in ("publisher: ", "page: https://", "terms: ", "layout: "))
        for archive in entry.publication.archives:
            assert archive.name in source
            assert archive.md5 is None or re.fullmatch("[0-9a-f]{32}", archive.md5)
            assert archive.url is None or archive.url.endswith("/" + archive.name)


def test_entries_say_whether_they_need_a_place() -> None:
    assert {name for name, entry in DATASETS.items() if entry.lister is None} == EMBEDDED
    assert all(entry.description for entry in DATASETS.values())


@pytest.mark.slow
def test_glyphs_need_no_place(tmp_path: Path) -> None:
    one, again = (open_dataset(_request(None, tmp_path, "glyphs")) for _ in range(2))
    assert one.fingerprint == again.fingerprint
    assert one.images.images.channels == 1
    assert one.images.image(0).shape == (32, 32, 1)
    assert one.n_classes == len(np.unique(one.images.labels)) >= 200
