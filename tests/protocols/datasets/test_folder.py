"""Any folder of class folders as a dataset: the walk through it, links, parts, and unusual images."""

import shutil

import numpy as np
import pytest
from PIL import Image, ImageOps

from protocols.datasets.dataset_registry import check_images, open_dataset
from protocols.datasets.folder import list_class_folders, list_folder, walk
from protocols.datasets.listing import DataError
from protocols.datasets.parts import parts_among
from tests.support.image_folders import data_request, make_folder, paint, refused
from tests.support.packs import decode


def test_a_folder_of_class_folders(folder, tmp_path):
    dataset = open_dataset(data_request(folder, tmp_path / "cache"))
    assert dataset.name == "folder"
    assert dataset.class_names == tuple(f"class_{c}" for c in range(8))
    assert dataset.n_classes == 8
    assert dataset.images.labels.tolist() == np.arange(8).repeat(2).tolist()
    assert dataset.left_out == ()
    for index, (c, i) in enumerate((c, i) for c in range(8) for i in range(2)):
        assert (dataset.images.image(index) == decode(folder / f"class_{c}" / f"{i}.png", 8)).all()


def test_only_images_count_and_at_any_depth(folder):
    before = list_folder(folder)
    (folder / "class_0" / "notes.txt").write_text("no image")
    (folder / "class_0" / ".hidden.png").write_bytes(b"")
    (folder / "README.md").write_text("no class")
    paint(folder / ".thumbnails" / "0.png", 0)
    assert list_folder(folder).names == before.names
    assert list_folder(folder).class_names == before.class_names
    paint(folder / "class_3" / "more" / "deep.PNG", 0)
    after = list_folder(folder)
    assert set(after.names) - set(before.names) == {"class_3/more/deep.PNG"}
    assert after.labels[after.names.index("class_3/more/deep.PNG")] == 3


def test_a_folder_that_is_not_there(tmp_path):
    with refused(str(tmp_path / "nowhere"), "no such folder", "one folder of images per class"):
        list_folder(tmp_path / "nowhere")


def test_nested_folders_are_classes_by_their_whole_path(tmp_path):
    for name in ("Latin/a", "Latin/b", "Greek/alpha", "plain", "Latin/.hidden"):
        paint(tmp_path / name / "0.png", 0)
    listing = list_folder(tmp_path)
    assert listing.class_names == ("Greek/alpha", "Latin/a", "Latin/b", "plain")
    assert listing.names == ("Greek/alpha/0.png", "Latin/a/0.png", "Latin/b/0.png", "plain/0.png")
    assert listing.labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "twin"), [("cat", "cat "), ("cafe\u0301", "caf\u00e9")])
def test_names_that_a_table_cannot_tell_apart_are_refused(folder, tmp_path, name, twin):
    (folder / "class_1").rename(folder / twin)
    assert twin in open_dataset(data_request(folder, tmp_path / "cache")).class_names
    (folder / "class_0").rename(folder / name)
    with refused(ascii(name), ascii(twin), "differ in blanks", "rename one"):
        open_dataset(data_request(folder, tmp_path / "cache"))


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def test_folders_behind_links_are_followed_once(folder, tmp_path):
    before = list_folder(folder).names
    paint(tmp_path / "elsewhere" / "inner" / "0.png", 1)
    paint(tmp_path / "elsewhere" / "1.png", 2)
    link(tmp_path / "elsewhere" / "inner" / "back", tmp_path / "elsewhere")
    link(folder / "class_1" / "linked", tmp_path / "elsewhere")
    link(folder / "class_2" / "again", tmp_path / "elsewhere")
    link(folder / "class_3" / "up", folder)
    listing = list_folder(folder)
    assert set(listing.names) - set(before) == {"class_1/linked/1.png", "class_1/linked/inner/0.png"}
    assert listing.labels[listing.names.index("class_1/linked/inner/0.png")] == 1
    assert listing.left_out == (
        "3 links to folders that are in the data already (class_1/linked/inner/back, class_2/again, class_3/up)",
    )


