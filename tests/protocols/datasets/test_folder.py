"""Any folder of class folders as a dataset."""

from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.folder import list_folder
from protocols.images.decoding import decode
from tests.support.image_folders import assert_said, data_request, paint


def test_a_folder_of_class_folders(folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset(data_request(folder, tmp_path / "cache"))
    assert dataset.name == "folder"
    assert dataset.class_names == tuple(f"class_{c}" for c in range(8))
    assert dataset.n_classes == 8
    assert dataset.images.labels.tolist() == np.arange(8).repeat(2).tolist()
    assert dataset.left_out == ()
    for index, (c, i) in enumerate((c, i) for c in range(8) for i in range(2)):
        assert (dataset.images.image(index) == decode(folder / f"class_{c}" / f"{i}.png", 8)).all()


def test_only_images_count_and_at_any_depth(folder: Path) -> None:
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


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list_folder(tmp_path / "nowhere")
    assert_said(caught, str(tmp_path / "nowhere"), "no such folder", "one folder of images per class")


def test_nested_folders_are_classes_by_their_whole_path(tmp_path: Path) -> None:
    for name in ("Latin/a", "Latin/b", "Greek/alpha", "plain", "Latin/.hidden"):
        paint(tmp_path / name / "0.png", 0)
    listing = list_folder(tmp_path)
    assert listing.class_names == ("Greek/alpha", "Latin/a", "Latin/b", "plain")
    assert listing.names == ("Greek/alpha/0.png", "Latin/a/0.png", "Latin/b/0.png", "plain/0.png")
    assert listing.labels.tolist() == [0, 1, 2, 3]


def test_a_nested_class_without_images_is_told(folder: Path, tmp_path: Path) -> None:
    (folder / "nested" / "empty").mkdir(parents=True)
    with pytest.raises(DataError, match="class 'nested/empty' has no image"):
        open_dataset(data_request(folder, tmp_path / "cache"))
