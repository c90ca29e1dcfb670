"""iNaturalist 2018 in the split of Smooth-AP's authors, whole and broken."""

import json
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.inat2018 import list_inat2018
from protocols.datasets.publication import Counts
from protocols.evaluation.test_data import test_data as data_for_testing
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.run_experiment import notes_on_data
from reproduce.execution.session import open_session, outline_of, problem_of
from reproduce.storage import storage_paths
from tests.support.image_folders import assert_said, data_request
from tests.support.published_layouts import inat2018

TRAIN = ("Fungi/3", "Fungi/7", "Aves/10", "Aves/12", "Aves/90")
TEST = ("Fungi/4", "Fungi/9", "Aves/11")
WHOLE = Counts(8, 24, 5, 15, is_split_given=True)
LISTS = [f"Inat_dataset_splits/Inaturalist_{part}_set1.txt" for part in ("train", "test")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return inat2018(tmp_path / "inat")


def refused(root: Path, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        list_inat2018(root)
    assert_said(caught, *words)


def rewrite(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_training_classes_come_first_by_their_ids(root: Path) -> None:
    listing = list_inat2018(root)
    assert listing.class_names == TRAIN + TEST
    assert listing.trainval_classes == 5
    assert np.bincount(listing.labels).tolist() == [3] * 8
    for name, label in zip(listing.names, listing.labels, strict=True):
        assert Path(name).parent.as_posix() == f"train_val2018/{listing.class_names[label]}"
        assert (root / name).is_file()


def test_the_lists_may_lie_beside_the_annotations(root: Path) -> None:
    before = list_inat2018(root)
    for file in LISTS:
        (root / file).rename(root / Path(file).name)
    assert list_inat2018(root).names == before.names


@pytest.mark.parametrize("protocol", ["mlrc", "standard"])
def test_every_protocol_has_the_authors_split(root: Path, tmp_path: Path, protocol: str) -> None:
    """Also where nothing is downloaded yet, which `plan` allows."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"title: T\nprotocol: {protocol}\ndataset: {{name: inat2018, root: inat, subset: true}}\n"
        "methods: [untrained]\ntrunk: {name: small_conv, weights: random}\n"
        "images: {resize: 8, crop: 8}\n"
    )
    (experiment,) = load_experiments(str(file), {}).values()
    dataset = open_dataset(data_request(root, tmp_path / "cache", "inat2018"))
    split = problem_of(experiment, dataset).split
    assert split.name == ("mlrc_conventional" if protocol == "mlrc" else "conventional")
    assert [dataset.class_names[rank] for rank in split.test] == list(TEST)
    assert len(data_for_testing(dataset, split).images) == 9
    assert {rank for fold in split.folds for rank in fold.validation} <= set(range(5))
    outline = outline_of(experiment)
    assert outline is not None
    planned = problem_of(experiment, outline).split
    assert (planned.name, len(planned.test)) == (split.name, 2_452)
    paths = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    assert notes_on_data(open_session("mine", experiment, paths, None)) == []


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff\xfe", b"[]", b"{}", b'{"images": [], "annotations": [3]}'),
        b'{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": []}',
        b'{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "category_id": "3"}]}',
    ],
)
def test_other_annotations(root: Path, content: bytes) -> None:
    (root / "val2018.json").write_bytes(content)
    refused(root, str(root / "val2018.json"), "not the competition's annotations", "val2018.json.tar.gz")


def test_an_image_without_annotation(root: Path) -> None:
    file = root / "train2018.json"
    content = json.loads(file.read_text())
    name = content["images"].pop(0)["file_name"]
    file.write_text(json.dumps(content))
    refused(root, str(root / LISTS[0]), "line 1", name, "not in train2018.json or val2018.json")


def test_an_image_in_the_folder_of_another_category(root: Path) -> None:
    rewrite(root / "train2018.json", '"category_id": 90', '"category_id": 12')
    refused(root, str(root / LISTS[0]), "lies in folder '90'", "category 12")


def test_a_class_of_both_lists(root: Path) -> None:
    first = (root / LISTS[0]).read_text().splitlines()[0]
    with (root / LISTS[1]).open("a") as file:
        file.write(first + "\n")
    refused(root, "category 90 is in Inaturalist_train_set1.txt too")
