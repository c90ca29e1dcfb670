"""Trackers: TensorBoard reads its files back, and a fake module with the same API replaces W&B."""

import io
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from rich.console import Console

from protocols.jobs import EvaluateJob, TrainJob
from reproduce.errors import InputError
from reproduce.monitoring.observer import Observers, Tick
from reproduce.monitoring.trackers import TensorBoard, Tracking, WeightsAndBiases, open_trackers, report_of
from reproduce.outputs.find_runs import find_run
from results.spec.training_spec import MethodSpec
from results.store.store import Store
from tests.support.command_line import ROOT, ask, environment
from tests.support.sample_records import some_result, some_run, some_spec

SPEC = some_spec()
TRAINING = TrainJob(SPEC, "run")
TEST = EvaluateJob((SPEC,), "mlrc", {"loss.margin": 0.1}, run=0, seed=0, training_time=1.0)


def read(folder):
    """Read a folder with TensorBoard."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reader.EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def series(accumulator, tag):
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def test_tensorboard_has_the_curve_of_every_training_once(tiny_run):
    store = Store(f"sqlite:///{tiny_run}/runs/store.sqlite", tiny_run / "runs" / "artifacts")
    logs = tiny_run / "runs" / "tensorboard" / "tiny"
    assert len(list(logs.glob("*/*/fold-*"))) == len(store.folds()) == 8
    curves = store.curves()
    for row in store.folds().itertuples():
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


def test_tensorboard_has_the_scores_and_settings_of_every_tested_run(tiny_run):
    store = Store(f"sqlite:///{tiny_run}/runs/store.sqlite", tiny_run / "runs" / "artifacts")
    plugin_data = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    logs = tiny_run / "runs" / "tensorboard" / "tiny"
    for method in ("untrained", "contrastive"):
        record = find_run(store, "tiny", method, 0).record
        accumulator = read(only(logs, f"{method}/test/run-0-{record.fingerprint[:8]}"))
        for variant in ("separated", "concatenated"):
            for metric, value in getattr(record, variant).model_dump().items():
                found = series(accumulator, f"test/{variant}_{metric}")
                assert found == [(0, pytest.approx(value, rel=1e-6))]
        content = accumulator.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        settings = plugin_data.HParamsPluginData.FromString(content).session_start_info.hparams
        assert {name: settings[f"hyperparameters.{name}"].number_value for name in record.hyperparameters} == (
            record.hyperparameters
        )


def test_a_report_has_name_settings_and_scores_of_a_training():
    report = report_of("quickstart", "triplet", TRAINING, some_result(SPEC, 0.5))
    assert report.name == f"quickstart/triplet/reproduction/fold-1-{SPEC.fingerprint[:8]}"
    assert (report.group, report.purpose) == ("quickstart/triplet", "reproduction")
    assert report_of("quickstart", "triplet", TrainJob(SPEC), some_result(SPEC)).purpose == "search"
    expected = {"method.loss.name": "TripletMarginLoss", "method.loss.arguments.margin": 0.1, "fold": 1, "seed": 7}
    assert expected.items() <= report.settings.items()
    assert report.settings["images.area"] == "[0.16, 1.0]"
    assert "method.miner" not in report.settings
    assert all(type(value) in (bool, int, float, str) for value in report.settings.values())
    first = {"validation/map_at_r": 0.0, "validation/r_precision": 0.2, "validation/precision_at_1": 0.7}
    assert report.points[0] == (0, first)
    assert [(step, values["training/loss"]) for step, values in report.points[1:]] == [(100, 0.4), (200, 0.3)]
    assert report.scores == {"best/map_at_r": 0.5, "best/iteration": 200.0}


def test_a_training_without_validation_and_a_method_without_a_loss_are_reported_too():
    untrained = some_spec(method=MethodSpec(name="untrained", loss=None))
    result = some_result(untrained, curve=(), best_map_at_r=None, best_iteration=0)
    report = report_of("quickstart", "untrained", TrainJob(untrained, "run"), result)
    assert (report.points, report.scores) == ((), {"best/iteration": 0.0})


def test_further_metrics_of_a_run_are_reported():
    record = some_run(metrics_separated={"recall@2": 0.7}, metrics_concatenated={"recall@2": 0.8})
    report = report_of("quickstart", "triplet", TEST, record)
    assert (report.scores["test/separated_recall@2"], report.scores["test/concatenated_recall@2"]) == (0.7, 0.8)
    assert report.scores["test/separated_map_at_r"] == record.separated.map_at_r
    assert report.settings["hyperparameters.loss.margin"] == 0.1


def test_tensorboard_writes_a_training_once_and_completely(tmp_path):
    board = TensorBoard(tmp_path / "tensorboard")
    report = report_of("quickstart", "triplet", TRAINING, some_result(SPEC))
    board.report(report)
    before = sorted(tmp_path.rglob("*"))
    board.report(report)
    assert sorted(tmp_path.rglob("*")) == before
    broken = report_of("quickstart", "broken", TRAINING, some_result(SPEC))
    broken.points[-1][1]["training/loss"] = "no number"
    with pytest.raises(Exception, match="no number"):
        board.report(broken)
    assert sorted(tmp_path.rglob("*")) == before


class Recorded:
    """A tracker and observer that records its calls. `fails` is the error that every report raises."""

    def __init__(self, fails=None):
        self.fails, self.reports, self.told = fails, [], []

    def report(self, report):
        self.reports.append(report)
        if self.fails:
            raise self.fails

    def job_done(self, method, job, outcome, *, from_store):
        self.told.append((method, job, outcome, from_store))

    def ticks(self, ticks):
        self.told.append(ticks)


def test_a_failing_tracker_is_reported_once_and_removed():
    broken, whole = Recorded(fails=ConnectionError("no network\nand a long story")), Recorded()
    trackers = {"wandb": broken, "tensorboard": whole}
    console = Console(file=io.StringIO(), width=500)
    tracking = Tracking("quickstart", trackers, console)
    for result in (some_result(SPEC, 0.5), some_result(SPEC, 0.25)):
        tracking.job_done("triplet", TRAINING, result, from_store=False)
    assert len(broken.reports) == 1
    assert [report.scores["best/map_at_r"] for report in whole.reports] == [0.5, 0.25]
    assert console.file.getvalue() == (
        "--track wandb: the tracker failed and gets no more reports (ConnectionError: no network); the run continues\n"
    )
    # The panels of a file share their trackers, so that the failure is reported only once.
    assert list(trackers) == ["tensorboard"]


def test_results_from_the_store_are_not_reported_again():
    tracker = Recorded()
    tracking = Tracking("quickstart", {"wandb": tracker}, Console(file=io.StringIO()))
    tracking.job_done("triplet", TRAINING, some_result(SPEC), from_store=True)
    tracking.job_done("triplet", TEST, some_run(), from_store=True)
    assert tracker.reports == []


def test_all_observers_get_the_same_calls_in_order():
    first, second = Recorded(), Recorded()
    both = Observers(first, second)
    result, ticks = some_result(SPEC), [Tick("f", 3)]
    both.job_done("triplet", TRAINING, result, from_store=True)
    both.ticks(ticks)
    assert first.told == second.told == [("triplet", TRAINING, result, True), ticks]


class FakeWandb(ModuleType):
    """A fake of W&B's `init`, `Run.log`, `Run.finish` and `Settings`, as strict as W&B.

    One run at a time; steps never go back; nothing is logged after the end. fails: what `init` raises.
    """

    def __init__(self, fails=None):
        super().__init__("wandb")
        self.fails, self.runs = fails, []

    def Settings(self, *, silent, console):  # noqa: N802
        return SimpleNamespace(silent=silent, console=console)

    def init(self, *, project=None, name=None, config=None, mode=None, group=None, job_type=None, settings=None):
        if self.fails:
            raise self.fails
        assert all(run.finished for run in self.runs)
        mode = mode or os.environ.get("WANDB_MODE", "online")
        self.runs.append(FakeRun(project=project, name=name, config=config, mode=mode, group=group, job_type=job_type))
        return self.runs[-1]


class FakeRun(SimpleNamespace):
    def __init__(self, **fields):
        super().__init__(**fields, rows={}, finished=False)

    def log(self, data, step=None):
        assert not self.finished
        assert step >= max(self.rows, default=0)
        self.rows.setdefault(step, {}).update(data)

    def finish(self):
        self.finished = True


@pytest.fixture
def wandb(monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return fake


def test_wandb_has_a_run_per_training_and_per_test(wandb, monkeypatch):
    tracker = WeightsAndBiases()
    tracker.report(report_of("quickstart", "triplet", TRAINING, some_result(SPEC, 0.5)))
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    tracker.report(report_of("quickstart", "triplet", TEST, some_run()))
    training, test = wandb.runs
    assert (training.project, test.project) == (WeightsAndBiases.project, "mine")
    assert (training.mode, training.finished, training.job_type) == ("offline", True, "reproduction")
    assert training.name == f"quickstart/triplet/reproduction/fold-1-{SPEC.fingerprint[:8]}"
    assert training.config["method.loss.arguments.margin"] == 0.1
    assert list(training.rows) == [0, 100, 200]
    assert training.rows[200]["validation/map_at_r"] == training.rows[200]["best/map_at_r"] == 0.5
    assert (test.group, test.job_type, test.finished) == ("quickstart/triplet", "test", True)
    assert test.rows[0]["test/concatenated_precision_at_1"] == 0.6


def run_untrained(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    asked = ("--data", "images", "--methods", "untrained", "--workers", "1", "--device", "cpu", "--track", "wandb")
    store = ("--store", str(tmp_path / "store.sqlite"), "--cache", str(folder / "runs" / "cache"))
    answer = ask("run", "tiny.yaml", *asked, *store, capsys=capsys, monkeypatch=monkeypatch)
    torch.set_num_threads(1)
    assert answer.code == 0, answer.err
    return answer


def test_a_run_reports_new_results_to_wandb_only_once(wandb, tiny_run, tmp_path, capsys, monkeypatch):
    run_untrained(tiny_run, tmp_path, capsys, monkeypatch)
    assert sorted(run.name.rsplit("-", 1)[0] for run in wandb.runs) == [
        "tiny/untrained/reproduction/fold-0",
        "tiny/untrained/reproduction/fold-1",
        "tiny/untrained/test/run-0",
    ]
    run_untrained(tiny_run, tmp_path, capsys, monkeypatch)
    assert len(wandb.runs) == 3


def test_a_run_continues_without_a_failing_tracker(wandb, tiny_run, tmp_path, capsys, monkeypatch):
    wandb.fails = RuntimeError("api_key not configured (no-tty). call wandb login")
    answer = run_untrained(tiny_run, tmp_path, capsys, monkeypatch)
    assert answer.out.count("--track wandb: the tracker failed and gets no more reports") == 1
    assert "2 trainings made" in answer.out


def test_a_missing_package_and_an_unknown_tracker_are_reported_before_any_work(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith(("torch.utils.tensorboard", "tensorboard."))]:
        monkeypatch.delitem(sys.modules, name)
    for name, said in (
        ("wandb", "error: --track wandb: not installed (import of wandb halted"),
        ("tensorboard", "error: --track tensorboard: not installed (import of tensorboard halted"),
        ("mlflow", "error: --track 'mlflow': use tensorboard or wandb"),
    ):
        answer = ask("run", "quickstart", "--track", name, capsys=capsys, monkeypatch=monkeypatch)
        assert answer.code == 2
        assert answer.err.startswith(said)
        assert len(answer.err.splitlines()) == 1
        if name != "mlflow":
            assert f"run `pip install {name}`" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_both_trackers_can_be_used_together(wandb, tmp_path):
    trackers = open_trackers(["tensorboard", "wandb", "wandb"], f"sqlite:///{tmp_path}/store.sqlite")
    assert list(trackers) == ["tensorboard", "wandb"]
    assert trackers["tensorboard"].folder == tmp_path / "tensorboard"
    with pytest.raises(InputError, match="use tensorboard or wandb"):
        open_trackers(["TensorBoard"], "sqlite:///store.sqlite")


def test_trackers_are_imported_only_for_the_track_option():
    code = (
        "import sys, reproduce.execution.run_experiment; from reproduce.monitoring.trackers import open_trackers; "
        "open_trackers([], 'sqlite:///x'); print({'tensorboard', 'wandb'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
