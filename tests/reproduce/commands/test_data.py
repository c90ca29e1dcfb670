"""`reproduce data check` on small folders in the published layouts."""

import re
import shutil
from dataclasses import replace

from PIL import Image

from protocols.datasets.dataset_registry import DATASETS
from protocols.datasets.published import Publication
from tests.support import image_folders, published_layouts
from tests.support.command_line import refused
from tests.support.feature_files import some_features, write_features

CUB = Publication("", "", 8, 16, 4, 8)


def row(answer, what):
    """Return the found and the published number in a row of the printed table."""
    (line,) = [line for line in answer.out.splitlines() if re.match(f"│ {what} +│", line)]
    return [int(figure.replace(",", "")) for figure in re.findall(r"│ +([\d,]+) ", line)]


def test_counts_are_shown_beside_the_published_counts(say, tmp_path, monkeypatch):
    image_folders.make_cub(tmp_path / "birds")
    answer = say("data", "check", "cub200", "--data", "birds")
    refused(answer, "not the published number of classes, images, ", "--subset")
    assert row(answer, "images") == [16, 11_788]
    assert row(answer, "classes") == [8, 200]
    assert row(answer, "images of the first 100 classes") == [16, 5_864]
    monkeypatch.setitem(DATASETS, "cub200", replace(DATASETS["cub200"], publication=CUB))
    assert "birds: usable" in say("data", "check", "cub200", "--data", "birds").done().out
    published_layouts.inshop(tmp_path / "clothes")
    part = say("data", "check", "inshop", "--data", "clothes", "--subset")
    assert row(part, "queries") == [4, 14_218]
    assert "usable, a part of the dataset" in part.out


def test_missing_images_are_named(say, tmp_path):
    root = published_layouts.sop(tmp_path / "sop", train=8, test=4)
    gone = sorted(root.rglob("*.JPG"))[:22]
    for path in gone:
        path.unlink()
    answer = say("data", "check", "sop", "--data", "sop", "--subset")
    refused(answer, "named by the publisher but missing", "22 faults, of which 20 are named above; the first: ")
    listed = [line.strip().partition(":")[0] for line in answer.out.splitlines() if ".JPG: " in line]
    assert len(listed) == 20
    assert set(listed) <= {str(path.relative_to(tmp_path)) for path in gone}


def test_all_faults_of_a_folder_are_named_at_once(say, tmp_path):
    root = image_folders.make_folder(tmp_path / "mine", classes=18, per_class=3)
    for name in ("class_2/1.png", "class_2/2.png"):
        (root / name).unlink()
    (root / "class_5" / "0.png").write_bytes(b"no image")
    (root / "class_7" / "scan.heic").touch()
    (root / "split.csv").write_text("class,split\nclass_0,trian\n")
    shutil.copyfile(root / "class_0" / "0.png", root / "class_9" / "copy.png")
    answer = say("data", "check", "folder", "--data", "mine")
    refused(answer, "class 'class_0' has the split 'trian'", "3 faults; the first: ")
    faults = [line for line in answer.out.splitlines() if line.startswith("  ")]
    assert len(faults) == 3
    for words in ("'trian'", "class_5/0.png: cannot be decoded", "'class_2' has only one image"):
        assert any(words in line for line in faults)
    assert "left out: 1 file without the suffix of an image (class_7/scan.heic)" in answer.out
    assert "a run tests" not in answer.out
    equal = "(class_0/0.png = class_9/copy.png), 1 of them in training and in test"
    assert f"the data have 1 group of images that are equal but of several classes {equal}" in answer.out
    (root / "split.csv").unlink()
    options = ["--skip-broken-images", "--min-images", "2"]
    left = say("data", "check", "folder", "--data", "mine", *options).done()
    assert "folder: 51 images of 17 classes" in left.out
    assert "left out: 1 image that cannot be decoded (class_5/0.png)" in left.out
    assert "left out: 1 class with fewer than 2 images (class_2)" in left.out
    assert left.out.endswith("mine: usable\n")
    assert re.search(r"\nembedders that start at principal components can have \d+ dimensions at most\n", left.out)


