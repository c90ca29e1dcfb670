"""Images and features that change: a run keeps its own, and other content is never taken for the same."""

import mmap
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protocols.datasets.dataset import Dataset
from protocols.datasets.folder import open_folder
from protocols.images import packing
from protocols.images.decoding import BrokenImageError, decode, decoded
from protocols.images.packed_images import DESCRIPTION, PIXELS
from protocols.images.packing import pack_files
from protocols.jobs import TrainJob, trainings
from protocols.problem import Problem
from protocols.training.build_method import MethodError
from reproduce.errors import WorkFailedError
from reproduce.execution import tasks
from reproduce.execution.clusters.nodes import outcome_of
from reproduce.execution.local import InProcess
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import TrainTask
from results.records.records import run_fingerprint
from results.store.store import Store
from results.whole_files import ChangedFileError
from tests.support.feature_files import feature_problem, opened_features, write_features
from tests.support.image_folders import data_request, make_folder, paint
from tests.support.scheduling import Observer, reproduction
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


def test_a_users_image_is_never_read_through_a_memory_map(tmp_path, monkeypatch):
    """Pillow maps images without compression."""
    path = tmp_path / "image.pgm"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(path)
    monkeypatch.setattr(mmap, "mmap", lambda *_, **__: pytest.fail("mapped"))
    with Image.open(path) as image, pytest.raises(pytest.fail.Exception):
        image.load()
    assert np.array_equal(decode(path, None)[:, :, 0], np.arange(48).reshape(6, 8))


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


def opened_rows(folder: Path) -> tuple[Dataset, np.ndarray]:
    rows = np.arange(64, dtype=np.float32).reshape(32, 2)
    write_features(folder / "data", rows, np.repeat(np.arange(8), 4))
    return opened_features(folder / "data", folder / "cache"), rows


def test_a_run_keeps_its_features_if_the_file_changes(tmp_path):
    dataset, rows = opened_rows(tmp_path)
    np.save(tmp_path / "data" / "features.npy", rows[::-1])
    np.testing.assert_array_equal(as_in_a_worker(dataset.images).take(np.arange(2)), rows[:2])
    (tmp_path / "data" / "features.npy").unlink()
    np.testing.assert_array_equal(dataset.images.take(np.arange(32)), rows)


@pytest.mark.parametrize("content", [b"", b"other features"])
def test_a_worker_refuses_features_of_the_cache_that_were_replaced(tmp_path, content):
    dataset, rows = opened_rows(tmp_path)
    copy = dataset.images.features.path
    np.save(copy, rows)
    np.testing.assert_array_equal(as_in_a_worker(dataset.images).take(np.arange(2)), rows[:2])
    dataset.images.take(np.arange(2))
    copy.write_bytes(content)
    for images in (dataset.images, as_in_a_worker(dataset.images)):
        with pytest.raises(ChangedFileError, match=r"features\.npy"):
            images.take(np.arange(2))


def test_a_damaged_copy_of_features_is_made_again(tmp_path):
    dataset, rows = opened_rows(tmp_path)
    np.save(dataset.images.features.path, rows[::-1])
    again = opened_features(tmp_path / "data", tmp_path / "cache")
    np.testing.assert_array_equal(again.images.take(np.arange(32)), rows)
    assert again.fingerprint == dataset.fingerprint


class Moving(InProcess):
    """Changes the data of the first task while it runs, in one of the ways below."""

    def __init__(self, change, path: Path) -> None:
        super().__init__("cpu")
        self.change, self.path, self.tasks = change, path, 0

    def submit(self, task):
        self.tasks += 1
        if self.tasks > 1:
            return super().submit(task)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tasks, "_train", self.changing(tasks._train))
            patch.setattr(tasks, "_evaluate", self.changing(tasks._evaluate))
            return super().submit(task)

    def changing(self, work):
        def changed(*arguments):
            outcome = work(*arguments)
            self.change(self.path)
            return outcome

        return changed


def in_place(path: Path) -> None:
    """Write other content of the same size and with the same time of change."""
    content, before = bytearray(path.read_bytes()), path.stat()
    content[-5] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def by_another_file(path: Path) -> None:
    shutil.copy(path, path.with_name("other"))
    in_place(path.with_name("other"))
    path.with_name("other").replace(path)


def touched(path: Path) -> None:
    path.write_bytes(path.read_bytes())


def small_data(kind: str, folder: Path) -> tuple[Problem, Path]:
    """A problem, and the file of the cache that its trainings read."""
    if kind == "images":
        problem = small_problem(folder, embedding_size=8)
        return problem, problem.dataset.images.images.folder / PIXELS
    problem = feature_problem(folder)
    return problem, problem.dataset.images.features.path


@pytest.mark.parametrize("change", [in_place, by_another_file, Path.unlink])
@pytest.mark.parametrize("kind", ["images", "features"])
def test_a_training_whose_data_move_is_thrown_away(tmp_path, kind, change):
    problem, path = small_data(kind, tmp_path)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    work = Scheduler(problem, store, Moving(change, path), Observer())
    said = r"triplet, fold 0: .* replaced during the run; .* is thrown away"
    with pytest.raises(WorkFailedError, match=said) as raised:
        work.run({"triplet": reproduction(problem)})
    assert "\n" not in str(raised.value)
    assert len(store.folds()) == 0
    assert not list((tmp_path / "artifacts").rglob("*.pt"))


@pytest.mark.parametrize("kind", ["images", "features"])
def test_a_test_whose_data_move_is_thrown_away(tmp_path, kind):
    problem, path = small_data(kind, tmp_path)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    specs = problem.fold_specs(TRIPLET, "reproduction", 0)
    Scheduler(problem, store, InProcess("cpu"), Observer()).run({"triplet": trained_only(specs)})
    with pytest.raises(WorkFailedError, match=r"triplet, test of run 0: .* replaced during the run"):
        Scheduler(problem, store, Moving(in_place, path), Observer()).run({"triplet": reproduction(problem)})
    assert len(store.folds()) == len(specs)
    assert len(store.runs()) == 0
    assert not list((tmp_path / "artifacts").rglob("*.npz"))


def trained_only(specs):
    name = run_fingerprint(tuple(spec.fingerprint for spec in specs))
    yield from trainings([TrainJob(spec, name) for spec in specs])
    return []


@pytest.mark.parametrize("kind", ["images", "features"])
def test_a_training_during_which_its_data_were_only_touched_is_made_again(tmp_path, kind):
    problem, path = small_data(kind, tmp_path)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    executor = Moving(touched, path)
    Scheduler(problem, store, executor, Observer()).run({"triplet": reproduction(problem)})
    assert len(store.folds()) == 2
    assert executor.tasks == 4


def test_an_error_of_a_training_whose_data_moved_is_not_blamed_on_the_method(tmp_path):
    problem, path = small_data("features", tmp_path)

    def fail(path: Path) -> None:
        in_place(path)
        raise MethodError("the loss is not finite")

    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    with pytest.raises(WorkFailedError, match="replaced during the run"):
        Scheduler(problem, store, Moving(fail, path), Observer()).run({"triplet": reproduction(problem)})


def test_nodes_of_a_cluster_check_the_data_too(tmp_path):
    problem, path = small_data("features", tmp_path)
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    task = pickle.loads(pickle.dumps(TrainTask(TrainJob(spec), problem.training_data(spec), None)))
    in_place(path)
    outcome = outcome_of(task, "cpu", 1, lambda tick: None)
    assert isinstance(outcome, ChangedFileError)
