"""A frozen trunk and a folder of features, from the experiment file to tables, page and exports."""

import json
import os

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from reproduce.outputs.find_runs import find_run
from results.store.store import Store
from tests.support.command_line import TINY, ask
from tests.support.feature_files import some_features, write_features
from tests.support.tiny_run import striped_images

SHARED = {
    **yaml.safe_load(TINY),
    "methods": ["untrained", "pretrained_pca", "contrastive"],
    "embedder": {"init": "pca"},
    "search": {"trials": 1},
}
FROZEN = {
    **SHARED,
    "dataset": {"name": "folder", "root": "images"},
    "trunk": {"name": "efficientnet_lite0", "frozen": True},
    "images": {"resize": 32, "crop": 32},
}
FEATURES = {key: value for key, value in SHARED.items() if key not in ("trunk", "images")}


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards):
    monkeypatch.chdir(tmp_path)
    striped_images(tmp_path / "images")
    (tmp_path / "frozen.yaml").write_text(yaml.safe_dump(FROZEN))
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**FEATURES, "dataset": {"name": "features", "root": "data"}}))
    return lambda *words, page=False: ask(*map(str, words), capsys=capsys, monkeypatch=monkeypatch, page=page)


def test_a_frozen_trunk_trains_the_embedder_on_features_computed_once(say, tmp_path):
    planned = say("plan", "frozen.yaml", "--workers", 1, "--rate", 1000)
    assert planned.code == 0, planned.err
    assert "of training at 1000 a second, 1 at a time" in planned.out
    assert not list((tmp_path / "runs").glob("cache/features-*")), "a plan computes no features"
    answer = say("run", "frozen.yaml", "--workers", 1, "--device", "cpu")
    assert answer.code == 0, answer.err
    assert "8 trainings made" in answer.out
    (features,) = (tmp_path / "runs" / "cache").glob("features-*/features.npy")
    assert np.load(features).shape == (64, 1280)
    changed = features.stat().st_mtime_ns
    assert "0 trainings made" in say("run", "frozen.yaml", "--workers", 1, "--device", "cpu", page=True).out
    assert features.stat().st_mtime_ns == changed
    table = " ".join(say("table", "frozen").out.split())
    assert "no fine-tuning and no augmentation" in table
    assert "starts at the principal components" in table
    page = (tmp_path / "runs" / "reports" / "frozen" / "index.html").read_text()
    assert "no fine-tuning and no augmentation" in page
    assert page.count("<img") > 0, "the galleries show the images"


def test_exports_of_a_frozen_trunk_embed_images(say, tmp_path):
    say("run", "frozen.yaml", "--workers", 1, "--device", "cpu")
    exported = say("export", "model", "frozen", "--method", "contrastive", "--fold", 1, "--to", "model")
    assert exported.code == 0, exported.err
    embedded = ("export", "embeddings", "frozen", "--method", "contrastive", "--device", "cpu", "--data", "images")
    assert say(*embedded, "--fold", 1, "--to", "e").code == 0
    classes = json.loads((tmp_path / "e" / "classes.json").read_text())
    files = [file for name in classes.values() for file in sorted((tmp_path / "images" / name).iterdir())]
    resized = [Image.open(file).resize((32, 32), Image.Resampling.BILINEAR) for file in files]
    images = torch.from_numpy(np.stack([np.asarray(image) for image in resized])).permute(0, 3, 1, 2)
    model = torch.export.load(tmp_path / "model" / "model.pt2").module()
    np.testing.assert_allclose(model(images), np.load(tmp_path / "e" / "features.npy"), atol=1e-5)
    assert say("export", "model", "frozen", "--method", "untrained", "--to", "raw").code == 0
    # Exported embeddings are a dataset of features.
    assert say(*embedded, "--to", "data").code == 0
    lines = (tmp_path / "data" / "labels.csv").read_text().splitlines()
    assert lines[:2] == ["file,label", "class_08/0.png,class_08"]
    assert len(lines) == 33
    assert say("data", "check", "features", "--data", "data").out.strip() == "data: usable, 32 rows of 8 classes"


