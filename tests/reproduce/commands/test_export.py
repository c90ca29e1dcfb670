"""`reproduce export`: other tools can read the exported models, embeddings and tables."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from protocols.metrics.retrieval import query_scores
from reproduce.outputs.find_runs import find_runs
from results.records.frame import runs_table
from results.store.store import Store
from tests.support.command_line import environment, refused

# The store's scores were made on a CPU.
CPU = ("embeddings", "--device", "cpu")


@pytest.fixture
def export(say, tiny_run, monkeypatch):
    """A function that runs `reproduce export` in the folder of the finished run."""
    monkeypatch.chdir(tiny_run)
    return lambda *arguments: say("export", *arguments)


def store_of(folder: Path) -> Store:
    return Store(folder / "runs" / "store.sqlite", folder / "runs" / "artifacts")


def without_the_suite(folder: Path) -> Path:
    """A folder for the module path in which importing a room of the suite fails."""
    folder.mkdir()
    for room in ("losses", "results", "protocols", "reports", "reproduce"):
        (folder / f"{room}.py").write_text("raise ImportError('this model must run without the suite')")
    return folder


def test_a_model_is_a_plain_state_dict_with_a_description(export, tiny_run, tmp_path):
    export("model", "tiny", "--method", "contrastive", "--fold", 1, "--to", tmp_path / "model").done()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        *("NOTE.txt", "model.json", "model.pt", "model.pt2", "preprocess.py", "seen.csv"),
    ]
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    record = find_runs(store_of(tiny_run), "tiny", "contrastive", 1, 1)[0].record
    (fold,) = about["models"]
    assert fold["fingerprint"] == record.fold_fingerprints[1]
    assert about["spec"]["fold"] == fold["fold"] == 1
    assert fold["test"] == record.fold_scores[1].model_dump()
    assert about["hyperparameters"] == record.hyperparameters
    exported = torch.load(tmp_path / "model" / "model.pt", weights_only=True)
    name = fold["fingerprint"]
    kept = torch.load(tiny_run / "runs" / "artifacts" / name[:2] / f"{name}.pt", weights_only=True)
    assert type(exported) is dict
    assert exported.keys() == kept.keys()
    assert all(torch.equal(exported[key], kept[key]) for key in kept)
    export("model", "tiny", "--method", "contrastive", "--to", tmp_path / "ensemble").done()
    about = json.loads((tmp_path / "ensemble" / "model.json").read_text())
    assert about["test"] == record.concatenated.model_dump()
    assert [model["fingerprint"] for model in about["models"]] == list(record.fold_fingerprints)
    assert not {"fold", "seed", "train_classes"} & about["spec"].keys()
    assert about["note"].startswith("The ensemble of 2 models of tiny, contrastive, run 1, one per fold")
    assert ", joined models trained on a part of the classes and tested on others." in about["note"]
    assert (tmp_path / "ensemble" / "NOTE.txt").read_text().startswith(about["note"] + "\n")
    assert list(torch.load(tmp_path / "ensemble" / "model.pt", weights_only=True)) == ["fold_0", "fold_1"]


def embeddings_without_the_suite(code, folder):
    """What code calls `embeddings`, beside the exported model, where the suite cannot be imported."""
    subprocess.run(
        [sys.executable, "-c", f"{code}\nimport numpy; numpy.save('found.npy', embeddings)"],
        cwd=folder / "model",
        env={**environment(), "PYTHONPATH": str(without_the_suite(folder / "without"))},
        check=True,
    )
    return np.load(folder / "model" / "found.npy")


def test_the_lines_of_the_note_load_the_model_without_the_suite(export, tiny_run, tmp_path):
    """The lines read test images from files and the export reads packed ones; both must give the same numbers."""
    export("model", "tiny", "--method", "contrastive", "--fold", 1, "--to", tmp_path / "model")
    answer = export(*(*CPU, "tiny", "--method", "contrastive", "--fold", 1, "--data", "images", "--to", tmp_path / "e"))
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in (tmp_path / "e").glob("*.npy")) == ["features.npy"]
    note = (tmp_path / "model" / "NOTE.txt").read_text()
    _, lines, meaning = note.rstrip().split("\n\n")
    assert len(lines.splitlines()) == 6
    assert meaning.startswith("`files` are pictures, which `preprocess` resizes and crops.")
    files = [str(tiny_run / "images" / file) for file in pd.read_csv(tmp_path / "e" / "labels.csv")["file"]]
    found = embeddings_without_the_suite(f"files = {files}\n{lines}\nembeddings = embeddings.numpy()", tmp_path)
    np.testing.assert_allclose(found, np.load(tmp_path / "e" / "features.npy"), atol=1e-6)


def test_a_model_as_onnx_is_used_as_its_note_says(export, tiny_run, tmp_path):
    """By a program in which neither the suite nor its losses can be imported, and which does not ask for torch."""
    pytest.importorskip("onnxruntime")
    to = ("--fold", 1, "--to", tmp_path / "model")
    answer = export("model", "tiny", "--method", "contrastive", "--format", "onnx", *to).done()
    assert answer.out.startswith("ONNX takes about a minute for a large network, and several on a busy machine\n")
    assert "model.onnx, model.pt, model.pt2, preprocess.py" in " ".join(answer.out.split())
    export(*(*CPU, "tiny", "--method", "contrastive", "--fold", 1, "--data", "images", "--to", tmp_path / "e")).done()
    files = [str(tiny_run / "images" / file) for file in pd.read_csv(tmp_path / "e" / "labels.csv")["file"]]
    lines = (tmp_path / "model" / "NOTE.txt").read_text().rstrip().split("\n\n")[-1]
    assert "torch" not in lines + (tmp_path / "model" / "preprocess.py").read_text()
    found = embeddings_without_the_suite(f"files = {files}\n{lines}", tmp_path)
    np.testing.assert_allclose(found, np.load(tmp_path / "e" / "features.npy"), atol=1e-6)


def test_exported_embeddings_have_the_stored_scores(export, tiny_run, tmp_path):
    export(*CPU, "tiny.yaml", "--method", "contrastive", "--data", "images", "--to", tmp_path / "e").done()
    record = find_runs(store_of(tiny_run), "tiny", "contrastive", 1, 1)[0].record
    labels = pd.read_csv(tmp_path / "e" / "labels.csv")["label"].to_numpy()
    assert labels.tolist() == [f"class_{label:02}" for label in range(8, 16) for _ in range(4)]
    models = {"features": record.concatenated, "fold_0": record.fold_scores[0], "fold_1": record.fold_scores[1]}
    for name, scores in models.items():
        embeddings = np.load(tmp_path / "e" / f"{name}.npy")
        assert embeddings.dtype == np.float32
        assert embeddings.shape == (32, 32 if name == "features" else 16)
        np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1.0, atol=1e-6)
        assert query_scores(torch.from_numpy(embeddings), torch.arange(8).repeat_interleave(4)).mean() == scores
    origin = json.loads((tmp_path / "e" / "origin.json").read_text())
    assert list(origin["models"].values()) == list(record.fold_fingerprints)


def test_exported_tables_have_the_contents_of_the_store(export, tiny_run, tmp_path):
    store = store_of(tiny_run)
    frames = {
        "runs": runs_table(store.exported_runs()).drop(columns=["reproduce_question", "reproduce_planned"]),
        "folds": store.table("folds"),
        "curves": store.table("curves"),
        "class_scores": store.table("class_scores"),
        "test_points": store.table("test_points"),
    }
    assert len(frames["folds"]) == 8
    assert len(frames["class_scores"]) == 2 * 8
    for form, read in (("parquet", pd.read_parquet), ("csv", pd.read_csv)):
        export("runs", "--to", tmp_path / form, "--format", form).done()
        assert sorted(path.stem for path in (tmp_path / form).iterdir()) == sorted(frames)
        for name, frame in frames.items():
            back = read(tmp_path / form / f"{name}.{form}")
            if name == "runs":
                # What is asked (tests/results/answer/test_audit.py).
                assert back.pop("reproduce_question").str.startswith("{").all()
                assert back.pop("reproduce_planned").str.startswith("{").all()
                back["source_hash"] = back["source_hash"].astype(object).fillna("")
            pd.testing.assert_frame_equal(back, frame, check_dtype=False, rtol=1e-11, atol=0)
            for column in back.select_dtypes("float"):
                given = back[column].dropna()
                assert (given == given.map(lambda value: float(f"{value:.12g}"))).all(), "exports have twelve digits"


MODEL = ("model", "tiny", "--method", "contrastive")
EMBEDDINGS = (*CPU, "tiny", "--method", "contrastive")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("model", "huge", "--method", "contrastive"),
            "no experiment 'huge' in runs/store.sqlite; `reproduce status` ",
        ),
        ((*MODEL, "--run", "3"), "tiny: there is no tested run 3 of search 1 of 'contrastive'"),
        ((*MODEL, "--fold", "2"), "run 1: there is no fold 2; the folds are 0, 1, counted from 0"),
        (EMBEDDINGS, "folder: give the folder of its images with --data FOLDER"),
        ((*MODEL, "--artifacts", "elsewhere"), "fold 0: the weights file elsewhere"),
        (("runs", "--format", "xml"), "'xml' is not one of 'parquet', 'csv'"),
        (("runs", "--store", "none.sqlite"), "none.sqlite: there is no store yet"),
    ],
)
def test_missing_things_give_one_line_and_no_files(export, tmp_path, asked, said):
    refused(export(*asked, "--to", tmp_path / "to" / "here"), said)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "to" / "here").exists()


def test_a_broken_checkpoint_is_named(export, tiny_run, tmp_path):
    artifacts = tmp_path / "artifacts"
    shutil.copytree(tiny_run / "runs" / "artifacts", artifacts)
    for path in artifacts.rglob("*.pt"):
        path.write_bytes(b"PK\x03\x04cut off")
    said = refused(export(*MODEL, "--artifacts", artifacts, "--to", tmp_path / "model"))
    assert said.endswith(".pt: not a readable checkpoint; restore it from a copy, or remove it")
    assert not (tmp_path / "model").exists()
