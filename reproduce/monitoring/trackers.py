"""Shows curves and scores of new trainings and tests in TensorBoard during a run."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from protocols.jobs import Job, Outcome, TrainJob
from reproduce.errors import InputError
from results.records.frame import scores_of
from results.records.records import FoldResult, RunRecord
from results.values import flat


def tensorboard_folder(folder: Path) -> Path:
    """Return the folder of TensorBoard's files, once it is known that the package is there."""
    try:
        import tensorboard  # type: ignore[import-untyped]  # noqa: F401 - torch's writer needs it.
    except ImportError as error:
        raise InputError(f"--track tensorboard: not installed ({error}); run `pip install tensorboard`") from error
    return folder


class Tracking:
    """An observer that writes new trainings and tests for TensorBoard, in one folder each.

    Results from the store are not written again. If a file cannot be written, this is said once, and the run goes on.
    """

    def __init__(self, experiment: str, folder: Path | None, console: Console) -> None:
        self.experiment, self.folder, self.console = experiment, folder, console

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Write the curve, the settings and the scores of a new training or test."""
        if from_store or self.folder is None:
            return
        folder = self.folder / self.experiment / method
        try:
            if isinstance(job, TrainJob) and isinstance(outcome, FoldResult):
                write_training(folder, job, outcome)
            elif isinstance(outcome, RunRecord):
                write_test(folder, outcome)
        except OSError as error:
            self.folder = None
            line = f"--track: nothing more is written ({error.strerror or error}); the run continues"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def write_training(folder: Path, job: TrainJob, result: FoldResult) -> None:
    """Write a training with its curve to `search/` or `reproduction/`."""
    spec = job.spec
    # The trainings that choose a reproduction's epoch belong to it.
    purpose = "search" if job.run is None and not job.chooses_epoch else "reproduction"
    curve = {}
    for point in result.curve:
        values = {f"validation/{name}": getattr(point, name) for name in ("map_at_r", "r_precision", "precision_at_1")}
        curve[point.iteration] = {**values, "training/loss": point.loss}
    scores = {"best/map_at_r": result.best_map_at_r, "best/iteration": float(result.best_iteration)}
    settings = spec.model_dump(mode="json", exclude={"train_classes", "validation_classes"})
    _write(folder / purpose / f"fold-{spec.fold}-{spec.fingerprint[:8]}", settings, curve, scores)


def write_test(folder: Path, record: RunRecord) -> None:
    """Write the scores of a run to `test/`."""
    scores = {f"test/{kind}_{metric}": value for kind, metric, value in scores_of(record)}
    of_run, numbers = {"protocol", "seed", "hyperparameters"}, {"run": record.run + 1, "search": record.search + 1}
    settings = {"dataset": record.dataset, **numbers, **record.model_dump(mode="json", include=of_run)}
    _write(folder / "test" / f"run-{record.run + 1}-{record.fingerprint[:8]}", settings, {}, scores)


def _write(
    folder: Path,
    settings: Mapping[str, object],
    curve: Mapping[int, Mapping[str, float | None]],
    scores: Mapping[str, float | None],
) -> None:
    from torch.utils.tensorboard import SummaryWriter

    known = {
        key: str(value) if isinstance(value, list) else value for key, value in flat(settings) if value is not None
    }
    with SummaryWriter(log_dir=str(folder)) as writer:
        for iteration, values in curve.items():
            for name, value in values.items():
                if value is not None:
                    writer.add_scalar(name, value, iteration)
        writer.add_hparams(known, {name: value for name, value in scores.items() if value is not None}, run_name=".")