def test_components_of_the_test_images_are_kept_and_exported_as_embeddings_but_not_as_a_model(say, tmp_path):
    methods = ("--methods", "pretrained_pca,pretrained_test_pca", "--set", "embedding_size=8")
    answer = say("run", "frozen.yaml", *methods, "--workers", 1, "--device", "cpu")
    assert answer.code == 0, answer.err
    checked = say("store", "check")
    assert checked.code == 0, checked.out
    assert ": 0 damaged, 0 missing, 0 foreign" in " ".join(checked.out.split())
    chosen = ("frozen", "--method", "pretrained_test_pca")
    for command in (("export", "model"), ("export", "model", "--ensemble"), ("fit", "--data", "images")):
        refused = say(*command, *chosen, "--to", "model")
        assert refused.code == 2
        assert "so no model computes them" in refused.err
        assert not (tmp_path / "model").exists()
    answer = say("export", "embeddings", *chosen, "--data", "images", "--device", "cpu", "--to", "embedded")
    assert answer.code == 0, answer.err
    assert np.load(tmp_path / "embedded" / "features.npy").shape == (32, 16)


def test_too_few_training_images_for_the_principal_components_are_told_before_features_are_computed(say, tmp_path):
    answer = say("run", "frozen.yaml", "--set", "embedding_size=40", "--device", "cpu")
    assert answer.code == 2
    assert "a fold has only 24 training images, which have at most 23 principal components" in answer.err
    assert "give --set embedding_size=23 or less" in answer.err
    assert not list((tmp_path / "runs").glob("cache/features-*"))
    random_start = ("--methods", "untrained", "--set", "embedding_size=40")
    assert say("run", "frozen.yaml", *random_start, "--device", "cpu").code == 0


def test_the_frozen_panel_of_folder_small_runs_on_larger_images(say, tmp_path):
    for number in range(48):
        path = tmp_path / "photographs" / f"class_{number // 4:02}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(tmp_path / "images" / f"class_{number // 4:02}" / f"{number % 4}.png") as image:
            image.resize((160, 140)).save(path)
    short = ("--methods", "untrained,contrastive,proxy_anchor", "--trials", 2, "--reproductions", 2, "--searches", 1)
    short = (*short, "--set", "training.max_epochs=2")
    data = ("--data", "photographs", "--set", "embedding_size=8", "--device", "cpu", "--workers", 1)
    answer = say("run", "folder_small", *data, *short)
    assert answer.code == 0, answer.err
    assert "folder_small/frozen_features: " in answer.out
    assert "36 trainings made" in answer.out


def test_features_are_trained_without_images_and_without_a_trunk(say, tmp_path):
    write_features(tmp_path / "data", some_features(width=24), np.repeat(np.arange(16), 4))
    answer = say("run", "mine.yaml", "--workers", 2, "--device", "cpu")
    assert answer.code == 0, answer.err
    assert "features: 64 rows of 16 classes" in answer.out
    table = " ".join(say("table", "mine").out.split())
    assert "rows of 24 features and no images" in table
    assert "32 rows of 8 test classes" in table
    store = Store(f"sqlite:///{tmp_path}/runs/store.sqlite", tmp_path / "runs" / "artifacts")
    assert find_run(store, "mine", "untrained", 0).record.dimensions == 24
    planned = say("plan", "mine.yaml", "--workers", 1)
    assert planned.code == 0, planned.err
    assert say("export", "embeddings", "mine", "--method", "contrastive", "--data", "data", "--to", "e").code == 0
    assert np.load(tmp_path / "e" / "features.npy").shape == (32, 32)


def test_the_exported_model_of_features_embeds_features_and_has_no_script_for_images(say, tmp_path):
    features = some_features(width=24)
    write_features(tmp_path / "data", features, np.repeat(np.arange(16), 4))
    say("run", "mine.yaml", "--workers", 1, "--device", "cpu")
    assert say("export", "model", "mine", "--method", "contrastive", "--fold", 1, "--to", "model").code == 0
    assert sorted(os.listdir(tmp_path / "model")) == ["NOTE.txt", "model.json", "model.pt", "model.pt2"]
    embedded = ("export", "embeddings", "mine", "--method", "contrastive", "--fold", 1, "--data", "data", "--to", "e")
    assert say(*embedded).code == 0
    tested = np.load(tmp_path / "e" / "features.npy")
    embeddings = torch.export.load(tmp_path / "model" / "model.pt2").module()(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(embeddings[-len(tested) :], tested, atol=1e-5)


def test_an_experiment_on_features_needs_their_folder(say, tmp_path):
    (tmp_path / "none.yaml").write_text(yaml.safe_dump({**FEATURES, "dataset": {"name": "features"}}))
    answer = say("run", "none.yaml")
    assert answer.code != 0
    assert "--data" in answer.err
    assert "features.npy" in answer.err
