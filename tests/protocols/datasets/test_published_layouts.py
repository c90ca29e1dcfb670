"""What holds for every published dataset: it opens, its counts are checked, and what is missing or wrong is named."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.listing import DataError, ImageListing
from protocols.datasets.published import Publication, check_counts, list_cars196, list_cub200, list_inshop, list_sop
from tests.support.image_folders import assert_said, data_request, make_cub
from tests.support.published_layouts import cars_annotated, cars_devkit, cars_folders, inshop, sop


@dataclass(frozen=True)
class Layout:
    """A small dataset: how it is made and listed, its counts, the files that it needs, and a line of its image list."""

    name: str
    make: Callable[[Path], Path]
    lister: Callable[[Path], ImageListing]
    counts: Publication
    needs: tuple[str, ...]
    lists: tuple[str, ...] = ()


CARS = Publication("", "", 10, 30, 5, 15)
LAYOUTS = {
    "cub200": Layout(
        *("cub200", make_cub, list_cub200, Publication("", "", 8, 16, 4, 8)),
        ("images.txt", "classes.txt", "image_class_labels.txt", "images"),
        ("images.txt", "classes.txt", "image_class_labels.txt"),
    ),
    "cars196, annotated": Layout("cars196", cars_annotated, list_cars196, CARS, ("cars_annos.mat", "car_ims")),
    "cars196, devkit": Layout(
        *("cars196", cars_devkit, list_cars196, CARS),
        ("cars_train", "cars_test", "devkit/cars_train_annos.mat", "devkit/cars_test_annos_withlabels.mat"),
    ),
    "cars196, folders": Layout(
        *("cars196", cars_folders, list_cars196, CARS), ("car_data/car_data/test", "car_data/car_data/train")
    ),
    "sop": Layout(
        *("sop", sop, list_sop, Publication("", "", 9, 18, 5, 10)),
        ("Ebay_train.txt", "Ebay_test.txt"),
        ("Ebay_train.txt", "Ebay_test.txt"),
    ),
    "inshop": Layout(
        *("inshop", inshop, list_inshop, Publication("", "", 9, 22, 5, 10, queries=4, gallery=8)),
        ("Eval/list_eval_partition.txt", "Img"),
        ("Eval/list_eval_partition.txt",),
    ),
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture
def root(layout, tmp_path):
    (tmp_path / "data").mkdir()
    return layout.make(tmp_path / "data")


def refused(layout, root, *words):
    with pytest.raises(DataError) as caught:
        layout.lister(root)
    assert_said(caught, *words)


def test_a_dataset_opens(layout, root, tmp_path):
    dataset = open_dataset(data_request(root, tmp_path / "cache", layout.name))
    counts = layout.counts
    assert (dataset.n_classes, len(dataset.images), dataset.trainval_classes) == (
        *(counts.classes, counts.images, counts.trainval_classes),
    )
    assert (dataset.is_query is None) == (counts.queries is None)
    assert np.bincount(dataset.images.labels)[: counts.trainval_classes].sum() == counts.trainval_images


def test_the_counts_are_checked(layout, root, tmp_path):
    listing, counts = layout.lister(root), layout.counts
    check_counts(listing, counts)
    wrong = [{"classes": counts.classes + 1}, {"images": counts.images + 1}, {"trainval_images": 3}]
    if counts.queries is not None:
        wrong += [{"queries": 5}, {"gallery": 7}]
    for changed in wrong:
        with pytest.raises(DataError, match=r" instead of .*; complete the download, or use --subset"):
            check_counts(listing, replace(counts, **changed))
    publication = DATASETS[layout.name].publication
    with pytest.raises(DataError) as caught:
        open_dataset(data_request(root, tmp_path / "cache", layout.name, subset=False))
    assert_said(caught, f"{counts.images} images of {counts.classes} classes", str(publication.images), "--subset")


def test_what_is_missing_is_named(layout, root, tmp_path):
    for gone in layout.needs:
        (root / gone).rename(tmp_path / "elsewhere")
        refused(layout, root, str(root), Path(gone).name)
        (tmp_path / "elsewhere").rename(root / gone)
    refused(layout, tmp_path / "empty", str(tmp_path / "empty"))


def test_missing_images_are_named(layout, root):
    if layout.make is cars_folders:
        pytest.skip("has no list")
    listing = layout.lister(root)
    for name in listing.names[-2:]:
        (listing.root / name).unlink()
    refused(
        layout,
        root,
        str(listing.root / listing.names[-2]),
        "named by the publisher but missing; unpack the archive again",
    )
    with pytest.raises(DataError) as caught:
        layout.lister(root)
    assert len(caught.value.faults) == 2


def test_lists_in_another_encoding_are_refused(layout, root):
    for file in layout.lists:
        content = (root / file).read_bytes()
        (root / file).write_bytes(b"\xff\xfe" + content)
        refused(layout, root, str(root / file), "UnicodeDecodeError")
        (root / file).write_bytes(content)


def test_lines_of_another_form_are_refused(layout, root):
    for file in layout.lists:
        content = (root / file).read_text()
        (root / file).write_text(content + "\nwhat\n")
        refused(layout, root, str(root / file), "what")
        (root / file).write_text(content)


def test_an_image_named_twice_is_refused(layout, root):
    if layout.name == "cub200":
        with (root / "image_class_labels.txt").open("a") as labels, (root / "images.txt").open("a") as images:
            labels.write("17 1\n")
            images.write("17 001.Bird_0/Bird_0_0000.jpg\n")
    elif layout.lists:
        path = root / layout.lists[-1]
        path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    else:
        pytest.skip("has no list")
    refused(layout, root, "is named twice")
