"""`reproduce export`: other tools can read the exported models, embeddings and tables."""

import ast
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from reproduce.commands.export import new_folder
from reproduce.errors import InputError
from reproduce.outputs import export_models as exporting_models
from reproduce.outputs import load_model
from reproduce.outputs.find_runs import find_run
from results.spec.training_spec import ImageSettings
from results.store.store import Store
from tests.support.command_line import ask, environment
from tests.support.sample_records import some_summary
from tests.support.tiny_run import striped_images

# The store's scores were made on a CPU.
CPU = ("embeddings", "--device", "cpu")


@pytest.fixture
def export(tiny_run, capsys, monkeypatch):
    """A function that runs `reproduce export` in the folder of the finished run."""
    monkeypatch.chdir(tiny_run)
    yield lambda *arguments: ask("export", *map(str, arguments), capsys=capsys, monkeypatch=monkeypatch)
    torch.set_num_threads(1)


def store_of(folder: Path) -> Store:
    return Store(f"sqlite:///{folder}/runs/store.sqlite", folder / "runs" / "artifacts")


def without_the_suite(folder: Path) -> Path:
    """A folder for the module path in which importing a room of the suite fails."""
    folder.mkdir()
    for room in ("losses", "results", "protocols", "reports", "reproduce"):
        (folder / f"{room}.py").write_text("raise ImportError('this model must run without the suite')")
    return folder


