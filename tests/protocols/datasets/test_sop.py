"""Stanford Online Products, whole and broken."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import DataError, DataRequest
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.listing import check_counts
from protocols.datasets.publication import SOP, Counts
from protocols.datasets.sop import list_sop
from results.spec.training_spec import ImageSettings
from tests.support.published_layouts import sop


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sop(tmp_path / "Stanford_Online_Products")


def refused(root: Path, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        list_sop(root)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_both_lists_are_pooled(root: Path) -> None:
    listing = list_sop(root)
    lines = [
        line for file in ("Ebay_train.txt", "Ebay_test.txt") for line in (root / file).read_text().splitlines()[1:]
    ]
    assert listing.names == tuple(line.split()[3] for line in lines)
    assert listing.labels.tolist() == [int(line.split()[1]) - 1 for line in lines]
    assert listing.class_names == tuple(str(i) for i in range(1, 10))
    assert listing.trainval_classes == 5


def test_ranks_close_the_gaps_of_a_part(root: Path) -> None:
    for file, kept in (("Ebay_train.txt", {2, 3, 5}), ("Ebay_test.txt", {7, 9})):
        header, *lines = (root / file).read_text().splitlines()
        lines = [line for line in reversed(lines) if int(line.split()[1]) in kept]
        (root / file).write_text("\n".join([header, *lines]))
    listing = list_sop(root)
    assert listing.class_names == ("2", "3", "5", "7", "9")
    assert listing.labels.tolist() == [2, 2, 1, 1, 0, 0, 4, 4, 3, 3]
    assert listing.trainval_classes == 3


def test_the_folder_above_will_do(root: Path) -> None:
    assert list_sop(root.parent).root == root


def test_a_dataset_opens(root: Path, tmp_path: Path) -> None:
    dataset = open_dataset(DataRequest("sop", ImageSettings(resize=8, crop=8), tmp_path / "cache", root, subset=True))
    assert (dataset.n_classes, dataset.trainval_classes, dataset.is_query) == (9, 5, None)
    assert np.bincount(dataset.images.labels).tolist() == [2] * 9


@pytest.mark.parametrize("changed", [{}, {"classes": 10}, {"images": 19}, {"trainval_classes": 4}])
def test_the_counts_are_checked(root: Path, changed: dict[str, int]) -> None:
    with pytest.raises(DataError, match="18 images of 9 classes, published are 120053 of 22634"):
        check_counts(list_sop(root), SOP.counts)
    with pytest.raises(DataError, match="--subset") if changed else nullcontext():
        check_counts(list_sop(root), replace(Counts(9, 18, 5, 10), **changed))


@pytest.mark.parametrize("file", ["Ebay_train.txt", "Ebay_test.txt"])
def test_a_missing_list(root: Path, file: str) -> None:
    (root / file).unlink()
    refused(root, str(root), file)


def test_a_missing_image(root: Path) -> None:
    path = root / list_sop(root).names[-1]
    path.unlink()
    refused(root, str(path), "named in Ebay_train.txt and Ebay_test.txt but missing")


@pytest.mark.parametrize("file", ["Ebay_train.txt", "Ebay_test.txt"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("99 9 1", ", line 12: expected `image_id class_id super_class_id path`"),
        ("99", ", line 12: expected"),
        ("99 nine 1 a.JPG", "'nine' is not a class number"),
    ],
)
def test_a_bad_line(root: Path, file: str, line: str, words: str) -> None:
    content = (root / file).read_text().splitlines()[:11]
    (root / file).write_text("\n".join([*content, *[""] * (11 - len(content)), line]))
    refused(root, str(root / file), words)


@pytest.mark.parametrize("header", ["", "1 1 1 chair_final/1.JPG", "image_id class_id path"])
def test_the_header_must_be_there(root: Path, header: str) -> None:
    (root / "Ebay_test.txt").write_text(header)
    refused(root, str(root / "Ebay_test.txt"), "expected the header `image_id class_id super_class_id path`")


def test_another_encoding(root: Path) -> None:
    (root / "Ebay_test.txt").write_bytes("image_id class_id super_class_id päth\n".encode("utf-16"))
    refused(root, str(root / "Ebay_test.txt"), "not a text file in UTF-8")


def test_a_class_of_both_lists(root: Path) -> None:
    first = (root / "Ebay_train.txt").read_text().splitlines()[1]
    with (root / "Ebay_test.txt").open("a") as file:
        file.write(first + "\n")
    refused(root, "Ebay_test.txt: class 1 is not above the classes of Ebay_train.txt (up to 5)")


def test_an_image_twice(root: Path) -> None:
    last = (root / "Ebay_test.txt").read_text().splitlines()[-1]
    with (root / "Ebay_test.txt").open("a") as file:
        file.write(last + "\n")
    refused(root, last.split()[3], "named twice")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    refused(tmp_path, str(tmp_path), "no Ebay_train.txt here", "--data")
