"""What a folder of images, its features and its exported embeddings say of each other: the same classes and scores."""

import csv
import re

import numpy as np
import pytest

from reproduce.outputs.find_runs import find_runs
from results.store.store import Store
from tests.support.image_folders import paint

EXPERIMENT = """\
title: Read back
dataset: {name: %s, root: %s}
methods: [untrained]
search: {trials: 0}
reproductions: 1
%s"""
FROZEN = "trunk: {name: efficientnet_lite0, frozen: true}\nimages: {resize: 36, crop: 32}\n"
CLASSES, PER_CLASS = 24, 3

# What `split.csv` says of image i of class c; None writes no file. Eight classes train where the file says it.
SPLITS = {
    "halves": None,
    "own": lambda c, i: "train" if c % 3 == 1 else "test",
    "queries": lambda c, i: "train" if c % 3 == 1 else ("query" if i == 0 else "gallery"),
    "queries in halves": lambda c, i: "query" if i == 0 else "gallery",
}


def columns(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {name: list(cells) for name, *cells in zip(*csv.reader(file), strict=True)}


def precision_at_1(folder, tested=None):
    """That of the rows of a folder of features, in percent, by the files alone."""
    rows, labels = np.load(folder / "features.npy"), np.asarray(columns(folder / "labels.csv")["label"])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    keep = np.isin(labels, tested or labels)
    split = columns(folder / "split.csv")["split"] if (folder / "split.csv").exists() else [""] * len(labels)
    rows, labels, split = rows[keep], labels[keep], np.asarray(split)[keep]
    similar = np.where(np.eye(len(rows), dtype=bool) | (split == "query"), -2, rows @ rows.T)
    asks = split == "query" if "query" in split else np.ones(len(rows), dtype=bool)
    return 100 * (labels[similar.argmax(1)] == labels)[asks].mean()


@pytest.mark.parametrize("split", SPLITS)
def test_images_their_features_and_embeddings_have_the_same_classes_queries_and_scores(say, tmp_path, split):
    part, lines = SPLITS[split], ["file,class,split"]
    for c in range(CLASSES):
        for i in range(PER_CLASS):
            paint(tmp_path / "images" / str(c) / f"{i}.png", seed=10 * c + i)
            lines += [f"{c}/{i}.png,{c},{part(c, i)}"] if part else []
    if part:
        (tmp_path / "images" / "split.csv").write_text("\n".join(lines))
    extracted = ("--data", "images", "--resize", 36, "--crop", 32, "--device", "cpu", "--cache", "runs/cache")
    assert say("features", "extract", "--trunk", "efficientnet_lite0", *extracted, "--to", "features").code == 0

    def tested(name, dataset, root, more=""):
        (tmp_path / f"{name}.yaml").write_text(EXPERIMENT % (dataset, root, more))
        ran = say("run", f"{name}.yaml", "--workers", 1, "--device", "cpu")
        assert ran.code == 0, ran.err
        store = Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")
        return find_runs(store, name, "untrained")[0].record.fold_scores[0]

    scores = tested("of_images", "folder", "images", FROZEN)
    assert tested("of_features", "features", "features") == scores
    export = ("export", "embeddings", "of_images", "--method", "untrained", "--fold", 0, "--device", "cpu")
    assert say(*export, "--to", "embeddings").code == 0
    classes = sorted(set(columns(tmp_path / "embeddings" / "labels.csv")["label"]), key=int)
    chosen = [str(c) for c in range(CLASSES) if part and part(c, 1) in ("test", "gallery") and "train" in str(lines)]
    assert classes == (chosen or [str(c) for c in range(12, 24)])
    evaluated = say("evaluate", "features", "--data", "embeddings")
    assert evaluated.code == 0, evaluated.err
    assert float(re.search(r"precision_at_1 +│ +([\d.]+)", evaluated.out)[1]) == pytest.approx(
        100 * scores.precision_at_1, abs=0.006
    )
    assert 100 * scores.precision_at_1 == pytest.approx(precision_at_1(tmp_path / "embeddings"), abs=1e-4)
    assert f"{len(classes)} queries are searched for among {2 * len(classes)} others" in evaluated.out or (
        "queries" not in split
    )
    if len(classes) >= 16:
        half = tested("of_embeddings", "features", "embeddings")
        assert 100 * half.precision_at_1 == pytest.approx(
            precision_at_1(tmp_path / "embeddings", classes[len(classes) // 2 :]), abs=1e-4
        )
