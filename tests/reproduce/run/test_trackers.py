"""Curves and scores of a run in TensorBoard, and in Weights & Biases through it."""

import sys

import pytest

from protocols.jobs import TrainJob
from reproduce.outputs.find_runs import find_runs
from reproduce.run.progress import Tracking
from results.spec.method import Method
from results.store.store import Store
from tests.support.command_line import refused
from tests.support.sample_records import some_result, some_spec

SPEC = some_spec()
TRAINING = TrainJob(SPEC, "run")


def read(folder):
    """Read a folder with TensorBoard."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reader.EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def series(accumulator, tag):
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def settings_of(accumulator):
    plugin_data = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    content = accumulator.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    return plugin_data.HParamsPluginData.FromString(content).session_start_info.hparams


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def test_tensorboard_has_the_curve_of_every_training_and_the_scores_of_every_run(tiny_run):
    store = Store(tiny_run / "runs" / "store.sqlite", tiny_run / "runs" / "artifacts")
    logs = tiny_run / "runs" / "tensorboard" / "tiny"
    assert len(list(logs.glob("*/*/fold-*"))) == len(store.table("folds")) == 8
    curves = store.table("curves")
    for row in store.table("folds").itertuples():
        accumulator = read(only(logs, f"{row.method}/*/fold-{row.fold}-{row.fingerprint[:8]}"))
        curve = curves[curves["fingerprint"] == row.fingerprint]
        for tag, column in (
            ("validation/map_at_r", "map_at_r"),
            ("validation/r_precision", "r_precision"),
            ("validation/precision_at_1", "precision_at_1"),
            ("training/loss", "loss"),
        ):
            known = curve.dropna(subset=column)
            if known.empty:
                assert tag not in accumulator.Tags()["scalars"]
                continue
            found = series(accumulator, tag)
            assert [step for step, _ in found] == known["iteration"].tolist()
            assert [value for _, value in found] == pytest.approx(known[column].tolist(), rel=1e-6)
        assert series(accumulator, "best/map_at_r") == [(0, pytest.approx(row.best_map_at_r, rel=1e-6))]
    record = find_runs(store, "tiny", "contrastive")[0].record
    accumulator = read(only(logs, f"contrastive/test/run-1-{record.fingerprint[:8]}"))
    for metric, value in record.concatenated.model_dump().items():
        assert series(accumulator, f"test/concatenated_{metric}") == [(0, pytest.approx(value, rel=1e-6))]
    settings = settings_of(accumulator)
    assert {name: settings[f"hyperparameters.{name}"].number_value for name in record.hyperparameters} == (
        record.hyperparameters
    )


def test_a_training_has_its_settings_and_belongs_to_the_search_or_to_a_reproduction(tmp_path):
    tracked = Tracking("quickstart", tmp_path)
    tracked.job_done("triplet", TRAINING, some_result(SPEC), from_store=True)
    assert list(tmp_path.iterdir()) == [], "results from the store are not written again"
    tracked.job_done("triplet", TRAINING, some_result(SPEC, 0.5), from_store=False)
    tracked.job_done("triplet", TrainJob(SPEC), some_result(SPEC), from_store=False)
    untrained = some_spec(method=Method(name="untrained", loss=None), validation_classes=(), checkpoint_epoch=0)
    result = some_result(untrained, curve=(), stopped_by="untrained", iterations=0)
    tracked.job_done("untrained", TrainJob(untrained, "run"), result, from_store=False)
    assert (tmp_path / "quickstart/triplet/search").is_dir()
    written = read(tmp_path / f"quickstart/triplet/reproduction/fold-1-{SPEC.fingerprint[:8]}")
    settings = settings_of(written)
    assert settings["method.loss.name"].string_value == "TripletMarginLoss"
    assert settings["conditions.images.area"].string_value == "[0.16, 1.0]"
    assert "method.miner" not in settings
    assert series(written, "best/iteration") == [(0, 200.0)]
    alone = read(only(tmp_path, "quickstart/untrained/reproduction/*"))
    assert alone.Tags()["scalars"] == ["best/iteration"]


def test_files_that_cannot_be_written_do_not_end_the_run(tmp_path, capsys):
    (tmp_path / "full").write_text("a file, where a folder should be")
    tracked = Tracking("quickstart", tmp_path / "full")
    for _ in range(2):
        tracked.job_done("triplet", TRAINING, some_result(SPEC), from_store=False)
    assert capsys.readouterr().out == "--track: nothing more is written (Not a directory); the run continues\n"


def test_a_missing_package_and_an_unknown_tracker_are_reported_before_any_work(say, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name, said in (
        ("tensorboard", "--track tensorboard: not installed"),
        ("mlflow", "'mlflow' is not one of 'tensorboard'"),
    ):
        refused(say("run", "quickstart", "--track", name), said)
    assert list(tmp_path.iterdir()) == []