def naive_scores(embeddings: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Compute precision@1 and MAP@R (MLRC, section 3.2), image by image."""
    first, averages = [], []
    for query in range(len(labels)):
        distances = ((embeddings - embeddings[query]) ** 2).sum(1)
        order = [other for other in np.argsort(distances, kind="stable") if other != query]
        right = labels[order] == labels[query]
        r = int(right.sum())
        first.append(float(right[0]))
        averages.append(sum(right[: i + 1].mean() for i in range(r) if right[i]) / r)
    return float(np.mean(first)), float(np.mean(averages))


def test_a_model_is_a_plain_state_dict_with_a_description(export, tiny_run, tmp_path):
    answer = export("model", "tiny", "--method", "contrastive", "--fold", 1, "--to", tmp_path / "model")
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        *("NOTE.txt", "load_model.py", "model.json", "model.pt", "model.pt2"),
    ]
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    record = find_run(store_of(tiny_run), "tiny", "contrastive", 0).record
    assert about["fingerprint"] == record.fold_fingerprints[1]
    assert about["spec"]["fold"] == about["fold"] == 1
    assert about["test"] == record.fold_scores[1].model_dump()
    assert about["hyperparameters"] == record.hyperparameters
    exported = torch.load(tmp_path / "model" / "model.pt", weights_only=True)
    name = about["fingerprint"]
    kept = torch.load(tiny_run / "runs" / "artifacts" / name[:2] / f"{name}.pt", weights_only=True)
    assert type(exported) is dict
    assert exported.keys() == kept.keys()
    assert all(torch.equal(exported[key], kept[key]) for key in kept)


def test_the_exported_loader_gives_the_embeddings_of_the_test(export, tiny_run, tmp_path):
    """The script reads image files and the export reads packed test images; both must give the same numbers."""
    export("model", "tiny", "--method", "contrastive", "--fold", 1, "--to", tmp_path / "model")
    answer = export(*(*CPU, "tiny", "--method", "contrastive", "--fold", 1, "--data", "images", "--to", tmp_path / "e"))
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in (tmp_path / "e").glob("*.npy")) == ["features.npy", "labels.npy"]
    classes = json.loads((tmp_path / "e" / "classes.json").read_text())
    folders = [str(tiny_run / "images" / name) for name in classes.values()]
    done = subprocess.run(
        [sys.executable, "model/load_model.py", *folders, "--to", "found.npz"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(without_the_suite(tmp_path / "without"))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "found.npz: 32 embeddings of 16 dimensions\n"
    with np.load(tmp_path / "found.npz") as found:
        expected = np.load(tmp_path / "e" / "features.npy")
        np.testing.assert_allclose(found["embeddings"], expected, atol=1e-6)
        named = [classes[str(label)] for label in np.load(tmp_path / "e" / "labels.npy")]
        assert [Path(name).parent.name for name in found["names"]] == named


def test_an_exported_ensemble_gives_the_concatenated_embeddings_without_the_suite(export, tiny_run, tmp_path):
    answer = export("model", "tiny", "--method", "contrastive", "--ensemble", "--to", tmp_path / "model")
    assert answer.code == 0, answer.err
    record = find_run(store_of(tiny_run), "tiny", "contrastive", 0).record
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["test"] == record.concatenated.model_dump()
    assert [model["fingerprint"] for model in about["models"]] == list(record.fold_fingerprints)
    assert not {"fold", "seed", "train_classes"} & about["spec"].keys()
    assert about["note"] == (tmp_path / "model" / "NOTE.txt").read_text().strip()
    assert about["note"].startswith("The ensemble of the 2 folds' models of tiny, contrastive, run 0")
    export(*CPU, "tiny", "--method", "contrastive", "--data", "images", "--to", tmp_path / "e")
    classes = json.loads((tmp_path / "e" / "classes.json").read_text())
    folders = [str(tiny_run / "images" / name) for name in classes.values()]
    done = subprocess.run(
        [sys.executable, "model/load_model.py", *folders, "--to", "found.npz"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(without_the_suite(tmp_path / "without"))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "found.npz: 32 embeddings of 32 dimensions\n"
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_allclose(found["embeddings"], np.load(tmp_path / "e" / "features.npy"), atol=1e-6)
    states = torch.load(tmp_path / "model" / "model.pt", weights_only=True)
    assert list(states) == ["fold_0", "fold_1"]


def test_the_loader_needs_torch_numpy_and_pillow_only():
    tree = ast.parse(Path(load_model.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    packages = {str(module).partition(".")[0] for module in modules}
    assert packages - set(sys.stdlib_module_names) == {"torch", "numpy", "PIL"}


@pytest.mark.parametrize(("width", "height"), [(40, 30), (30, 41), (9, 33), (8, 8)])
@pytest.mark.parametrize(("resize", "evaluation_resize"), [(20, None), (24, 16), (None, None), (None, 18), (10, None)])
def test_the_loader_crops_like_the_test(tmp_path, width, height, resize, evaluation_resize):
    noise = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "image.png")
    settings = ImageSettings(resize=resize, evaluation_resize=evaluation_resize, crop=16)
    packed = pack_files(tmp_path, ["image.png"], resize, tmp_path / "pack").images
    images = LabelledImages(packed, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    expected = evaluation_batch(images, np.zeros(1, dtype=np.int64), settings)[0]
    crop = load_model.centre_crop_of(tmp_path / "image.png", settings.model_dump(), as_mlrc=True)
    np.testing.assert_array_equal(crop.transpose(2, 0, 1), expected.numpy())


def test_an_unreadable_image_gives_one_line_from_the_loader(export, tmp_path, monkeypatch):
    export("model", "tiny", "--method", "untrained", "--to", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no.png").write_text("no image")
    said = {
        "gone.png": "error: gone.png: no such file or folder",
        "no.png": "error: no.png: cannot be decoded",
        "model": "error: no image below model",
    }
    for given, line in said.items():
        monkeypatch.setattr(sys, "argv", ["load_model.py", given])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path("model/load_model.py", run_name="__main__")
        assert ended.value.code == line


def test_exported_embeddings_have_the_stored_scores(export, tiny_run, tmp_path):
    answer = export(*CPU, "tiny.yaml", "--method", "contrastive", "--data", "images", "--to", tmp_path / "e")
    assert answer.code == 0, answer.err
    record = find_run(store_of(tiny_run), "tiny", "contrastive", 0).record
    labels = np.load(tmp_path / "e" / "labels.npy")
    assert labels.tolist() == [label for label in range(8, 16) for _ in range(4)]
    models = {"features": record.concatenated, "fold_0": record.fold_scores[0], "fold_1": record.fold_scores[1]}
    for name, scores in models.items():
        embeddings = np.load(tmp_path / "e" / f"{name}.npy")
        assert embeddings.dtype == np.float32
        assert embeddings.shape == (32, 32 if name == "features" else 16)
        np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1.0, atol=1e-6)
        assert naive_scores(embeddings, labels) == pytest.approx((scores.precision_at_1, scores.map_at_r), abs=1e-9)
        assert 0.0 < scores.map_at_r < 1.0
    origin = json.loads((tmp_path / "e" / "origin.json").read_text())
    assert list(origin["models"].values()) == list(record.fold_fingerprints)


def test_the_batch_size_changes_only_rounding(export, tmp_path):
    for batch in (64, 5):
        export(
            *(*CPU, "tiny", "--method", "untrained", "--data", "images", "--batch", batch),
            *("--to", tmp_path / str(batch)),
        )
    whole, parts = (np.load(tmp_path / name / "features.npy") for name in ("64", "5"))
    np.testing.assert_allclose(whole, parts, atol=1e-6)


def test_a_batch_too_large_for_the_gpu_gives_one_line(export, tmp_path, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nAnd more")

    monkeypatch.setattr(exporting_models, "embed_test", full)
    answer = export(*CPU, "tiny", "--method", "untrained", "--data", "images", "--to", tmp_path / "e")
    assert (answer.code, answer.err) == (2, "error: --batch 64: cpu has too little memory; use a smaller batch\n")
    assert list(tmp_path.iterdir()) == []


def test_exported_tables_have_the_contents_of_the_store(export, tiny_run, tmp_path):
    store = store_of(tiny_run)
    frames = {
        "runs": store.runs(),
        "folds": store.folds(),
        "curves": store.curves(),
        "class_scores": store.class_scores(),
        "test_points": store.test_points(),
    }
    assert len(frames["folds"]) == 8
    assert len(frames["class_scores"]) == 2 * 8
    for form, read in (("parquet", pd.read_parquet), ("csv", pd.read_csv)):
        answer = export("runs", "--to", tmp_path / form, "--format", form)
        assert answer.code == 0, answer.err
        assert sorted(path.stem for path in (tmp_path / form).iterdir()) == sorted(frames)
        for name, frame in frames.items():
            back = read(tmp_path / form / f"{name}.{form}")
            if name == "runs":
                back["source_hash"] = back["source_hash"].astype(object).fillna("")
            pd.testing.assert_frame_equal(back, frame, check_dtype=False, check_exact=True)


MODEL = ("model", "tiny", "--method", "contrastive")
EMBEDDINGS = (*CPU, "tiny", "--method", "contrastive")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("model", "huge", "--method", "contrastive"),
            "no experiment 'huge' in runs/store.sqlite; it holds: tiny",
        ),
        (
            ("model", "tiny", "--method", "nca"),
            "no tested run of method 'nca'; there are runs of contrastive, untrained",
        ),
        ((*MODEL, "--run", "3"), "tiny, contrastive: there is no tested run 3; the tested runs are 0, counted from 0"),
        ((*MODEL, "--fold", "0", "--ensemble"), "--fold and --ensemble: choose one of them"),
        ((*MODEL, "--fold", "2"), "run 0: there is no fold 2; the folds are 0, 1, counted from 0"),
        ((*EMBEDDINGS, "--fold", "7", "--data", "images"), "no fold 7"),
        (EMBEDDINGS, "folder: give the folder of its images with --data FOLDER"),
        ((*EMBEDDINGS, "--data", "nowhere"), "nowhere: no such folder"),
        ((*EMBEDDINGS, "--data", "images", "--batch", "0"), "--batch"),
        ((*EMBEDDINGS, "--data", "images", "--device", "tpu"), "device 'tpu'"),
        ((*MODEL, "--artifacts", "elsewhere"), "fold 0: the weights file elsewhere"),
        (("runs", "--format", "xml"), "--format 'xml': use parquet or csv"),
        (("runs", "--store", "none.sqlite"), "none.sqlite: there is no store yet"),
    ],
)
def test_missing_things_give_one_line_and_no_files(export, tmp_path, asked, said):
    answer = export(*asked, "--to", tmp_path / "to" / "here")
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "to" / "here").exists()


def test_images_that_differ_from_those_of_the_run_are_refused(export, tmp_path):
    striped_images(tmp_path / "others", seed=1)
    answer = export(*EMBEDDINGS, "--data", tmp_path / "others", "--to", tmp_path / "e")
    assert answer.code == 2
    assert "others: not the images that tiny, contrastive, run 0 was tested on" in answer.err
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04cut off", None])
def test_a_broken_checkpoint_is_named(export, tiny_run, tmp_path, content):
    artifacts = tmp_path / "artifacts"
    shutil.copytree(tiny_run / "runs" / "artifacts", artifacts)
    for path in artifacts.rglob("*.pt"):
        if content is None:
            torch.save([1, 2], path)
        else:
            path.write_bytes(content)
    answer = export(*MODEL, "--artifacts", artifacts, "--to", tmp_path / "model")
    assert answer.code == 2
    assert answer.err.rstrip().endswith(".pt: not a readable checkpoint; restore it from a copy, or remove it")
    assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_an_empty_store_and_an_experiment_without_runs_give_an_error(export, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/empty.sqlite", tmp_path)
    answer = export("runs", "--store", tmp_path / "empty.sqlite", "--to", tmp_path / "tables")
    assert answer.code == 2
    assert "no finished training yet" in answer.err
    for name in ("begun", "both/small", "both/wide"):
        store.put_experiment(name, name, some_summary())
    with pytest.raises(
        InputError, match=r"begun: there is no tested run in .* yet; continue with `reproduce run begun`"
    ):
        find_run(store, "begun", "contrastive", 0)
    with pytest.raises(InputError, match="both has several panels; use one of both/small, both/wide"):
        find_run(store, "both", "contrastive", 0)


def test_a_folder_that_cannot_be_written_gives_one_line(export, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "labels.npy").write_text("mine")
    for to, said in (
        (tmp_path / "full", "the folder is not empty; give a new folder"),
        (tmp_path / "file", "cannot be written (Not a directory)"),
        (tmp_path / "file" / "below", "cannot be written (File exists)"),
    ):
        answer = export("runs", "--to", to)
        assert answer.code == 2
        assert answer.err == f"error: --to {to}: {said}" + ("; choose another folder\n" if "cannot" in said else "\n")
    assert sorted(os.listdir(tmp_path)) == ["file", "full"]
    assert (tmp_path / "full" / "labels.npy").read_text() == "mine"


def test_a_failed_export_leaves_no_folder(tmp_path):
    def fill(name: str, fails: bool) -> None:
        with new_folder(tmp_path / name) as folder:
            (folder / "first").write_text("1")
            assert not (tmp_path / name / "first").exists()
            if fails:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill("broken", fails=True)
    fill("whole", fails=False)
    (tmp_path / "empty").mkdir()
    fill("empty", fails=False)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        *("empty", "empty/first", "whole", "whole/first")
    ]
