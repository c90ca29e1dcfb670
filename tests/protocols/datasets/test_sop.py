"""Stanford Online Products, whole and broken."""

from pathlib import Path

import pytest

from protocols.datasets.dataset import DataError
from protocols.datasets.sop import list_sop
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


@pytest.mark.parametrize("header", ["", "1 1 1 chair_final/1.JPG", "image_id class_id path"])
def test_the_header_must_be_there(root: Path, header: str) -> None:
    (root / "Ebay_test.txt").write_text(header)
    refused(root, str(root / "Ebay_test.txt"), "expected the header `image_id class_id super_class_id path`")


def test_a_class_of_both_lists(root: Path) -> None:
    first = (root / "Ebay_train.txt").read_text().splitlines()[1]
    with (root / "Ebay_test.txt").open("a") as file:
        file.write(first + "\n")
    refused(root, "Ebay_test.txt: class 1 is not above the classes of Ebay_train.txt (up to 5)")
