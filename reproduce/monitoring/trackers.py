"""Shows curves and scores of new trainings and tests in TensorBoard or Weights & Biases during a run.

A tracker gets one report per finished training or test. Results from the store are not reported again. A tracker that
fails is removed with one message; it never ends the run.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import JsonValue
from rich.console import Console

from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from reproduce.errors import InputError
from reproduce.monitoring.observer import Tick
from reproduce.storage import beside
from results.records.records import CurvePoint, FoldResult, RunRecord
from results.statistics.run_values import EMBEDDING_KINDS
from results.store.urls import StorePlace
from results.whole_files import whole_folder

Setting = bool | int | float | str


@dataclass(frozen=True)
class JobReport:
    """A report of a finished training or test.

    Attributes:
        name: experiment/method/purpose/fold.
        group: experiment/method.
        purpose: The kind of job.
        settings: Hyperparameters and other settings, by dotted name.
        points: Iterations with their measurements, in order.
        scores: Final scores by name.
    """

    name: str
    group: str
    purpose: Literal["search", "reproduction", "test"]
    settings: dict[str, Setting]
    points: tuple[tuple[int, dict[str, float]], ...]
    scores: dict[str, float]


class Tracker(Protocol):
    """Shows reports of finished jobs."""

    def report(self, report: JobReport) -> None:
        """Show a report. An exception is printed and ends the tracking, but not the run."""


class TensorBoard:
    """Writes event files, in one folder per report. A folder that exists is not written again."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder, self._writer = folder, SummaryWriter

    def report(self, report: JobReport) -> None:
        """Write curves as scalars, and settings and scores as TensorBoard's hyperparameters."""
        folder = self.folder / report.name
        if folder.exists():
            return
        # The files are written elsewhere and moved, so that TensorBoard never reads half a report.
        with whole_folder(folder, beside=self.folder) as partial, self._writer(log_dir=str(partial)) as writer:
            for iteration, values in report.points:
                for name, value in values.items():
                    writer.add_scalar(name, value, iteration)
            writer.add_hparams(report.settings, report.scores, run_name=".")


class WeightsAndBiases:
    """Makes a W&B run per report.

    W&B's environment variables apply: WANDB_MODE=offline, WANDB_PROJECT, WANDB_ENTITY, WANDB_DIR.
    """

    project = "metric-learning-reproductions"

    def __init__(self) -> None:
        import wandb

        self._wandb: Any = wandb

    def report(self, report: JobReport) -> None:
        """Log curves by iteration and scores at the last iteration. Settings become the run's config."""
        run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", self.project),
            name=report.name,
            group=report.group,
            job_type=report.purpose,
            config=report.settings,
            # W&B must not redirect the console, since that would disturb the progress display.
            settings=self._wandb.Settings(silent=True, console="off"),
        )
        try:
            for iteration, values in report.points:
                run.log(values, step=iteration)
            run.log(report.scores, step=report.points[-1][0] if report.points else 0)
        finally:
            run.finish()


def open_trackers(names: Sequence[str], store: StorePlace) -> dict[str, Tracker]:
    """Open the trackers of `--track`."""
    factories: Mapping[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: TensorBoard(beside(store) / "tensorboard"),
        "wandb": WeightsAndBiases,
    }
    trackers: dict[str, Tracker] = {}
    for name in names:
        if name not in factories:
            raise InputError(f"--track {name!r}: use {' or '.join(factories)}")
        try:
            trackers[name] = factories[name]()
        except ImportError as error:
            raise InputError(f"--track {name}: not installed ({error}); run `pip install {name}`") from error
    return trackers


class Tracking:
    """An observer that reports new trainings and tests to trackers. One that fails is removed from the dictionary."""

    def __init__(self, experiment: str, trackers: dict[str, Tracker], console: Console) -> None:
        self.experiment, self.trackers, self.console = experiment, trackers, console

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Report a new training or test to all trackers."""
        if from_store or not self.trackers:
            return
        report = report_of(self.experiment, method, job, outcome)
        for name, tracker in list(self.trackers.items()):
            try:
                tracker.report(report)
            except Exception as error:
                del self.trackers[name]
                reason = (str(error).splitlines() or [""])[0]
                self.console.print(
                    f"--track {name}: the tracker failed and gets no more reports ({type(error).__name__}: {reason}); "
                    "the run continues",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )

    def spared(self, method: str, fingerprints: list[str]) -> None:
        """Do nothing: a training that is not needed is not reported."""

    def ticks(self, ticks: list[Tick]) -> None:
        """Do nothing: a training is reported when it is finished."""


def report_of(experiment: str, method: str, job: Job, outcome: Outcome) -> JobReport:
    """Return the report of a job's outcome."""
    group = f"{experiment}/{method}"
    if isinstance(job, TrainJob):
        assert isinstance(outcome, FoldResult)
        return _training_report(group, job, outcome)
    assert isinstance(outcome, RunRecord)
    return _test_report(group, job, outcome)


def _training_report(group: str, job: TrainJob, result: FoldResult) -> JobReport:
    spec = job.spec
    # The trainings that choose a reproduction's epoch belong to it.
    in_search = job.run is None and not job.chooses_epoch
    purpose: Literal["search", "reproduction"] = "search" if in_search else "reproduction"
    reported = {"method", "training", "trunk", "images", "embedding_size", "dataset", "split", "fold", "seed"}
    scores = {"best/map_at_r": result.best_map_at_r, "best/iteration": float(result.best_iteration)}
    return JobReport(
        name=f"{group}/{purpose}/fold-{spec.fold}-{spec.fingerprint[:8]}",
        group=group,
        purpose=purpose,
        settings=_flat(spec.model_dump(mode="json", include=reported)),
        points=tuple((point.iteration, _measurements(point)) for point in result.curve),
        scores={name: value for name, value in scores.items() if value is not None},
    )


def _test_report(group: str, job: EvaluateJob, record: RunRecord) -> JobReport:
    reported = {"dataset", "protocol", "run", "search", "seed", "hyperparameters"}
    settings = record.model_dump(mode="json", include=reported)
    scores: dict[str, float] = {}
    for kind in EMBEDDING_KINDS:
        for metrics in (getattr(record, kind).model_dump(), getattr(record, f"metrics_{kind}")):
            scores |= {f"test/{kind}_{name}": value for name, value in metrics.items()}
    if record.last_epoch is not None:
        scores |= {f"test/last_epoch_{name}": value for name, value in record.last_epoch.model_dump().items()}
    return JobReport(
        name=f"{group}/test/run-{record.run}-{job.fingerprint[:8]}",
        group=group,
        purpose="test",
        settings=_flat(settings),
        points=(),
        scores=scores,
    )


def _measurements(point: CurvePoint) -> dict[str, float]:
    values = {f"validation/{name}": getattr(point, name) for name in ("map_at_r", "r_precision", "precision_at_1")}
    values["training/loss"] = point.loss
    return {name: value for name, value in values.items() if value is not None}


def _flat(values: Mapping[str, JsonValue], prefix: str = "") -> dict[str, Setting]:
    """Return nested settings by dotted name. Values that are None are left out, and lists become text."""
    flat: dict[str, Setting] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = str(value) if isinstance(value, list) else value
    return flat
