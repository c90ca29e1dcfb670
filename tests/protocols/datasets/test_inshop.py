"""In-Shop Clothes Retrieval in the official layout and the mirrors', whole and broken."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.inshop import list_inshop
from protocols.datasets.listing import check_counts
from protocols.datasets.notes_on_data import note_on_queries
from protocols.datasets.publication import INSHOP, Counts
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.splits import named_split
from protocols.training.fold_data import fold_data
from results.spec.training_spec import ImageSettings
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
    return open_dataset(DataRequest("inshop", ImageSettings(resize=8, crop=8), root.parent / "cache", root, **options))


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


def test_the_archives_own_folder_will_do(tmp_path: Path) -> None:
    inshop(tmp_path / "In-shop Clothes Retrieval Benchmark")
    assert len(list_inshop(tmp_path).names) == 22


def test_the_list_in_eval_and_images_at_the_root(root: Path) -> None:
    (root / "Img" / "img").rename(root / "img")
    assert list_inshop(root).root == root


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
    dataset = opened(root, skip_broken=True)
    assert dataset.left_out == (f"1 image(s) that cannot be decoded ({broken})",)
    kept = [row for row, name in enumerate(listing.names) if name != broken]
    assert dataset.is_query is not None
    assert listing.is_query is not None
    assert dataset.is_query.tolist() == listing.is_query[kept].tolist()


def test_the_counts_are_checked(root: Path) -> None:
    listing = list_inshop(root)
    check_counts(listing, WHOLE)
    with pytest.raises(DataError, match=r"22 images of 9 classes, published are 52712 of 7982.*--subset"):
        check_counts(listing, INSHOP.counts)
    for changed, what in (
        ({"trainval_classes": 4}, "images of the first 4 classes: 8 instead of 10"),
        ({"queries": 5}, "queries: 4 instead of 5"),
        ({"gallery": 7}, "gallery images: 8 instead of 7"),
    ):
        with pytest.raises(DataError, match=what):
            check_counts(listing, replace(WHOLE, **changed))


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


@pytest.mark.parametrize(
    "line", ["img/a.jpg id_00000001", "img/a.jpg id_00000001 validation", "img/a.jpg id_00000001 train more"]
)
def test_a_bad_line(root: Path, file: Path, line: str) -> None:
    with file.open("a") as handle:
        handle.write(line + "\n")
    refused(root, f"{file}, line 25: expected `image_name item_id`", repr(line))


@pytest.mark.parametrize("content", ["", "22\n", "22\nname id status\n", "img/a.jpg id_00000001 train\n" * 3])
def test_the_header_must_be_there(root: Path, file: Path, content: str) -> None:
    file.write_text(content)
    refused(root, str(file), "expected the number of images, then the header")


def test_the_number_must_be_one(root: Path, file: Path) -> None:
    file.write_text(file.read_text().replace("22", "many", 1))
    refused(root, str(file), "expected the number of images, then the header")


def test_another_encoding(root: Path, file: Path) -> None:
    file.write_bytes(b"\xff\xfe" + file.read_bytes())
    refused(root, str(file), "not a text file in UTF-8")


def test_an_image_twice(root: Path, file: Path) -> None:
    with file.open("a") as handle:
        handle.write(file.read_text().splitlines()[-1] + "\n")
    refused(root, "named twice")


def test_missing_parts(root: Path, file: Path) -> None:
    image = root / "Img" / "img" / "WOMEN" / "Dresses" / "id_00000003" / "01_1_front.jpg"
    image.unlink()
    refused(root, str(image), "missing")
    (root / "Img").rename(root / "Images")
    refused(root, str(root), "no Img/img and no img here", "img.zip")
    file.unlink()
    refused(root, str(root), "no Eval/list_eval_partition.txt")
