"""In-Shop Clothes Retrieval in the official layout and the mirrors', whole and broken."""

from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import DataError, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.inshop import list_inshop
from protocols.datasets.notes_on_data import note_on_queries
from protocols.datasets.publication import Counts
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.splits import named_split
from protocols.training.fold_data import fold_data
from tests.support.image_folders import data_request
from tests.support.published_layouts import inshop

TRAIN = tuple(f"id_{n:08d}" for n in (1, 3, 5, 7, 11))
TEST = tuple(f"id_{n:08d}" for n in (2, 4, 6, 12))
WHOLE = Counts(9, 22, 5, 10, queries=4, gallery=8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return inshop(tmp_path / "inshop")


@pytest.fixture
def file(root: Path) -> Path:
    return root / "Eval" / "list_eval_partition.txt"


def refused(root: Path, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        list_inshop(root)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def opened(root: Path, **changes: bool) -> Dataset:
    options = {"subset": True, **changes}
    return open_dataset(data_request(root, root.parent / "cache", "inshop", **options))


@pytest.mark.parametrize("official", [True, False])
def test_items_for_training_come_first(tmp_path: Path, official: bool) -> None:
    listing = list_inshop(inshop(tmp_path / "inshop", official=official))
    assert listing.class_names == TRAIN + TEST
    assert listing.trainval_classes == 5
    assert listing.is_query is not None
    for name, label, query in zip(listing.names, listing.labels, listing.is_query, strict=True):
        assert Path(name).parent.name == listing.class_names[label]
        assert query == (label >= 5 and Path(name).name == "01_1_front.jpg")
        assert (listing.root / name).is_file()


def test_queries_and_gallery_reach_the_test(root: Path) -> None:
    dataset = opened(root)
    assert dataset.is_query is not None
    split = named_split("mlrc", dataset.n_classes, dataset.trainval_classes, test_given=True)
    assert split.test == (5, 6, 7, 8)
    data = data_for_testing(dataset, split)
    assert data.is_query is not None
    assert (len(data.images), int(data.is_query.sum())) == (12, 4)
    for fold in split.folds:
        parts = fold_data(dataset, fold)
        assert set(parts.train.labels) | set(parts.validation.labels) == set(range(5))


def test_the_fingerprint_knows_the_queries(root: Path, file: Path) -> None:
    before = opened(root)
    file.write_text(file.read_text().replace("id_00000004    gallery", "id_00000004    query", 1))
    after = opened(root)
    assert np.array_equal(after.images.labels, before.images.labels)
    assert after.fingerprint != before.fingerprint


def test_an_image_left_out_takes_its_status_along(root: Path) -> None:
    listing = list_inshop(root)
    broken = next(name for name in listing.names if "id_00000002/02" in name)
    (listing.root / broken).write_bytes(b"no image")
    dataset = opened(root, skip_broken_images=True)
    assert dataset.left_out == (f"1 image(s) that cannot be decoded ({broken})",)
    kept = [row for row, name in enumerate(listing.names) if name != broken]
    assert dataset.is_query is not None
    assert listing.is_query is not None
    assert dataset.is_query.tolist() == listing.is_query[kept].tolist()


@pytest.mark.parametrize(
    ("item", "gone", "fault"),
    [
        ("id_00000006", ("gallery",), "class 'id_00000006' has no gallery image"),
        ("id_0", ("query",), "no test class has a query"),
    ],
)
def test_what_can_be_searched_for_must_be_there(
    root: Path, file: Path, item: str, gone: tuple[str, ...], fault: str
) -> None:
    lines = [line for line in file.read_text().splitlines() if not (item in line and line.endswith(gone))]
    file.write_text("\n".join(lines))
    with pytest.raises(DataError, match=f"inshop: {fault}"):
        opened(root)


def test_an_item_without_a_query_stays_in_the_gallery(root: Path, file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if not ("id_00000006" in line and line.endswith("query"))]
    file.write_text("\n".join(lines))
    dataset = opened(root)
    note = note_on_queries(dataset.images.labels, dataset.is_query, 5)
    assert note is not None
    assert note.startswith("3 queries are searched for among 8 others in the gallery; 1 test class(es) have no query")


def test_a_training_item_may_have_one_image(root: Path, file: Path) -> None:
    lines = file.read_text().splitlines()
    lines.remove(next(line for line in lines if "id_00000007/02" in line))
    file.write_text("\n".join(lines))
    assert np.bincount(opened(root).images.labels)[:5].tolist() == [2, 2, 2, 1, 2]


def test_an_item_for_both(root: Path, file: Path) -> None:
    file.write_text(file.read_text().replace("id_00000012    query", "id_00000012    train"))
    refused(root, str(file), "item id_00000012 is in the training part and in the test part")


@pytest.mark.parametrize("content", ["", "22\n", "22\nname id status\n", "img/a.jpg id_00000001 train\n" * 3])
def test_the_header_must_be_there(root: Path, file: Path, content: str) -> None:
    file.write_text(content)
    refused(root, str(file), "expected the number of images, then the header")