def test_every_file_is_opened_and_the_test_classes_are_named(say, tmp_path):
    root = image_folders.make_folder(tmp_path / "mine", classes=16, per_class=3)
    checked = say("data", "check", "folder", "--data", "mine").done()
    assert "\n8 test classes chosen as the last half by name (class_2, class_3, class_4, ...)\n" in checked.out
    Image.open(root / "class_0" / "0.png").resize((99, 99)).save(root / "class_0" / "0.jpg")
    whole = (root / "class_0" / "0.jpg").read_bytes()
    broken = {"empty.png": b"", "text.jpg": b"no image", "cut.jpg": whole[: len(whole) // 2]}
    for name, content in broken.items():
        (root / "class_1" / name).write_bytes(content)
    answer = say("data", "check", "folder", "--data", "mine")
    refused(answer, "3 faults; the first: ")
    for name in broken:
        assert re.search(rf"class_1/{re.escape(name)}: cannot be decoded", answer.out)
    (root / "split.csv").write_text(
        "class,split\n" + "".join(f"class_{n},{'train' if n > 3 else 'test'}\n" for n in range(16))
    )
    given = say("data", "check", "folder", "--data", "mine", "--skip-broken-images").done()
    assert "\n4 test classes given by the split file (class_0, class_1, class_2, ...)\n" in given.out


def test_check_of_other_datasets(say, tmp_path):
    assert "nothing to check" in say("data", "check", "glyphs").out
    for c in range(8):
        for i in range(2):
            image_folders.paint(tmp_path / "mine" / str(c) / f"{i}.png", seed=c)
    few = say("data", "check", "folder", "--data", "mine")
    refused(few, "8 classes: the MLRC split needs at least 16")
    assert "16 images of 8 classes" in few.out
    refused(say("data", "check", "folder"), "--data FOLDER")
    refused(say("data", "check", "birds"), "unknown dataset 'birds'")
    refused(say("data", "check", "sop", "--data", "mine"), "no Ebay_train.txt and no")
    refused(say("data", "check", "folder", "--data", "nowhere"), "nowhere: no such folder")
    (tmp_path / "mine" / "1" / "0.png").rename(tmp_path / "mine" / "1" / "caf\udce9.png")
    refused(
        say("data", "check", "folder", "--data", "mine"),
        r"the name '1/caf\udce9.png' is not UTF-8 or has control characters; rename",
    )


def test_features_are_checked_as_a_run_does_and_scored_as_they_are(say, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduce.commands.data._MANY_ROWS", 32)
    features = some_features()
    features[3] = 1
    write_features(tmp_path / "rows", features, [number // 4 for number in range(64)])
    checked = say("data", "check", "features", "--data", "rows")
    assert (checked.code, checked.err) == (0, "")
    assert "a run tests 8 classes (32 samples); a fold trains on 6 classes and validates on 2" in checked.out
    assert "\ncomparing 32 test rows with one another, which can take minutes\nthe features as given" in checked.out
    assert "on 2, with 24 training samples at least\n8 test classes chosen as the last half by number" in checked.out
    assert "\nembedders that start at principal" in checked.out
    assert "components can have 12 dimensions at most" in checked.out
    assert "1 row of one value (row 3)" in checked.out
    given = re.search(r"have P@1 ([\d.]+) % and MAP@R ([\d.]+) % on these test classes", checked.out)
    assert 50 < float(given[2]) < float(given[1]) < 100
    for value in (float("nan"), 0):
        features[5] = value
        write_features(tmp_path / "rows", features, [number // 4 for number in range(64)])
        refused(say("data", "check", "features", "--data", "rows"), f"row 5 has the norm {value:.2g}; ")
    rows = [f"{row}.png,{row // 4}" for row in range(64)]
    asked = write_features(tmp_path / "asked", some_features(), range(64))
    (asked / "labels.csv").write_text("\n".join(["file,label", *rows]))
    parts = ["train"] * 32 + ["query", "gallery", "gallery", "gallery"] * 8
    (asked / "split.csv").write_text("\n".join(["file,split", *(f"{n}.png,{part}" for n, part in enumerate(parts))]))
    assert "8 queries are searched for among 24 others" in say("data", "check", "features", "--data", "asked").out
    write_features(tmp_path / "few", some_features(), [number // 8 for number in range(64)])
    refused(say("data", "check", "features", "--data", "few"), "8 classes: the MLRC split needs at least 16")


def test_a_split_file_without_some_classes_counts_those_that_it_names(say, tmp_path):
    root = image_folders.make_folder(tmp_path / "mine", classes=18)
    parts = [f"class_{c},{'train' if c < 9 else 'test'}" for c in range(16)]
    (root / "split.csv").write_text("\n".join(["class,split", *parts]))
    answer = say("data", "check", "folder", "--data", "mine")
    refused(
        answer, "mine/split.csv: names 16 of 18 classes, which leaves 2 classes without a split (class_16, class_17);"
    )
    assert "a run tests" not in answer.out
    (root / "split.csv").write_text("\n".join(["class,split", *parts, "class_16,test", "class_17,test"]))
    assert "a run tests 9 classes (18 samples)" in say("data", "check", "folder", "--data", "mine").done().out
