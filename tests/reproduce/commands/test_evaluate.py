"""`evaluate`: an exported model, a trunk or features on data that is only for the test."""

import shutil

import numpy as np
import pytest
import torch

from protocols.evaluation.evaluate_run import TestData
from reproduce.outputs.evaluate import scores
from reproduce.outputs.find_runs import find_runs
from results.answer.intervals import t_quantile
from results.store.store import Store
from tests.support.command_line import refused, score_in
from tests.support.feature_files import opened_features, some_features, write_features
from tests.support.tiny_run import striped_images


def test_an_exported_model_has_its_score_on_the_classes_of_its_test(say, tiny_run, tmp_path):
    store = Store(tiny_run / "runs" / "store.sqlite", tiny_run / "runs" / "artifacts")
    record = find_runs(store, "tiny", "contrastive")[0].record
    export = ("export", "model", "tiny", "--method", "contrastive", "--store", tiny_run / "runs" / "store.sqlite")
    assert say(*export, "--fold", 1, "--to", "one").code == 0
    assert say(*export, "--to", "all").code == 0
    ask_for = ("evaluate", "folder", "--data", tiny_run / "images", "--device", "cpu", "--cache", tmp_path / "cache")
    for model, expected in (("one", record.fold_scores[1]), ("all", record.concatenated)):
        tested = say(*ask_for, "--model", model, "--split", "mlrc")
        assert score_in(tested, "map_at_r") == pytest.approx(100 * expected.map_at_r, abs=0.006)
        assert score_in(tested, "precision_at_1") == pytest.approx(100 * expected.precision_at_1, abs=0.006)
        assert "32 samples of 8 classes" in tested.out
        assert "too high" not in tested.out
    for wrong, said in (((), "give either --model or --trunk"), (("--model", tiny_run), "holds no model; give")):
        refused(say(*ask_for, *wrong), said)


@pytest.mark.parametrize("command", [("export", "model", "--fold", 1), ("fit", "--device", "cpu")])
def test_what_a_model_has_seen_is_counted_in_any_part_of_the_data(say, tiny_run, tmp_path, command):
    """The tiny run trains and chooses on the classes 0 to 7; `fit` takes all 16."""
    images, store = tiny_run / "images", ("--store", tiny_run / "runs" / "store.sqlite")
    kind, *options = command
    data = ("--data", images) if kind == "fit" else ()
    wanted = (*(["model"] if kind == "export" else []), "tiny", "--method", "contrastive")
    say(kind, *wanted, *options[-2:], *data, *store, "--to", "model").done()

    def notes(folder):
        said = say("evaluate", "folder", "--data", folder, "--model", "model", "--device", "cpu", "--cache", "cache")
        assert said.code == 0, said.err
        return " ".join(said.out.partition("too short where they are confused")[2].split())

    def seen(count, classes):
        start = f"the model was trained or chosen on {count} of these images, of {classes} classes"
        return f"{start}, so the scores are too high"

    def copy(to, first, last, name="class_{:02}"):
        for number in range(first, last):
            shutil.copytree(images / f"class_{number:02}", tmp_path / to / name.format(number))
        return tmp_path / to

    both = 16 if kind == "fit" else 8
    assert notes(images) == seen(4 * both, both)
    (copy("less", 0, 16) / "class_00" / "0.png").unlink()
    assert notes("less") == seen(4 * both - 1, both)
    assert notes(copy("trained", 0, 8)) == seen(32, 8)
    assert notes(copy("renamed", 0, 8, "other {}")) == seen(32, 8)
    assert notes(copy("tested", 8, 16)) == (seen(32, 8) if kind == "fit" else "")
    striped_images(tmp_path / "new", seed=1)
    assert notes("new") == (
        f"{both} of these classes have the name of a class that the model was trained or chosen on (class_00); if they "
        "are the same, the scores are too high"
    )
    (tmp_path / "model" / "seen.csv").unlink()
    assert notes("new").startswith("which images the model was trained on is not known")


def test_features_are_scored_as_they_are_with_intervals_over_classes(say, tmp_path):
    # Classes of different sizes.
    labels = np.repeat(np.arange(16), [3 + number % 3 for number in range(16)])
    folder = write_features(tmp_path / "rows", some_features(per_class=5)[: len(labels)], labels)
    answer = say("evaluate", "features", "--data", folder, "--cache", tmp_path / "cache")
    data = TestData(opened_features(folder, tmp_path / "cache").images)
    rows = torch.nn.functional.normalize(torch.from_numpy(np.load(folder / "features.npy")))
    found = scores(rows, data)
    hits = (rows @ rows.T).fill_diagonal_(-2).argmax(1)
    right = (labels[hits.numpy()] == labels).astype(float)
    assert score_in(answer, "precision_at_1") == pytest.approx(100 * right.mean(), abs=0.006)
    assert found["precision_at_1"].mean == pytest.approx(right.mean(), abs=1e-12)
    sums = np.bincount(labels, right - right.mean())
    error = np.sqrt((sums**2).sum() * 16 / 15) / len(labels)
    assert found["precision_at_1"].half_width == pytest.approx(t_quantile(0.975, 15) * error, rel=0.02)


def test_a_broken_image_does_not_block_the_score_of_a_model(say, tiny_run, tmp_path):
    """Its class, which has one image less than two, is left out on demand as well."""
    store = ("--store", tiny_run / "runs" / "store.sqlite")
    say("export", "model", "tiny", "--method", "contrastive", *store, "--fold", 0, "--to", "model").done()
    striped_images(tmp_path / "new", seed=1)
    striped_images(tmp_path / "sound", seed=1)
    ask = ("--model", "model", "--device", "cpu", "--cache", "cache")
    (tmp_path / "new" / "class_03" / "1.png").write_bytes(b"no image")
    (tmp_path / "sound" / "class_03" / "1.png").unlink()
    refused(say("evaluate", "folder", "--data", "new", *ask), "or leave it out with --skip-broken-images")
    found = say("evaluate", "folder", "--data", "new", *ask, "--skip-broken-images").done()
    assert "63 samples of 16 classes" in found.out
    assert "left out: 1 image that cannot be decoded (class_03/1.png)" in found.out
    sound = say("evaluate", "folder", "--data", "sound", *ask).done()
    assert score_in(found, "map_at_r") == score_in(sound, "map_at_r")
    for number in (0, 2):
        (tmp_path / "new" / "class_03" / f"{number}.png").write_bytes(b"no image")
    skipping = ("evaluate", "folder", "--data", "new", *ask, "--skip-broken-images")
    refused(say(*skipping), "class 'class_03' has only one image", "--min-images 2")
    left = say(*skipping, "--min-images", 2).done()
    assert "60 samples of 15 classes" in left.out
    assert "left out: 1 class with fewer than 2 images (class_03)" in left.out
    refused(say("evaluate", "glyphs", *ask, "--min-images", 2), "dataset glyphs keeps all its classes")
