"""The layouts of publishers: the order of classes and images, and what is said about malformed lists."""

from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import note_on_queries
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.listing import DataError
from protocols.datasets.published import list_cub200, list_inshop, list_sop
from tests.support.image_folders import BIRDS, assert_said, data_request, paint
from tests.support.packs import decode
from tests.support.published_layouts import inshop, sop

# CUB-200-2011


@pytest.mark.parametrize("above", [False, True])
def test_cub_in_its_official_layout(cub, tmp_path, above):
    dataset = open_dataset(data_request(cub.parent if above else cub, tmp_path / "cache", "cub200"))
    assert dataset.class_names == BIRDS
    assert dataset.images.labels.tolist() == np.arange(8).repeat(2).tolist()
    first = decode(cub / "images" / "001.Bird_0" / "Bird_0_0000.jpg", 8)
    assert (dataset.images.image(0) == first).all()


def test_birds_are_ranked_by_number_and_images_in_the_order_of_the_list(cub):
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


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("image_class_labels.txt", "5 3\n", "", "KeyError: '5'"),
        ("image_class_labels.txt", "5 3\n", "5 99\n", "KeyError: 99"),
        ("classes.txt", "8 008", "eight 008", "'eight'"),
    ],
)
def test_malformed_lists_of_birds(cub, file, old, new, said):
    content = (cub / file).read_text()
    assert old in content
    (cub / file).write_text(content.replace(old, new))
    with pytest.raises(DataError) as caught:
        list_cub200(cub)
    assert_said(caught, str(cub), said, "unpack the publisher's files again")


# Stanford Online Products


@pytest.fixture
def shop(tmp_path):
    return sop(tmp_path / "Stanford_Online_Products")


def test_both_lists_of_products_are_pooled(shop):
    listing = list_sop(shop.parent)
    assert listing.root == shop
    lines = [
        line for file in ("Ebay_train.txt", "Ebay_test.txt") for line in (shop / file).read_text().splitlines()[1:]
    ]
    assert listing.names == tuple(line.split()[3] for line in lines)
    assert listing.labels.tolist() == [int(line.split()[1]) - 1 for line in lines]
    assert listing.class_names == tuple(str(i) for i in range(1, 10))


def test_ranks_close_the_gaps_of_a_part(shop):
    for file, kept in (("Ebay_train.txt", {2, 3, 5}), ("Ebay_test.txt", {7, 9})):
        header, *lines = (shop / file).read_text().splitlines()
        lines = [line for line in reversed(lines) if int(line.split()[1]) in kept]
        (shop / file).write_text("\n".join([header, *lines]))
    listing = list_sop(shop)
    assert listing.class_names == ("2", "3", "5", "7", "9")
    assert listing.labels.tolist() == [2, 2, 1, 1, 0, 0, 4, 4, 3, 3]
    assert listing.trainval_classes == 3


# In-Shop


@pytest.fixture
def clothes(tmp_path):
    return inshop(tmp_path / "inshop")


@pytest.fixture
def partition(clothes):
    return clothes / "Eval" / "list_eval_partition.txt"


def opened(root, **changes):
    return open_dataset(data_request(root, root.parent / "cache", "inshop", **{"subset": True, **changes}))


def without_lines(path, item, *statuses):
    lines = [line for line in path.read_text().splitlines() if not (item in line and line.endswith(statuses))]
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("official", [True, False])
def test_items_for_training_come_first(tmp_path, official):
    listing = list_inshop(inshop(tmp_path / "inshop", official=official))
    assert listing.class_names == tuple(f"id_{n:08d}" for n in (1, 3, 5, 7, 11, 2, 4, 6, 12))
    assert listing.trainval_classes == 5
    assert listing.is_query is not None
    for name, label, query in zip(listing.names, listing.labels, listing.is_query, strict=True):
        assert Path(name).parent.name == listing.class_names[label]
        assert query == (label >= 5 and Path(name).name == "01_1_front.jpg")
        assert (listing.root / name).is_file()


def test_the_fingerprint_knows_the_queries(clothes, partition):
    before = opened(clothes)
    partition.write_text(partition.read_text().replace("id_00000004    gallery", "id_00000004    query", 1))
    after = opened(clothes)
    assert np.array_equal(after.images.labels, before.images.labels)
    assert after.fingerprint != before.fingerprint


def test_an_image_left_out_takes_its_status_along(clothes):
    listing = list_inshop(clothes)
    broken = next(name for name in listing.names if "id_00000002/02" in name)
    (listing.root / broken).write_bytes(b"no image")
    dataset = opened(clothes, skip_broken_images=True)
    assert dataset.left_out == (f"1 image(s) that cannot be decoded ({broken})",)
    kept = [row for row, name in enumerate(listing.names) if name != broken]
    assert dataset.is_query.tolist() == listing.is_query[kept].tolist()


@pytest.mark.parametrize(
    ("item", "gone", "fault"),
    [
        ("id_00000006", "gallery", "class 'id_00000006' has no gallery image"),
        ("id_0", "query", "no test class has a query"),
    ],
)
def test_what_can_be_searched_for_must_be_there(clothes, partition, item, gone, fault):
    without_lines(partition, item, gone)
    with pytest.raises(DataError, match=f"inshop: {fault}"):
        opened(clothes)


def test_an_item_without_a_query_stays_in_the_gallery(clothes, partition):
    without_lines(partition, "id_00000006", "query")
    note = note_on_queries(clothing := opened(clothes), range(clothing.trainval_classes, 99))
    assert note.startswith("3 queries are searched for among 8 others in the gallery; 1 test class(es) have no query")


# Both


@pytest.mark.parametrize("make", [sop, inshop])
def test_a_class_of_both_parts_is_refused(tmp_path, make):
    root = make(tmp_path)
    if make is inshop:
        file = root / "Eval" / "list_eval_partition.txt"
        file.write_text(file.read_text().replace("id_00000012    query", "id_00000012    train"))
    else:
        with (root / "Ebay_test.txt").open("a") as out:
            out.write("99 5 1 chair_final/other.JPG\n")
        paint(root / "chair_final" / "other.JPG", 0)
    with pytest.raises(DataError, match=r"class \w+ is in training and in test"):
        (list_inshop if make is inshop else list_sop)(root)
