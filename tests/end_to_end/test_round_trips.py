"""Images, their features and their exported embeddings are read back as the same classes, queries and scores."""

import pandas as pd
import pytest

from reproduce.outputs.find_runs import find_runs
from results.store.store import Store
from tests.support.command_line import TINY, refused, score_in
from tests.support.image_folders import paint

EXPERIMENT = """\
title: Read back
dataset: {name: %s, root: %s}
methods: [untrained]
search: {trials: 0}
reproductions: 1
folds: 1
%s"""
FROZEN = "trunk: {name: efficientnet_lite0, frozen: true}\nimages: {resize: 36, crop: 32}\n"
PARTS = {
    "none": None,
    "classes": lambda c, i: "train" if c % 3 == 1 else "test",
    "files": lambda c, i: "train" if c % 3 == 1 else "query" if i == 0 else "gallery",
    "queries": lambda c, i: "query" if i == 0 else "gallery",
}
"""What `split.csv` says of image i of class c, by kind of file; it names the training classes, queries, or both."""


@pytest.mark.parametrize("kind", PARTS)
def test_what_is_written_is_read_back(say, tmp_path, kind):
    part, lines = PARTS[kind], ["file,class,split"]
    for c, i in ((c, i) for c in range(24) for i in range(3)):
        paint(tmp_path / "images" / str(c) / f"{i}.png", seed=10 * c + i)
        lines += [f"{c}/{i}.png,{c},{part(c, i)}"] if part else []
    if part:
        (tmp_path / "images" / "split.csv").write_text("\n".join(lines))

    def scores(name, dataset, root, more=""):
        (tmp_path / f"{name}.yaml").write_text(EXPERIMENT % (dataset, root, more))
        say("run", f"{name}.yaml", "--workers", 1, "--device", "cpu").done()
        store = Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")
        return find_runs(store, name, "untrained")[0].record.concatenated

    extracted = ("--data", "images", "--resize", 36, "--crop", 32, "--device", "cpu", "--cache", "runs/cache")
    assert say("features", "extract", "--trunk", "efficientnet_lite0", *extracted, "--to", "features").code == 0
    of_images = scores("of_images", "folder", "images", FROZEN)
    assert scores("of_features", "features", "features") == of_images
    assert say("export", "embeddings", "of_images", "--method", "untrained", "--to", "embedded").code == 0
    classes = pd.read_csv(tmp_path / "embedded" / "labels.csv")["label"].unique().tolist()
    assert classes == [c for c in range(24) if c % 3 != 1] if kind in ("classes", "files") else list(range(12, 24))
    evaluated = say("evaluate", "features", "--data", "embedded")
    assert score_in(evaluated, "map_at_r") == pytest.approx(100 * of_images.map_at_r, abs=0.006)
    queries = f"{len(classes)} queries are searched for among {2 * len(classes)} others in the gallery"
    assert (queries in evaluated.out) == (kind in ("files", "queries"))
    checked = say("data", "check", "features", "--data", "embedded")
    if len(classes) >= 16:  # Enough to train on half of them.
        assert ("8 queries are searched for among 16 others" in checked.out) == (kind == "files")
        half = score_in(say("evaluate", "features", "--data", "embedded", "--split", "mlrc"), "map_at_r")
        assert half == pytest.approx(100 * scores("half", "features", "embedded").map_at_r, abs=0.006)


@pytest.mark.slow
def test_methods_that_two_machines_trained_stand_in_one_table(say, tmp_path, monkeypatch):
    """As docs/running.md splits an experiment: by methods, with a store on each machine."""
    for machine, method in (("first", "untrained"), ("second", "contrastive")):
        (tmp_path / machine).mkdir()
        (tmp_path / machine / "tiny.yaml").write_text(TINY)
        monkeypatch.chdir(tmp_path / machine)
        say("run", "tiny.yaml", "--methods", method, "--workers", "1").done()
        say("store", "export", f"{machine}.zip").done()
    monkeypatch.chdir(tmp_path / "first")
    assert "6 trainings, 1 run" in say("store", "import", "../second/second.zip").done().out
    whole = say("run", "tiny.yaml", "--methods", "untrained,contrastive", "--workers", "1").done().out
    assert "0 trainings made" in whole
    assert "8 found in the store" in whole
    assert "Untrained trunk" in say("table", "tiny", "--what", "differences", "--format", "markdown").done().out


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_a_table_of_pairs_of_one_method_is_refused(say, tmp_path, form):
    (tmp_path / "tiny.yaml").write_text(TINY)
    say("run", "tiny.yaml", "--methods", "untrained", "--workers", "1").done()
    said = refused(say("table", "tiny", "--what", "differences", "--format", form))
    assert "fewer than two methods are compared, so there is no table of pairs" in said
