"""Images that change: the pack of a run is never replaced under it, and other content is never taken for the same."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.feature_files import open_features
from protocols.datasets.folder import open_folder
from protocols.images import packing
from protocols.images.decoding import BrokenImageError, decode, decoded
from protocols.images.packed_images import DESCRIPTION, PIXELS
from protocols.images.packing import pack_files
from protocols.jobs import TrainJob, trainings
from protocols.verified_files import ChangedFileError
from reproduce.errors import WorkFailedError
from reproduce.execution.local import InProcess
from reproduce.execution.scheduler import Scheduler
from results.store.store import Store
from tests.support.image_folders import data_request, make_folder, paint
from tests.support.scheduling import Observer
from tests.support.small_problem import TRIPLET, small_problem


def as_in_a_worker(value):
    """A copy as another process gets it: nothing is open yet."""
    return pickle.loads(pickle.dumps(value))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "images")


def repainted(path: Path, seed: int) -> None:
    """Give an image other pixels, but the same size in bytes and the same time of change."""
    before, length = path.stat(), path.stat().st_size
    paint(path, seed)
    content = path.read_bytes()
    path.write_bytes(content + bytes(max(0, length - len(content))))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_run_keeps_its_pack_if_the_images_change(root, tmp_path):
    request = data_request(root, tmp_path / "cache")
    running = open_folder(request)
    before = running.images.image(0).copy()
    paint(root / "class_0" / "0.png", seed=999)
    other = open_folder(request)
    assert other.fingerprint != running.fingerprint
    in_a_worker = as_in_a_worker(running.images)
    assert (in_a_worker.image(0) == before).all()
    assert (other.images.image(0) == decode(root / "class_0" / "0.png", 8)).all()
    assert (other.images.image(0) != before).any()


def test_the_same_size_and_time_are_not_the_same_image(root, tmp_path):
    request = data_request(root, tmp_path / "cache")
    first = open_folder(request)
    repainted(root / "class_3" / "1.png", seed=5)
    assert open_folder(request).fingerprint != first.fingerprint


@pytest.mark.parametrize("change", ["touched", "copied"])
def test_equal_images_with_another_stamp_are_recognised_by_their_content(root, tmp_path, monkeypatch, change):
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))
    first = pack_files(root, names, 8, tmp_path / "pack")
    if change == "touched":
        os.utime(root / names[0])
    else:
        shutil.copytree(root, tmp_path / "copy")
        shutil.rmtree(root)
        (tmp_path / "copy").rename(root)
    monkeypatch.setattr(packing, "decoded", lambda *_, **__: pytest.fail("decoded again"))
    assert pack_files(root, names, 8, tmp_path / "pack") == first


def test_images_that_change_while_they_are_decoded_give_no_pack(root, tmp_path, monkeypatch):
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))

    def changing(path: Path, resize: int | None, *, as_mlrc: bool):
        outcome = decoded(path, resize, as_mlrc=as_mlrc)
        if path == root / names[1]:
            # In one piece, since another thread may decode it now.
            paint(tmp_path / "other.png", seed=7)
            os.replace(tmp_path / "other.png", root / names[0])
        return outcome

    monkeypatch.setattr(packing, "decoded", changing)
    with pytest.raises(BrokenImageError, match="changed while they were decoded; run the same command again"):
        pack_files(root, names, 8, tmp_path / "pack")
    assert list(tmp_path.glob("pack-*")) == []


def test_a_copied_cache_is_read_once_and_then_used(root, tmp_path):
    dataset = open_folder(data_request(root, tmp_path / "cache"))
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    copied = open_folder(data_request(root, tmp_path / "copy"))
    assert copied.fingerprint == dataset.fingerprint
    assert (copied.images.image(3) == dataset.images.image(3)).all()
    assert list((tmp_path / "copy").glob("*.damaged-*")) == []


@pytest.mark.parametrize("name", [PIXELS, DESCRIPTION])
def test_a_worker_refuses_a_pack_that_holds_something_else(tmp_path, name):
    """Other pixels, or the whole pack of other images, under the name of the pack of a run."""
    first, other = (small_problem(tmp_path / folder, embedding_size=8) for folder in ("first", "other"))
    images = first.dataset.images.images
    if name == PIXELS:
        pixels = bytearray((images.folder / PIXELS).read_bytes())
        pixels[5] ^= 1
        (images.folder / PIXELS).write_bytes(pixels)
    else:
        description = (other.dataset.images.images.folder / DESCRIPTION).read_text()
        (images.folder / DESCRIPTION).write_text(description.replace(images.identity, "0" * 32))
    with pytest.raises(ChangedFileError, match="damaged, or replaced during the run; run the same command again"):
        as_in_a_worker(images).image(0)


def test_a_replaced_pack_ends_the_run_with_one_line(tmp_path):
    problem = small_problem(tmp_path / "cache")
    images = problem.dataset.images.images
    content = (images.folder / PIXELS).read_bytes()
    (images.folder / PIXELS).write_bytes(content[::-1])
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    work = Scheduler(as_in_a_worker(problem), store, InProcess("cpu"), Observer())
    with pytest.raises(WorkFailedError, match=r"triplet, fold 0: .*damaged, or replaced") as raised:
        work.run({"triplet": trainings([TrainJob(spec) for spec in problem.fold_specs(TRIPLET, "search", 0)])})
    assert "\n" not in str(raised.value)
    assert len(store.folds()) == 0


def test_a_worker_refuses_a_file_of_features_that_was_replaced(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    rows = np.arange(64, dtype=np.float32).reshape(32, 2)
    np.save(root / "features.npy", rows)
    np.save(root / "labels.npy", np.repeat(np.arange(8), 4))
    dataset = open_features(data_request(root, tmp_path / "cache", "features"))
    np.save(root / "features.npy", rows)
    np.testing.assert_array_equal(as_in_a_worker(dataset.images).take(np.arange(2)), rows[:2])
    np.save(root / "features.npy", rows[::-1])
    with pytest.raises(ChangedFileError, match=r"features\.npy"):
        as_in_a_worker(dataset.images).take(np.arange(2))