def test_what_is_left_out_is_counted_and_named(folder):
    for number in range(4):
        (folder / "class_0" / f"{number}.heic").touch()
    (folder / "class_1" / "notes.txt").touch()
    (folder / "class_1" / ".0.png").touch()
    (folder / "split.csv").touch()
    paint(folder / "loose.png", 3)
    paint(folder / ".thumbnails" / "0.png", 3)
    assert walk(folder).left_out == (
        "1 image outside of the classes' folders (loose.png)",
        "5 files without the suffix of an image (class_0/0.heic, class_0/1.heic, class_0/2.heic, ...)",
        "2 paths whose name begins with a dot (.thumbnails, class_1/.0.png)",
    )


# Equal images of several classes


def test_equal_images_of_several_classes_are_named(folder, tmp_path):
    shutil.copyfile(folder / "class_0" / "0.png", folder / "class_7" / "copy.png")
    (folder / "class_2" / "copy.png").symlink_to(folder / "class_1" / "0.png")
    (folder / "class_3" / "copy.png").hardlink_to(folder / "class_3" / "0.png")
    dataset = open_dataset(data_request(folder, tmp_path / "cache"))
    assert dataset.oddities({4, 5, 6, 7}) == (
        "2 groups of images that are equal but of several classes (class_0/0.png = class_7/copy.png, class_1/0.png "
        "= class_2/copy.png), 1 of them in training and in test; 1 group of equal images within a class "
        "(class_3/0.png = class_3/copy.png)"
    )
    assert open_dataset(data_request(folder, tmp_path / "cache")).oddities(()) == dataset.oddities(())


def test_groups_are_positions_of_the_images_that_are_left(tmp_path):
    root = make_folder(tmp_path / "photos", classes=9, per_class=3)
    (root / "class_0" / "0.png").write_bytes(b"no image")
    (root / "class_1" / "0.png").unlink()
    shutil.copyfile(root / "class_3" / "0.png", root / "class_8" / "copy.png")
    dataset = open_dataset(data_request(root, tmp_path / "cache", skip_broken_images=True, min_images=2))
    assert "several classes (class_3/0.png = class_8/copy.png)" in (dataset.oddities({7}) or "")


def unseen(done: int, total: int | None) -> None:
    """No bar."""


def test_smaller_copies_within_a_class_are_named_and_other_pictures_are_not(folder):
    random = np.random.default_rng(0)
    assert check_images(list_class_folders(folder), None, False, unseen)[2] is None
    picture = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8)).resize((400, 300))
    picture.save(folder / "class_0" / "p.jpg", quality=95)
    picture.resize((150, 112)).save(folder / "class_0" / "p-150x112.jpg", quality=70)
    picture.resize((80, 60)).save(folder / "class_1" / "p.png")
    said = check_images(list_class_folders(folder), None, False, unseen)[2]
    assert said == "1 image nearly equal to another of the same class (class_0/p-150x112.jpg ~ class_0/p.jpg)"


def test_grey_and_mirrored_copies_within_a_class_are_named_and_another_colour_is_not(folder):
    random = np.random.default_rng(1)
    picture = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8)).resize((400, 300))
    picture.save(folder / "class_0" / "p.jpg")
    picture.convert("L").save(folder / "class_0" / "grey.jpg")
    ImageOps.mirror(picture).save(folder / "class_0" / "mirrored.jpg")
    Image.merge("RGB", picture.split()[::-1]).save(folder / "class_0" / "swapped.jpg")
    said = check_images(list_class_folders(folder), None, False, unseen)[2]
    names = "class_0/grey.jpg ~ class_0/mirrored.jpg, class_0/grey.jpg ~ class_0/p.jpg"
    assert said == f"2 images nearly equal to another of the same class ({names})"


