"""The layouts of publishers: the order of classes and images, and what is said about malformed lists."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from protocols.datasets.dataset import note_on_queries
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.listing import DataError, ImageListing
from protocols.datasets.published import (
    CAR_NAMES,
    Publication,
    check_counts,
    list_cars196,
    list_cub200,
    list_inshop,
    list_sop,
)
from tests.support.image_folders import BIRDS, data_request, make_cub, paint, refused
from tests.support.packs import decode
from tests.support.published_layouts import CARS, annotations, cars_annotated, cars_devkit, cars_folders, inshop, sop

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
    with refused(str(cub), said, "unpack the publisher's files again"):
        list_cub200(cub)


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
    assert dataset.left_out == (f"1 image that cannot be decoded ({broken})",)
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
    assert note.startswith(
        "3 queries are searched for among 8 others in the gallery, which has 1 test class without a query"
    )


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
    with refused(str(tmp_path / "train" / "Trabant 601 1964"), "no class of Cars196"):
        list_cars196(tmp_path)


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
    with refused(words):
        list_cars196(tmp_path)


@dataclass(frozen=True)
class Layout:
    """A small dataset: how it is made and listed, its counts, the files that it needs, and a line of its image list."""

    name: str
    make: Callable[[Path], Path]
    lister: Callable[[Path], ImageListing]
    counts: Publication
    needs: tuple[str, ...]
    lists: tuple[str, ...] = ()


CAR_COUNTS = Publication("", "", 10, 30, 5, 15)
LAYOUTS = {
    "cub200": Layout(
        *("cub200", make_cub, list_cub200, Publication("", "", 8, 16, 4, 8)),
        ("images.txt", "classes.txt", "image_class_labels.txt", "images"),
        ("images.txt", "classes.txt", "image_class_labels.txt"),
    ),
    "cars196, annotated": Layout("cars196", cars_annotated, list_cars196, CAR_COUNTS, ("cars_annos.mat", "car_ims")),
    "cars196, devkit": Layout(
        *("cars196", cars_devkit, list_cars196, CAR_COUNTS),
        ("cars_train", "cars_test", "devkit/cars_train_annos.mat", "devkit/cars_test_annos_withlabels.mat"),
    ),
    "cars196, folders": Layout(
        *("cars196", cars_folders, list_cars196, CAR_COUNTS), ("car_data/car_data/test", "car_data/car_data/train")
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


def assert_refused(layout, root, *words):
    with refused(*words):
        layout.lister(root)


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
    with refused(f"{counts.images} images of {counts.classes} classes", str(publication.images), "--subset"):
        open_dataset(data_request(root, tmp_path / "cache", layout.name, subset=False))


def test_what_is_missing_is_named(layout, root, tmp_path):
    for gone in layout.needs:
        (root / gone).rename(tmp_path / "elsewhere")
        assert_refused(layout, root, str(root), Path(gone).name)
        (tmp_path / "elsewhere").rename(root / gone)
    assert_refused(layout, tmp_path / "empty", str(tmp_path / "empty"))


def test_missing_images_are_named(layout, root):
    if layout.make is cars_folders:
        pytest.skip("has no list")
    listing = layout.lister(root)
    for name in listing.names[-2:]:
        (listing.root / name).unlink()
    missing = str(listing.root / listing.names[-2])
    with refused(missing, "named by the publisher but missing; unpack the archive again") as caught:
        layout.lister(root)
    assert len(caught.value.faults) == 2


def test_lists_in_another_encoding_are_refused(layout, root):
    for file in layout.lists:
        content = (root / file).read_bytes()
        (root / file).write_bytes(b"\xff\xfe" + content)
        assert_refused(layout, root, str(root / file), "UnicodeDecodeError")
        (root / file).write_bytes(content)


def test_lines_of_another_form_are_refused(layout, root):
    for file in layout.lists:
        content = (root / file).read_text()
        (root / file).write_text(content + "\nwhat\n")
        assert_refused(layout, root, str(root / file), "what")
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
    assert_refused(layout, root, "is named twice")
