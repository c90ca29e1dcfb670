"""Damaged checkpoints and caches are named, set aside and made again, with equal results."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from protocols.datasets import glyphs
from protocols.datasets.dataset import Dataset
from protocols.datasets.feature_files import open_features
from protocols.datasets.glyphs import open_glyphs
from protocols.features.frozen_features import FrozenTrunk, with_features
from protocols.images.packed_images import DESCRIPTION, LAYOUT, PIXELS
from protocols.images.packing import pack_files
from protocols.training.train_fold import train_fold
from reproduce.execution.job_outcomes import has_checkpoint
from reproduce.execution.local import InProcess
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import write_tensors
from results.records.artifacts import vectors_path, weights_path
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from results.store.store import Store
from results.whole_files import is_sound
from tests.support.image_folders import data_request, paint
from tests.support.scheduling import Observer, reproduction, without_time
from tests.support.small_problem import COSFACE, SIDE, small_problem


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def removed(path: Path) -> None:
    path.unlink()


def with_another_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


DAMAGES = [emptied, cut_short, with_another_byte]
Damage = Callable[[Path], None]


def only_line(caplog: pytest.LogCaptureFixture, *words: str) -> None:
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "\n" not in line
    for word in words:
        assert word in line


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for number in range(6):
        paint(tmp_path / "pictures" / f"{number}.png", seed=number)
    return tmp_path / "pictures"


@pytest.mark.parametrize("damage", [*DAMAGES, removed])
@pytest.mark.parametrize("name", [PIXELS, LAYOUT, DESCRIPTION])
def test_a_damaged_pack_is_made_again(pictures, tmp_path, caplog, name, damage: Damage):
    names = sorted(path.name for path in pictures.iterdir())
    first = pack_files(pictures, names, 8, tmp_path / "pack")
    whole = [first.images.image(row).copy() for row in range(6)]
    damage(first.images.folder / name)
    again = pack_files(pictures, names, 8, tmp_path / "pack")
    only_line(caplog, str(first.images.folder), ".damaged-1", "made again")
    assert again.content_hash == first.content_hash
    assert all((again.images.image(row) == whole[row]).all() for row in range(6))
    assert first.images.folder.with_name(first.images.folder.name + ".damaged-1").is_dir()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_note_about_a_pack_costs_nothing_but_a_look(pictures, tmp_path, damage: Damage):
    names = sorted(path.name for path in pictures.iterdir())
    first = pack_files(pictures, names, 8, tmp_path / "pack")
    damage(tmp_path / "pack.json")
    assert pack_files(pictures, names, 8, tmp_path / "pack") == first


@pytest.mark.parametrize("name", [PIXELS, "hashes.bin", "state.bin", "stamp"])
def test_an_interrupted_pack_with_lost_files_is_started_again(pictures, tmp_path, monkeypatch, name):
    names = sorted(path.name for path in pictures.iterdir())
    whole = pack_files(pictures, names, 8, tmp_path / "whole")
    monkeypatch.setattr("protocols.images.packing._describe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pack_files(pictures, names, 8, tmp_path / "pack")
    monkeypatch.undo()
    emptied(tmp_path / "pack.partial" / name)
    again = pack_files(pictures, names, 8, tmp_path / "pack")
    assert again.content_hash == whole.content_hash
    assert (again.images.image(5) == whole.images.image(5)).all()


def interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("damage", [*DAMAGES, removed])
@pytest.mark.parametrize("name", ["features.npy", "description.json"])
def test_damaged_features_are_computed_again(tmp_path, caplog, name, damage: Damage):
    dataset = small_problem(tmp_path / "images").dataset
    trunk = FrozenTrunk(
        TrunkSpec(name="small_conv", weights="random").model_copy(update={"frozen": True}),
        ImageSettings(resize=None, crop=SIDE),
    )

    def features() -> Dataset:
        torch.manual_seed(0)
        return with_features(dataset, trunk, tmp_path / "cache", "cpu")

    first = features()
    rows = first.images.take(np.arange(4))
    if name == "description.json" and damage is with_another_byte:
        # Only the record of the file matters here, and a byte elsewhere in the description changes nothing.
        path = first.images.features.path.with_name(name)
        path.write_text(path.read_text().replace('"hash": "', '"hash": "0').replace('"stamp": "', '"stamp": "0'))
    else:
        damage(first.images.features.path.with_name(name))
    again = features()
    only_line(caplog, "the folder of features", ".damaged-1")
    np.testing.assert_array_equal(again.images.take(np.arange(4)), rows)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_note_about_a_file_of_features_is_made_again(tmp_path, damage: Damage):
    root = tmp_path / "data"
    root.mkdir()
    np.save(root / "features.npy", np.arange(64, dtype=np.float32).reshape(32, 2))
    np.save(root / "labels.npy", np.repeat(np.arange(8), 4))
    request = data_request(root, tmp_path / "cache", "features")
    first = open_features(request)
    (note,) = (tmp_path / "cache").glob("features-file-*.json")
    damage(note)
    again = open_features(request)
    assert again.fingerprint == first.fingerprint
    assert again.images.features.record["hash"] == first.images.features.record["hash"]


def test_damaged_glyphs_are_rendered_again(tmp_path, monkeypatch):
    rendered = glyphs.render()
    monkeypatch.setattr(glyphs, "render", lambda: rendered)
    request = data_request(None, tmp_path, "glyphs")
    first = open_glyphs(request)
    for file in (first.images.images.folder / PIXELS, next(tmp_path.glob("*.names.json"))):
        cut_short(file)
        assert open_glyphs(request).fingerprint == first.fingerprint
    assert len(list(tmp_path.glob("*.damaged-*"))) == 2


def unfinished_run(tmp_path: Path) -> tuple[Store, Scheduler]:
    """A run whose trainings are done and whose test was interrupted."""
    problem = small_problem(tmp_path / "cache")
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    work = Scheduler(problem, store, InProcess("cpu"), Observer())
    return store, work


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("beside", [None, vectors_path], ids=["weights", "proxies"])
def test_a_damaged_checkpoint_is_trained_again_with_the_same_result(tmp_path, caplog, damage: Damage, beside):
    store, work = unfinished_run(tmp_path)
    (whole,) = work.run({"cosface": reproduction(work.problem, COSFACE)})["cosface"]
    results = {name: store.fold_result(name) for name in whole.fold_fingerprints}
    with store._database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM runs")
    spec = work.problem.fold_specs(COSFACE, "reproduction", 0)[0]
    weights = weights_path(store.artifacts, spec)
    damage(weights if beside is None else beside(weights))
    _, again = unfinished_run(tmp_path)
    (repeated,) = again.run({"cosface": reproduction(again.problem, COSFACE)})["cosface"]
    only_line(caplog, "the checkpoint", ".damaged-1")
    exclude = {"wall_time", "provenance", "training_time"}
    assert repeated.model_dump(exclude=exclude) == whole.model_dump(exclude=exclude)
    assert next(name for _, name, from_store in again.observer.seen if not from_store) == spec.fingerprint
    assert {name: store.fold_result(name) for name in results} == results
    assert is_sound(weights)


def test_a_repeated_training_with_another_result_is_reported(tmp_path, caplog):
    store, work = unfinished_run(tmp_path)
    spec = work.problem.fold_specs(COSFACE, "reproduction", 0)[0]
    result = train_fold(spec, work.problem.training_data(spec), device="cpu").result
    store.put_fold(spec, result.model_copy(update={"best_map_at_r": 0.99}))
    work.run({"cosface": reproduction(work.problem, COSFACE)})
    only_line(caplog, "cosface, fold 0", "another result", "0.99")
    assert store.fold_result(spec.fingerprint).best_map_at_r == 0.99
    assert without_time([result]) != without_time([store.fold_result(spec.fingerprint)])


def test_a_file_of_another_kind_is_no_checkpoint(tmp_path):
    problem = small_problem(tmp_path / "cache")
    spec = problem.fold_specs(COSFACE, "reproduction", 0)[0]
    path = weights_path(tmp_path, spec)
    assert not has_checkpoint(tmp_path, spec)
    write_tensors(path, {"w": torch.ones(2)})
    assert has_checkpoint(tmp_path, spec)
    np.savez(path.with_suffix(".npz"), w=np.ones(2))
    path.with_suffix(".npz").replace(path)
    assert not has_checkpoint(tmp_path, spec)
    path.write_text(json.dumps({"w": [1, 1]}))
    assert not has_checkpoint(tmp_path, spec)
    assert [file.name for file in sorted(path.parent.iterdir())] == [f"{path.name}.damaged-{n}" for n in (1, 2)]