def test_copies_turned_by_quarters_are_named_also_of_mirror_images(folder):
    random = np.random.default_rng(1)
    picture = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((400, 300))
    picture.save(folder / "class_0" / "p.jpg")
    picture.rotate(90, expand=True).resize((90, 120)).save(folder / "class_0" / "p_90.jpg")
    ImageOps.mirror(picture).rotate(270, expand=True).save(folder / "class_0" / "p_flipped_270.jpg")
    picture.rotate(180).save(folder / "class_0" / "p_180.jpg")
    said = check_images(list_class_folders(folder), None, False, unseen)[2]
    names = ", ".join(f"class_0/p.jpg ~ class_0/{name}.jpg" for name in ("p_180", "p_90", "p_flipped_270"))
    assert said == f"3 images nearly equal to another of the same class ({names})"


def test_masks_beside_photographs_are_named_and_a_folder_of_drawings_is_not(folder):
    random = np.random.default_rng(2)
    (folder / "class_1" / "masks").mkdir()
    levels = np.asarray([0, 51, 102, 153, 204, 255], dtype=np.uint8)
    for name in ("class_0/0_mask", "class_1/masks/0"):
        Image.fromarray(levels[random.integers(0, 6, (48, 64))]).save(folder / f"{name}.png")
    for file in (folder / "class_2").iterdir():
        Image.fromarray(levels[random.integers(0, 2, (48, 64))]).save(file)
    said = check_images(list_class_folders(folder), None, False, unseen)[2]
    names = "class_0/0_mask.png, class_1/masks/0.png"
    assert said == f"2 images of at most 8 colours beside others of the same class, as masks are ({names})"


def test_classes_whose_names_look_alike_are_named(folder, tmp_path):
    for rank, name in enumerate(("Cat", "cat", "\u0421at", "dog")):
        (folder / f"class_{rank}").rename(folder / name)
    found = open_dataset(data_request(folder, tmp_path / "cache")).oddities(())
    assert found == "1 group of classes whose names differ in capitals or script only (Cat = cat)"


def test_pictures_of_a_single_colour_are_named(folder, tmp_path):
    assert open_dataset(data_request(folder, tmp_path / "cache")).oddities(()) is None
    Image.new("RGB", (9, 9), (7, 8, 9)).save(folder / "class_6" / "plain.png")
    dataset = open_dataset(data_request(folder, tmp_path / "cache"))
    said = "1 image of one colour (class_6/plain.png)"
    assert dataset.oddities({6, 7}) == said
    assert check_images(list_class_folders(folder), None, False, unseen)[2] == said


# Parts


@pytest.mark.parametrize("parts", [("train", "val"), ("Training", "testing", "valid"), ("first", "second")])
def test_parts_with_the_same_classes_are_refused(tmp_path, parts):
    for number, part in enumerate(parts):
        make_folder(tmp_path / "all" / part, per_class=2 + number)
        paint(tmp_path / "all" / part / f"only in {part}" / "0.png", 1)
    named = " and ".join(f"all/{part}" for part in sorted(parts))
    with refused(named, "same names, such as class_0", "split.csv") as caught:
        list_folder(tmp_path)
    assert check_images(list_class_folders(tmp_path), None, False, unseen)[1][0] == str(caught.value)
    paint(tmp_path / "all" / "without classes" / "0.png", 1)
    with pytest.raises(DataError, match="such as class_0"):
        list_folder(tmp_path)


def test_parts_of_other_classes_are_refused_by_their_names(tmp_path):
    for part in ("alphabet", "Test"):
        for number in range(8):
            paint(tmp_path / part / f"{part} {number}" / "0.png", number)
    assert len(list_folder(tmp_path).class_names) == 16
    (tmp_path / "alphabet").rename(tmp_path / "train")
    with pytest.raises(DataError, match="Test and train look like parts of one dataset, but"):
        list_folder(tmp_path)


