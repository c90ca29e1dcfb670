"""Cars196 in three layouts, whole and broken."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from protocols.datasets.cars196 import CLASS_NAMES, list_cars196
from protocols.datasets.dataset import DataError
from tests.support.published_layouts import (
    CARS,
    annotations,
    cars_annotated,
    cars_devkit,
    cars_folders,
    names_of,
    paint,
)

LAYOUTS = [cars_annotated, cars_devkit, cars_folders]


def said(caught: pytest.ExceptionInfo[Exception], *words: str) -> None:
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_the_official_names() -> None:
    """The publisher's own order, in places where the alphabet's differs; ids from 1."""
    assert len(set(CLASS_NAMES)) == len(CLASS_NAMES) == 196
    known = {
        1: "AM General Hummer SUV 2000",
        2: "Acura RL Sedan 2012",
        6: "Acura Integra Type R 2001",
        14: "Audi TTS Coupe 2012",
        174: "Ram C/V Cargo Van Minivan 2012",
        196: "smart fortwo Convertible 2012",
    }
    assert {number: CLASS_NAMES[number - 1] for number in known} == known
    assert list(CLASS_NAMES) != sorted(CLASS_NAMES)


def test_annotations_say_the_class(tmp_path: Path) -> None:
    listing = list_cars196(cars_annotated(tmp_path))
    assert listing.names[:4] == tuple(f"car_ims/{n:06d}.jpg" for n in (1, 2, 3, 4))
    assert listing.labels.tolist() == np.repeat(np.arange(CARS), 3).tolist()


@pytest.mark.parametrize("options", [{}, {"labels_at_root": True}, {"nested": True}])
def test_the_devkit_pools_train_and_test(tmp_path: Path, options: dict[str, bool]) -> None:
    listing = list_cars196(cars_devkit(tmp_path, **options))
    rank_of = dict(zip(listing.names, listing.labels.tolist(), strict=True))
    inner = {part: f"cars_{part}/" * (2 if options.get("nested") else 1) for part in ("train", "test")}
    assert rank_of[f"{inner['train']}00001.jpg"] == rank_of[f"{inner['train']}00002.jpg"] == CARS - 1
    assert rank_of[f"{inner['train']}00003.jpg"] == CARS - 2
    assert rank_of[f"{inner['test']}00001.jpg"] == CARS - 1
    assert rank_of[f"{inner['test']}00010.jpg"] == 0


@pytest.mark.parametrize("below", ["", "car_data", "car_data/car_data"])
def test_class_folders_go_by_name_not_by_alphabet(tmp_path: Path, below: str) -> None:
    listing = list_cars196(cars_folders(tmp_path, below))
    for name, label in zip(listing.names, listing.labels, strict=True):
        assert Path(name).parent.name == CLASS_NAMES[label]
    assert [Path(name).parts[-3] for name in listing.names].count("train") == 2 * CARS


@pytest.mark.parametrize("written", ["Ram C-V Cargo Van Minivan 2012", "Ram C_V Cargo Van Minivan 2012"])
def test_a_slash_cannot_stand_in_a_folders_name(tmp_path: Path, written: str) -> None:
    cars_folders(tmp_path, "", (written, *CLASS_NAMES[:8]))
    listing = list_cars196(tmp_path)
    assert listing.class_names == (*CLASS_NAMES[:8], "Ram C/V Cargo Van Minivan 2012")


def test_the_publishers_own_names_come_first(tmp_path: Path) -> None:
    reversed_names = CLASS_NAMES[::-1]
    cars_folders(tmp_path, "")
    savemat(tmp_path / "cars_meta.mat", {"class_names": names_of(reversed_names)})
    assert list_cars196(tmp_path).class_names == CLASS_NAMES[:CARS][::-1]


def test_an_unknown_class_folder(tmp_path: Path) -> None:
    cars_folders(tmp_path, "")
    paint(tmp_path / "train" / "Trabant 601 1964" / "1.jpg", 0)
    with pytest.raises(DataError) as caught:
        list_cars196(tmp_path)
    said(caught, str(tmp_path / "train" / "Trabant 601 1964"), "no class of Cars196")


@pytest.mark.parametrize("content", [b"", b"no MATLAB file at all, and a long one at that" * 9])
def test_a_file_that_is_not_matlabs(tmp_path: Path, content: bytes) -> None:
    cars_annotated(tmp_path)
    (tmp_path / "cars_annos.mat").write_bytes(content)
    with pytest.raises(DataError) as caught:
        list_cars196(tmp_path)
    said(caught, str(tmp_path / "cars_annos.mat"), "not a readable MATLAB file")


ROWS = [("car_ims/000001.jpg", 1, 0), ("car_ims/000002.jpg", 2, 0)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "holds no class_names"),
        ({"class_names": names_of(("a", "b"))}, "its annotations have no relative_im_path"),
        (
            {"class_names": names_of(("a", "b")), "annotations": annotations(ROWS, "fname", flag=True)},
            "its annotations have no relative_im_path and class",
        ),
        (
            {"class_names": names_of(("a",)), "annotations": annotations(ROWS, "relative_im_path", flag=True)},
            "image car_ims/000002.jpg is of class 2, there are classes 1 to 1",
        ),
        (
            {
                "class_names": names_of(("a", "b")),
                "annotations": annotations([ROWS[0], ROWS[0]], "relative_im_path", flag=True),
            },
            "image car_ims/000001.jpg is named twice",
        ),
    ],
)
def test_bad_annotations(tmp_path: Path, content: dict[str, Any], words: str) -> None:
    cars_annotated(tmp_path)
    savemat(tmp_path / "cars_annos.mat", content)
    with pytest.raises(DataError) as caught:
        list_cars196(tmp_path)
    said(caught, "cars_annos.mat", words)
