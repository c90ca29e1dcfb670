"""Cars196 in three layouts, whole and broken."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from protocols.datasets.listing import DataError
from protocols.datasets.published import CAR_NAMES, list_cars196
from tests.support.image_folders import assert_said
from tests.support.published_layouts import CARS, annotations, cars_annotated, cars_devkit, cars_folders, paint


def test_the_official_names():
    """The publisher's own order, in places where the alphabet's differs; ids from 1."""
    assert len(set(CAR_NAMES)) == len(CAR_NAMES) == 196
    known = {
        1: "AM General Hummer SUV 2000",
        2: "Acura RL Sedan 2012",
        6: "Acura Integra Type R 2001",
        14: "Audi TTS Coupe 2012",
        174: "Ram C/V Cargo Van Minivan 2012",
        196: "smart fortwo Convertible 2012",
    }
    assert {number: CAR_NAMES[number - 1] for number in known} == known
    assert list(CAR_NAMES) != sorted(CAR_NAMES)


def test_annotations_say_the_class(tmp_path):
    listing = list_cars196(cars_annotated(tmp_path))
    assert listing.names[:4] == tuple(f"car_ims/{n:06d}.jpg" for n in (1, 2, 3, 4))
    assert listing.labels.tolist() == np.repeat(np.arange(CARS), 3).tolist()


@pytest.mark.parametrize("options", [{}, {"labels_at_root": True}, {"nested": True}])
def test_the_devkit_pools_train_and_test(tmp_path, options):
    listing = list_cars196(cars_devkit(tmp_path, **options))
    rank_of = dict(zip(listing.names, listing.labels.tolist(), strict=True))
    inner = {part: f"cars_{part}/" * (2 if options.get("nested") else 1) for part in ("train", "test")}
    assert rank_of[f"{inner['train']}00001.jpg"] == rank_of[f"{inner['train']}00002.jpg"] == CARS - 1
    assert rank_of[f"{inner['train']}00003.jpg"] == CARS - 2
    assert rank_of[f"{inner['test']}00001.jpg"] == CARS - 1
    assert rank_of[f"{inner['test']}00010.jpg"] == 0


@pytest.mark.parametrize("below", ["", "car_data", "car_data/car_data"])
def test_class_folders_go_by_name_not_by_alphabet(tmp_path, below):
    listing = list_cars196(cars_folders(tmp_path, below))
    for name, label in zip(listing.names, listing.labels, strict=True):
        assert Path(name).parent.name == CAR_NAMES[label]
    assert [Path(name).parts[-3] for name in listing.names].count("train") == 2 * CARS


@pytest.mark.parametrize("written", ["Ram C-V Cargo Van Minivan 2012", "Ram C_V Cargo Van Minivan 2012"])
def test_a_slash_cannot_stand_in_a_folders_name(tmp_path, written):
    cars_folders(tmp_path, "", (written, *CAR_NAMES[:8]))
    listing = list_cars196(tmp_path)
    assert listing.class_names == (*CAR_NAMES[:8], "Ram C/V Cargo Van Minivan 2012")


def test_an_unknown_class_folder(tmp_path):
    cars_folders(tmp_path, "")
    paint(tmp_path / "train" / "Trabant 601 1964" / "1.jpg", 0)
    with pytest.raises(DataError) as caught:
        list_cars196(tmp_path)
    assert_said(caught, str(tmp_path / "train" / "Trabant 601 1964"), "no class of Cars196")


ROWS = [("car_ims/000001.jpg", 1, 0), ("car_ims/000002.jpg", 197, 0)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cars_annos.mat: cannot be read"),
        (b"no MATLAB file at all, and a long one at that" * 9, "cars_annos.mat: cannot be read"),
        ({}, "'annotations'"),
        ({"annotations": annotations(ROWS, "fname", flag=True)}, "no field of name relative_im_path"),
        ({"annotations": annotations(ROWS, "relative_im_path", flag=True)}, "cannot be read"),
        ({"annotations": annotations(ROWS[:1] * 2, "relative_im_path", flag=True)}, "000001.jpg is named twice"),
    ],
)
def test_bad_annotations(tmp_path, content, words):
    cars_annotated(tmp_path)
    file = tmp_path / "cars_annos.mat"
    file.write_bytes(content) if isinstance(content, bytes) else savemat(file, content)
    with pytest.raises(DataError) as caught:
        list_cars196(tmp_path)
    assert_said(caught, words)
