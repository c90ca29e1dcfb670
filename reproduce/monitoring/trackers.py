"""Curves and scores of what is newly made, shown in TensorBoard or Weights & Biases while a run goes on.

A tracker gets one report per finished training or test. Results from the store were reported when they were made, and
are not reported again. A tracker that fails is removed with one message: it must never end the trainings.
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
from results.records import CurvePoint, FoldResult, RunRecord
from results.statistics.run_values import EMBEDDING_KINDS
from results.whole_files import whole_folder

Setting = bool | int | float | str


@dataclass(frozen=True)
class JobReport:
    """A finished training, or the test of a run.

    name: experiment/method/purpose/fold. group: experiment/method. settings: hyperparameters and what else decided the
    outcome, by dotted name. points: measurements by iteration, in order. scores: what came of it in the end.
    """

    name: str
    group: str
    purpose: Literal["search", "reproduction", "test"]
    settings: dict[str, Setting]
    points: tuple[tuple[int, dict[str, float]], ...]
    scores: dict[str, float]


class Tracker(Protocol):
    """Shows reports."""

    def report(self, report: JobReport) -> None:
        """Takes one; whatever it raises is told and ends the tracking, nothing else."""


class TensorBoard:
    """Event files below `folder`, a folder per report; one that is there already is not written again."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder, self._writer = folder, SummaryWriter

    def report(self, report: JobReport) -> None:
        """Writes curves as scalars, settings and scores as TensorBoard's hyperparameters."""
        folder = self.folder / report.name
        if folder.exists():
            return
        # Filled beside the folder that TensorBoard watches, so that it never sees half a report.
        with whole_folder(folder, beside=self.folder) as partial, self._writer(log_dir=str(partial)) as writer:
            for iteration, values in report.points:
                for name, value in values.items():
                    writer.add_scalar(name, value, iteration)
            writer.add_hparams(report.settings, report.scores, run_name=".")


class WeightsAndBiases:
    """A W&B run per report. W&B's own variables hold: WANDB_MODE=offline, WANDB_PROJECT, WANDB_ENTITY, WANDB_DIR."""

    project = "metric-learning-reproductions"

    def __init__(self) -> None:
        import wandb

        self._wandb: Any = wandb

    def report(self, report: JobReport) -> None:
        """Logs curves by iteration, scores with the last one; settings are the run's config."""
        run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", self.project),
            name=report.name,
            group=report.group,
            job_type=report.purpose,
            config=report.settings,
            # A redirected console would fight with the progress shown here.
            settings=self._wandb.Settings(silent=True, console="off"),
        )
        try:
            for iteration, values in report.points:
                run.log(values, step=iteration)
            run.log(report.scores, step=report.points[-1][0] if report.points else 0)
        finally:
            run.finish()


def open_trackers(names: Sequence[str], store: str) -> dict[str, Tracker]:
    """The trackers of `--track`, by name; raises InputError for unknown ones and for packages that are missing.

    store: URL, beside which TensorBoard's files go.
    """
    known: Mapping[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: TensorBoard(beside(store) / "tensorboard"),
        "wandb": WeightsAndBiases,
    }
    trackers: dict[str, Tracker] = {}
    for name in names:
        if name not in known:
            raise InputError(f"--track {name!r}: use {' or '.join(known)}")
        try:
            trackers[name] = known[name]()
        except ImportError as error:
            raise InputError(f"--track {name}: not installed ({error}); run `pip install {name}`") from error
    return trackers


class Tracking:
    """An observer that reports what is newly made. trackers: by name; one that fails is taken out of them."""

    def __init__(self, experiment: str, trackers: dict[str, Tracker], console: Console) -> None:
        self.experiment, self.trackers, self.console = experiment, trackers, console

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Reports a training or a test to all trackers."""
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
                    f"--track {name}: failed and is left out from here on ({type(error).__name__}: {reason}); the "
                    "trainings go on",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )

    def ticks(self, ticks: list[Tick]) -> None:
        """Nothing: a training is reported when it is over."""


def report_of(experiment: str, method: str, job: Job, outcome: Outcome) -> JobReport:
    """The report of a job's outcome."""
    group = f"{experiment}/{method}"
    if isinstance(job, TrainJob):
        assert isinstance(outcome, FoldResult)
        return _training(group, job, outcome)
    assert isinstance(outcome, RunRecord)
    return _test(group, job, outcome)


def _training(group: str, job: TrainJob, result: FoldResult) -> JobReport:
    spec = job.spec
    purpose: Literal["search", "reproduction"] = "search" if job.run is None else "reproduction"
    kept = {"method", "training", "trunk", "images", "embedding_size", "dataset", "split", "fold", "seed"}
    scores = {"best/map_at_r": result.best_map_at_r, "best/iteration": float(result.best_iteration)}
    return JobReport(
        name=f"{group}/{purpose}/fold-{spec.fold}-{spec.fingerprint[:8]}",
        group=group,
        purpose=purpose,
        settings=_flat(spec.model_dump(mode="json", include=kept)),
        points=tuple((point.iteration, _measured(point)) for point in result.curve),
        scores={name: value for name, value in scores.items() if value is not None},
    )


def _test(group: str, job: EvaluateJob, record: RunRecord) -> JobReport:
    settings = record.model_dump(mode="json", include={"dataset", "protocol", "run", "seed", "hyperparameters"})
    scores: dict[str, float] = {}
    for kind in EMBEDDING_KINDS:
        for metrics in (getattr(record, kind).model_dump(), getattr(record, f"metrics_{kind}")):
            scores |= {f"test/{kind}_{name}": value for name, value in metrics.items()}
    return JobReport(
        name=f"{group}/test/run-{record.run}-{job.fingerprint[:8]}",
        group=group,
        purpose="test",
        settings=_flat(settings),
        points=(),
        scores=scores,
    )


def _measured(point: CurvePoint) -> dict[str, float]:
    values = {f"validation/{name}": getattr(point, name) for name in ("map_at_r", "r_precision", "precision_at_1")}
    values["training/loss"] = point.loss
    return {name: value for name, value in values.items() if value is not None}


def _flat(values: Mapping[str, JsonValue], prefix: str = "") -> dict[str, Setting]:
    """Nested settings by dotted name; what is None is left out, lists are told as text."""
    flat: dict[str, Setting] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = str(value) if isinstance(value, list) else value
    return flat
