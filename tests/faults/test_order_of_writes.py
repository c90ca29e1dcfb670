"""Files are on the disk before the store says that they exist, so that a power cut loses nothing that is recorded."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protocols.features import frozen_features
from protocols.images.packing import pack_files
from protocols.users_code.kept import keep_sources
from protocols.users_code.sources import hashed_name
from reproduce.run.tasks import write_tensors
from results.atomic_files import atomic_folder, write_atomically
from results.records.artifacts import (
    FigureData,
    Recording,
    figure_data_path,
    recording_path,
    vectors_path,
    weights_path,
)
from results.spec.conditions import ImageSettings
from results.spec.experiment_spec import RecordingSettings
from results.spec.source_names import SourceName
from results.spec.trunk_spec import TrunkSpec
from results.store.store import Store
from tests.support.disk import Disk
from tests.support.labs import reproduction, run_here
from tests.support.small_setup import COSFACE, SIDE, small_setup

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the open files in /proc")


def some_figure_data() -> FigureData:
    arrays = {name: np.zeros((2, 2), dtype=np.float32) for name in FigureData.__dataclass_fields__}
    return FigureData(**arrays)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_atomically(path, "text"),
        lambda path: write_tensors(path, {"w": torch.ones(3)}),
        lambda path: Recording(()).save(path),
        lambda path: some_figure_data().save(path),
    ],
    ids=["file", "checkpoint", "recording", "figure_data"],
)
def test_a_written_file_survives_a_power_cut(tmp_path, monkeypatch, write):
    disk, path = Disk(tmp_path, monkeypatch), tmp_path / "new" / "deeper" / "file"
    write(path)
    assert disk.lost(path) == []
    assert list(disk.after_a_cut()) == [path]


def test_a_cut_during_a_write_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch):
    disk, path, seen = Disk(tmp_path, monkeypatch), tmp_path / "file", []
    write_atomically(path, "old")
    for name in ("fsync", "replace"):
        call = getattr(os, name)

        def watched(*arguments, call=call):
            seen.append(disk.after_a_cut()[path])
            call(*arguments)
            seen.append(disk.after_a_cut()[path])

        monkeypatch.setattr(os, name, watched)
    write_atomically(path, "new")
    assert seen[0] == b"old"
    assert seen[-1] == b"new"
    assert set(seen) == {b"old", b"new"}


def test_a_file_that_is_only_written_and_renamed_would_be_lost(tmp_path, monkeypatch):
    """The check sees what it is made for."""
    disk, path = Disk(tmp_path, monkeypatch), tmp_path / "file"
    (tmp_path / "partial").write_text("text")
    (tmp_path / "partial").replace(path)
    assert disk.lost(path) == [str(path)]


def test_a_folder_survives_with_its_files(tmp_path, monkeypatch):
    disk, path = Disk(tmp_path, monkeypatch), tmp_path / "new" / "folder"
    with atomic_folder(path) as folder:
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("1")
        (folder / "file").write_text("2")
    assert disk.lost(path / "below" / "file", path / "file") == []


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_packs_of_images_survive(tmp_path, monkeypatch):
    for number in range(3):
        Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / f"{number}.png")
    disk, cache = Disk(tmp_path, monkeypatch), tmp_path / "new" / "cache"
    packing = pack_files(tmp_path, ["0.png", "1.png", "2.png"], 8, cache / "files")
    assert len(files_below(packing.images.folder)) == 2
    assert disk.lost(*files_below(cache)) == []


def test_features_survive(tmp_path, monkeypatch):
    disk, cache = Disk(tmp_path, monkeypatch), tmp_path / "features"
    setup = small_setup(tmp_path / "images")
    trunk = frozen_features.FrozenTrunk(
        TrunkSpec(name="small_conv", weights="random").model_copy(update={"frozen": True}),
        ImageSettings(resize=None, crop=SIDE),
    )
    frozen_features.with_features(setup.dataset, trunk, cache, "cpu")
    files = [path for path in files_below(cache) if path.parent != cache]
    assert len(files) == 1
    assert disk.lost(*files) == []


def test_kept_sources_survive(tmp_path, monkeypatch):
    source = tmp_path / "my_loss.py"
    source.write_text("x = 1\n")
    disk = Disk(tmp_path, monkeypatch)
    monkeypatch.setattr("protocols.users_code.sources._known", {})
    name = SourceName.parse(hashed_name(f"{source}:x"))
    assert name is not None
    digest = str(name.digest)
    keep_sources(tmp_path / "artifacts")
    kept = tmp_path / "artifacts" / "sources" / digest / "my_loss.py"
    assert disk.lost(kept) == []


def test_the_store_names_only_files_that_are_on_the_disk(tmp_path, monkeypatch):
    """The order for every kind of artifact: write, sync, rename, sync of the folder, and then the commit."""
    setup = small_setup(tmp_path / "cache")
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    disk, committed = Disk(tmp_path, monkeypatch), []
    put_fold, put_run = store.put_fold, store.put_run

    def folds_files(spec, result):
        weights = weights_path(store.artifacts, spec)
        files = [weights, vectors_path(weights), recording_path(weights)]
        committed.append([file.name for file in files if file.exists()])
        assert disk.lost(*files) == []
        put_fold(spec, result)

    def runs_files(record):
        file = figure_data_path(store.artifacts, record.fingerprint)
        committed.append([file.name])
        assert disk.lost(file) == []
        put_run(record)

    monkeypatch.setattr(store, "put_fold", folds_files)
    monkeypatch.setattr(store, "put_run", runs_files)
    recordings = RecordingSettings(epochs=(1,), classes=2)
    run_here(setup, store, {"cosface": reproduction(setup, COSFACE)}, recordings=recordings)
    assert [len(files) for files in committed] == [3, 3, 1]
