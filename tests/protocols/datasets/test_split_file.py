"""A split of one's own, beside images and beside features."""

from pathlib import Path

import numpy as np
import pytest
import torch

from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.folder import list_folder
from protocols.datasets.listing import DataError
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.metrics.retrieval import normalized, query_scores
from results.spec.conditions import ImageSettings
from tests.support.documentation import ROOT, blocks
from tests.support.image_folders import data_request, paint, refused

TRAIN = [7, 1, 3, 5]
FILES = [f"class_{c}/{i}.png" for c in range(8) for i in range(2)]


def by_class(path):
    lines = [f"class_{c},{'train' if c in TRAIN else 'test'}" for c in range(8)]
    path.write_text("\n".join(["class,split", *lines]) + "\n")
    return path


def by_file(path, test="test", **changes):
    parts = {file: "train" if int(file[6]) in TRAIN else test for file in FILES} | changes
    path.write_text("\n".join(["file,split", *(f"{file},{part}" for file, part in parts.items() if part)]) + "\n")
    return path


def make_features(root):
    root.mkdir()
    np.save(root / "features.npy", np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32))
    rows = [f"{file},{file.split('/')[0]}" for file in FILES]
    (root / "labels.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    return root


def opened(root, cache, split=None):
    if (root / "features.npy").exists():
        return open_dataset(data_request(root, cache, "features", images=ImageSettings(), split=split))
    return open_dataset(data_request(root, cache, split=split))


@pytest.fixture(params=["images", "features"])
def data(request, folder, tmp_path):
    return folder if request.param == "images" else make_features(tmp_path / "features")


@pytest.mark.parametrize("write", [by_class, by_file])
def test_training_classes_come_first_and_are_the_trainval_classes(data, tmp_path, write):
    plain = opened(data, tmp_path / "cache")
    write(data / "split.csv")
    dataset = opened(data, tmp_path / "cache")
    assert dataset.class_names == tuple(f"class_{c}" for c in (1, 3, 5, 7, 0, 2, 4, 6))
    assert dataset.trainval_classes == 4
    assert [dataset.class_names[label] for label in dataset.images.labels] == [file.split("/")[0] for file in FILES]
    assert dataset.fingerprint != plain.fingerprint
    assert dataset.are_test_classes_given


def test_a_split_elsewhere_gives_the_same_data(data, tmp_path):
    chosen = by_class(tmp_path / "elsewhere.csv")
    there = opened(data, tmp_path / "cache", chosen)
    by_class(data / "split.csv")
    assert opened(data, tmp_path / "cache").fingerprint == there.fingerprint


def test_one_name_may_be_written_with_either_form_of_its_accents(folder, tmp_path):
    (folder / "class_0").rename(folder / "cafe\u0301")
    lines = by_class(folder / "split.csv").read_text().replace("class_0", "caf\u00e9")
    (folder / "split.csv").write_text(lines, encoding="utf-8")
    assert opened(folder, tmp_path / "cache").class_names[4:5] == ("cafe\u0301",)


def test_queries_and_gallery(data, tmp_path):
    queries = {file: "query" for file in FILES if file.endswith("0.png") and int(file[6]) not in TRAIN}
    by_file(data / "split.csv", "gallery", **queries)
    dataset = opened(data, tmp_path / "cache")
    assert dataset.is_query is not None
    assert [file for file, is_query in zip(FILES, dataset.is_query, strict=True) if is_query] == list(queries)


def test_the_half_of_the_classes_that_is_tested_needs_a_query(data, tmp_path):
    parts = {file: "query" if file.endswith("0.png") and int(file[6]) < 4 else "gallery" for file in FILES}
    by_file(data / "split.csv", **parts)
    with pytest.raises(DataError, match="no test class has a query"):
        opened(data, tmp_path / "cache")


def test_an_instance_split_is_refused_with_the_reason(data, tmp_path):
    by_file(data / "split.csv", **{"class_3/1.png": "test"})
    with refused("split.csv", "'class_3' is in train and in test", "MLRC tests on classes that no training sees"):
        opened(data, tmp_path / "cache")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("class,part\nclass_0,train\n", ["first line", "column split"]),
        ("name,split\n", ["first line", "the column class or the column file"]),
        (
            "file,class,split\nclass_0/0.png,a,train\n",
            ["names 1 of 16 files, which leaves 15 files without a split (class_0/1.png, "],
        ),
        ("file,class,split\nx.png,a,train\nx.png,b,train\n", ["'x.png' is in 'a' and in 'b'", "once"]),
        ("file,class,split\nx.png, ,train\n", ["line 2 has no class"]),
        ("class,split\nclass_0,training\n", ["class 'class_0' has the split 'training'", "known are train, test"]),
        ("class,split\nclass_0,train\nclass_0,test\n", ["'class_0' is in 'train' and in 'test'", "once"]),
        (
            "class,split\nclass_0,train\n",
            ["names 1 of 8 classes, which leaves 7 classes without a split (class_1, class_2, class_3, ...)"],
        ),
        ("class,split\n" + "".join(f"class_{c},train\n" for c in range(9)), ["names the class 'class_8'", "not there"]),
        ("class,split\nclass_0,train\nclass_9,test\n", ["names 1 of 8 classes", "(and 1 more;"]),
        ("class,split\nclass_0,query\n", ["'class_0' has the split 'query'", "column file"]),
        (b"class,split\n\xff,train\n", ["not a CSV file in UTF-8"]),
        ("class,split\nclass_0\n", ["line 2 has 1 cell", "2 columns"]),
    ],
)
def test_what_a_split_file_cannot_say(folder, content, words):
    (folder / "split.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused("split.csv", *words):
        list_folder(folder)


def test_test_beside_queries_is_refused(folder):
    by_file(folder / "split.csv", **{"class_0/0.png": "query"})
    with pytest.raises(DataError, match="test beside query or gallery"):
        list_folder(folder)


def test_files_need_names(tmp_path):
    features = make_features(tmp_path / "features")
    (features / "labels.csv").unlink()
    np.save(features / "labels.npy", np.repeat(np.arange(8), 2))
    by_file(features / "split.csv")
    with pytest.raises(DataError, match="the samples have no names; use a column class"):
        opened(features, tmp_path / "cache")


@pytest.fixture
def shop(tmp_path):
    """Parts with folders of their own, so that a class is in two; one product is in the gallery only.

    Images of several formats lie beside other files.
    """
    for product in range(13):
        for i in range(4):
            part = "train" if product < 8 else "query" if i == 0 and product < 12 else "gallery"
            suffix = (".jpg", ".png", ".JPEG", ".webp")[i]
            paint(tmp_path / "shop" / part / f"p{product:x}" / f"{i}{suffix}", seed=10 * product + i)
    (tmp_path / "shop" / "train" / "p0" / "sizes.txt").touch()
    (tmp_path / "shop" / "train" / "p0" / "Thumbs.db").touch()
    return tmp_path / "shop"


def test_the_recipe_for_queries_and_gallery(shop, tmp_path, monkeypatch):
    """The snippet of the page on datasets, and all that follows from its file up to the intervals over classes."""
    monkeypatch.chdir(tmp_path)
    (snippet,) = [code for code in blocks(ROOT / "docs" / "datasets.md", "python") if "shop" in code]
    exec(snippet, {})
    dataset = opened(shop, tmp_path / "cache")
    assert dataset.class_names == tuple(f"p{product:x}" for product in range(13))
    for name, label in zip(dataset.names, dataset.images.labels, strict=True):
        assert Path(name).parent.name == dataset.class_names[label]
    data = data_for_testing(dataset, dataset.split("mlrc"))
    assert (len(data.images), int(data.is_query.sum())) == (20, 4)
    labels = torch.from_numpy(data.images.labels)
    embeddings = normalized(torch.randn(20, 3, generator=torch.Generator().manual_seed(0)))
    scores = query_scores(embeddings, labels, data.is_query)
    assert scores.of_classes(labels.unique())[0].tolist() == [1, 1, 1, 1, 0]
    right = torch.nn.functional.one_hot(labels).float()
    assert query_scores(right, labels, data.is_query).mean().map_at_r == 1


def test_the_classes_of_files_replace_their_folders(folder, tmp_path):
    lines = [f"{file},{'even' if int(file[6]) % 2 else 'odd'}_{int(file[6]) // 4}_{file[8]},train" for file in FILES]
    lines[-4:] = [line.replace("train", "test") for line in lines[-4:]]
    (folder / "split.csv").write_text("\n".join(["file,class,split", *lines]))
    with pytest.raises(DataError, match="'even_1_0' is in train and in test"):
        list_folder(folder)
    lines = [f"{file},c{int(file[6]) // 2},{'train' if int(file[6]) < 4 else 'test'}" for file in reversed(FILES)]
    (folder / "split.csv").write_text("\n".join(["file,class,split", *lines]))
    listing = list_folder(folder)
    assert listing.class_names == ("c0", "c1", "c2", "c3")
    assert listing.labels.tolist() == [int(file[6]) // 2 for file in listing.names]


def test_features_have_their_classes_in_their_labels(tmp_path):
    features = make_features(tmp_path / "features")
    lines = [f"{file},a,train" for file in FILES]
    (features / "split.csv").write_text("\n".join(["file,class,split", *lines]))
    with pytest.raises(DataError, match="the labels of the features are their classes"):
        opened(features, tmp_path / "cache")