PARTS = [
    {"training_set": ["a"], "test_set": ["b"]},
    {"train2018": ["a"], "val2018": ["b"]},
    {"trainImages": ["a"], "testImages": ["b"]},
    {"Training": ["a"], "Testdaten": ["b"]},
    {"train": ["a"], "dev": ["b"], "unlabeled": ["c"]},
    {"base": ["a"], "val": ["b"], "novel": ["c"]},
    {"images_background": ["Latin/a", "Greek/b"], "images_evaluation": ["Tifinagh/c"]},
    {"fold_1": ["a"], "fold_2": ["b"]},
    {"all/query": ["a"], "all/gallery": ["b"]},
    {"bounding_box_train": ["1"], "bounding_box_test": ["2"]},
    {"bottle/train": ["good"], "bottle/test": ["broken"], "cable": ["good"]},
    {"bottle/train": [""], "bottle/test": [""], "cable": [""]},
    {"entrai\u0302nement": ["a"], "validation": ["b"]},
    {"\u8bad\u7ec3\u96c6": ["a"], "\u6d4b\u8bd5\u96c6": ["b"]},
    {"\u5b66\u7fd2\u7528": ["a"], "\u30c6\u30b9\u30c8\u7528": ["b"]},
    {"\u043e\u0431\u0443\u0447\u0435\u043d\u0438\u0435": ["a"], "\u0442\u0435\u0441\u0442": ["b"]},
    {"opleiding": ["a"], "test": ["b"]},
    {"tr\u00e4ning": ["a"], "validering": ["b"], "test": ["c"]},
    {"metatrain": ["a"], "metatest": ["b"]},
    {"development": ["a"], "evaluation": ["b"]},
    {"enroll": ["a"], "probe": ["b"]},
    {"train_full": ["a"], "test_mini": ["b"]},
    {"Lernmenge": ["a"], "Testmenge": ["b"]},
    {"Tr": ["a"], "Te": ["b"]},
    {"imagesTr": ["a"], "imagesTs": ["b"], "labelsTr": ["a"], "labelsTs": ["b"]},
    {"set_tr": ["a"], "set_va": ["b"], "test": ["c"]},
]
NO_PARTS = [
    {"cats": ["a"], "dogs": ["b"]},
    {"train_val2018": ["Aves/1", "Fungi/2"]},
    {"Alps": ["Val Thorens", "Val d'Isere"]},
    {"Testudo": ["hermanni"], "Trainers": ["red"]},
    {"train": [""], "test tube": [""], "bus": [""]},
    {"vehicles": ["train", "bus"], "tools": ["probe", "hammer"]},
    {"part_3001": [""], "part_3002": [""]},
    {"bricks": ["part_1", "part_2"], "plates": ["part_3"]},
    {"train": ["steam", "ice"], "bus": ["red", "old"]},
    {"tr": ["a"], "te": ["b"], "fr": ["c"]},
    {"Tr": [""], "Te": [""]},
    {"tr": ["a"], "ts": ["b"], "plain": [""]},
]


@pytest.mark.parametrize("tree", [*PARTS, *NO_PARTS], ids=str)
def test_parts_are_known_by_their_names_in_many_forms(tree):
    found = parts_among([f"{outer}/{inner}".rstrip("/") for outer, inners in tree.items() for inner in inners])
    likely = [outer for outer in tree if outer not in ("unlabeled", "cable")]
    assert sorted(found) == (sorted(likely) if tree in PARTS else [])


def test_what_machines_write_beside_images_is_no_image_and_is_named(folder):
    before = list_folder(folder)
    for place in (
        *("class_0/@eaDir/0.png/SYNOPHOTO_THUMB_S.png", "class_1/@__thumb/s100.png", "class_2/Thumbs.db/0.png"),
        *("__MACOSX/class_3/0.png", "$RECYCLE.BIN/0.png", "lost+found/7.png", "class_4/SYNOFILE_THUMB_M.png"),
        *("class_5/@SynoEAStream/0.png", "trashbox/1.png", "found.001/0.png", "~snapshot/class_1/0.png"),
    ):
        paint(folder / place, 1)
    after = list_folder(folder)
    assert (after.names, after.class_names) == (before.names, before.class_names)
    assert after.left_out == (
        "11 paths that a storage or a system writes beside images ($RECYCLE.BIN, __MACOSX, class_0/@eaDir, ...)",
    )
