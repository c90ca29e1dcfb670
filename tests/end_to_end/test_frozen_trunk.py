"""A frozen trunk, from the experiment file to tables, page and exports."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from reproduce.config.strict_yaml import read_yaml
from tests.support.command_line import TINY, refused
from tests.support.tiny_run import striped_images

FROZEN = {
    **read_yaml(TINY),
    "methods": ["untrained", "pretrained_pca", "lda", "contrastive"],
    "embedder": {"init": "pca"},
    "search": {"trials": 1},
    "dataset": {"name": "folder", "root": "images"},
    "trunk": {"name": "efficientnet_lite0", "frozen": True},
    "images": {"resize": 32, "crop": 32},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    striped_images(folder / "images")
    (folder / "frozen.yaml").write_text(json.dumps(FROZEN))
    return folder


@pytest.fixture
def say(say, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return say


@pytest.fixture
def frozen(folder, say):
    """The finished run with the frozen trunk, which is made by the first test that needs it."""
    if not (folder / "runs" / "tables" / "frozen.csv").exists():
        planned = say("plan", "frozen.yaml", "--workers", 1, "--rate", 1000)
        assert "(1,000 images) a second of one training" in planned.out, planned.err
        assert "the features of the frozen trunk are computed once before, which is not counted" in planned.out
        assert not list((folder / "runs").glob("cache/features-*")), "a plan computes no features"
        said = refused(say("run", "frozen.yaml", "--set", "embedding_size=40", "--device", "cpu"))
        assert "a fold has only 24 training images, which have at most 23 principal components" in said
        assert "give --set embedding_size=23 or less" in said
        assert not list((folder / "runs").glob("cache/features-*")), "it is told before features are computed"
        answer = say("run", "frozen.yaml", "--workers", 1, "--device", "cpu").done()
        assert "12 trainings made" in answer.out
        assert "note: lda: 6 training classes have 5 discriminants" in answer.out
    return folder


def test_a_frozen_trunk_trains_the_embedder_on_features_computed_once(say, frozen):
    (features,) = (frozen / "runs" / "cache").glob("features-*/features.npy")
    assert np.load(features).shape == (64, 1280)
    changed = features.stat().st_mtime_ns
    assert "0 trainings made" in say("run", "frozen.yaml", "--workers", 1, "--device", "cpu", page=True).out
    assert features.stat().st_mtime_ns == changed
    table = " ".join(say("table", "frozen").out.split())
    assert "starts at the principal components" in table


@pytest.mark.parametrize("method", ["contrastive", "lda"])
def test_exports_of_a_frozen_trunk_embed_images(say, frozen, tmp_path, method):
    say("export", "model", "frozen", "--method", method, "--fold", 1, "--to", tmp_path / "model").done()
    embedded = ("export", "embeddings", "frozen", "--method", method, "--device", "cpu", "--data", "images")
    assert say(*embedded, "--fold", 1, "--to", tmp_path / "e").code == 0
    lines = (tmp_path / "e" / "labels.csv").read_text().splitlines()
    files = [frozen / "images" / line.partition(",")[0] for line in lines[1:]]
    resized = [Image.open(file).resize((32, 32), Image.Resampling.BILINEAR) for file in files]
    images = torch.from_numpy(np.stack([np.asarray(image) for image in resized])).permute(0, 3, 1, 2)
    model = torch.export.load(tmp_path / "model" / "model.pt2").module()
    np.testing.assert_allclose(model(images), np.load(tmp_path / "e" / "features.npy"), atol=1e-5)


def test_components_of_the_test_images_are_exported_as_embeddings_but_not_as_a_model(say, frozen, tmp_path):
    methods = ("--methods", "pretrained_pca,pretrained_test_pca", "--set", "embedding_size=8")
    answer = say(
        "run", "frozen.yaml", *methods, "--workers", 1, "--device", "cpu", "--store", "pca/store.sqlite"
    ).done()
    store = ("--store", "pca/store.sqlite")
    checked = say("store", "check", *store).done()
    assert ": 0 damaged, 0 missing, 0 foreign" in " ".join(checked.out.split())
    chosen = ("frozen", "--method", "pretrained_test_pca", *store)
    for command in (("export", "model"), ("export", "model", "--fold", "0"), ("fit", "--data", "images")):
        refused(say(*command, *chosen, "--to", tmp_path / "model"), "so no model computes them")
        assert not (tmp_path / "model").exists()
    answer = say("export", "embeddings", *chosen, "--data", "images", "--device", "cpu", "--to", tmp_path / "embedded")
    assert answer.code == 0, answer.err
    assert np.load(tmp_path / "embedded" / "features.npy").shape == (32, 16)
