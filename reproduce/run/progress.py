"""Live progress: bars with the time left on a terminal, lines now and then in a log, and curves in TensorBoard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from reproduce.errors import InputError
from reproduce.run.time_left import TimeLeft
from reproduce.terminal import output_console, say
from results.answer.durations import Stage
from results.records.frame import scores_of
from results.records.records import FoldResult, RunRecord
from results.values import flat
from results.wording import counted, in_words

if TYPE_CHECKING:
    from protocols.images.packing import Progress as Reading

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())

_LINE_SECONDS = 30.0
"""Time between two lines of a task in a log."""


class Bars(Progress):
    """Shows one bar per task on a terminal. Use it as a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or output_console()
        super().__init__(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal)

    def of(self, what: str) -> Reading:
        """Add a task, and return a function that takes the amounts done and in total and moves its bar.

        The bar appears with the first progress.
        """
        task, last = self.add_task(what, visible=False, total=None), self.get_time()

        def moved(done: int, total: int | None) -> None:
            nonlocal last
            self.update(task, completed=done, total=total, visible=True)
            if not self.console.is_terminal and self.get_time() - last >= _LINE_SECONDS:
                last, left = self.get_time(), in_words(self.tasks[task].time_remaining)
                of_all = f" of {total:,}, time left {left}" if total else ""
                self.console.print(f"{what}: {done:,}{of_all}", highlight=False)

        return moved


class RunProgress(Progress):
    """Shows the progress of a run. Use it as a context manager around the run.

    The bar counts the trainings that this run makes. Those found in the store and those that racing takes away are left
    out of it. A log gets a line per trial or run, that is, per number of folds.

    Args:
        trainings: Returns how many trainings a method has at most, as far as its trials are known, given its key.
        titles: Titles of the methods.
        folds: Number of trainings of a trial.
        time_left: Says how long the trainings that are left take. None for trainings that are alike: those that are
            left take as long as those that were made.
        phase: What the trainings are for, such as `probes`; by default the stage of each.
        console: Where to show it, by default on standard output.

    Attributes:
        made: Number of trainings made in this run, by method.
        found: Number of trainings that were in the store before, by method.
    """

    def __init__(
        self,
        trainings: Callable[[str], int],
        titles: Mapping[str, str],
        folds: int,
        time_left: TimeLeft | None = None,
        phase: str = "",
        console: Console | None = None,
    ) -> None:
        console = console or output_console()
        whole = Column(no_wrap=True)  # On a narrow terminal only the notes are broken over lines.
        super().__init__(
            TextColumn("{task.description}", table_column=whole),
            BarColumn(10, table_column=whole),
            MofNCompleteColumn(table_column=whole),
            TextColumn("{task.fields[left]}", table_column=whole),
            TextColumn("{task.fields[note]}", table_column=Column()),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._trainings, self.folds, self._time_left, self._phase = trainings, folds, time_left, phase
        self.totals = {key: trainings(key) for key in titles}
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self._done: Counter[tuple[str, Stage]] = Counter()
        self._best: dict[str, FoldResult] = {}
        self._without_pairs: set[str] = set()
        self._started = self.get_time()
        self._all = self.add_task("trainings", total=sum(self.totals.values()), note="", left="")
        self._rows = {
            key: self.add_task(title, total=self.totals[key], note="waiting", left="") for key, title in titles.items()
        }

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Count a training, or show a test score."""
        if isinstance(outcome, RunRecord):
            score = f"separated MAP@R {outcome.separated.map_at_r:.4f}"
            self._note(method, f"{outcome.name} tested, {score}", log=not from_store)
            return
        assert not isinstance(job, EvaluateJob)
        stage: Stage = "search" if job.run is None and not job.chooses_epoch else "reproductions"
        (self.found if from_store else self.made)[method] += 1
        self._done[method, stage] += 1
        self._say_without_pairs(method, outcome)
        if not from_store:
            self.totals[method] = self._trainings(method)
            if self._time_left is not None:
                self._time_left.made(method, stage, self.get_time() - self._started)
        self.update(self._rows[method], total=self.totals[method] - self.found[method], completed=self.made[method])
        to_make = sum(self.totals.values()) - self.found.total()
        self.update(self._all, total=to_make, completed=self.made.total(), left=self._left())
        best = max(outcome, self._best.get(method, outcome), key=lambda fold: fold.best_map_at_r or 0.0)
        self._best[method] = best
        phase = "choosing the epoch" if job.chooses_epoch else self._phase or stage
        done = self.made[method] + self.found[method]
        # A log gets a line per trial or run, not per training.
        is_whole = job.spec.checkpoint_epoch is not None or done % self.folds == 0
        note = f"{phase}, {done} of {counted(self.totals[method], 'training')}"
        if best.best_map_at_r is not None:  # Without validation classes there is none.
            scores = f"{best.best_map_at_r:.4f} (at its start {best.untrained_map_at_r:.4f})"
            note += f", best fold of all searches so far: validation MAP@R {scores}"
        self._note(method, note, log=not from_store and is_whole)

    def _say_without_pairs(self, method: str, result: FoldResult) -> None:
        """Say once of a method that batches had no two images of a class."""
        if result.batches_without_pairs and method not in self._without_pairs:
            self._without_pairs.add(method)
            batches = f"{result.batches_without_pairs:,} of {counted(result.iterations, 'batch')}"
            self.console.print(
                f"{method}: in {batches} of a training no two images are of one class, so a loss on pairs has nothing "
                "to pull together; give its card batch: {samples_per_class: 2} or more, or take larger batches",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )

    def _note(self, method: str, note: str, *, log: bool) -> None:
        self.update(self._rows[method], note=note)
        if log and not self.console.is_terminal:
            done, total = self.made.total() + self.found.total(), sum(self.totals.values())
            self.console.print(f"[{done}/{total}, {self._left()}] {method}: {note}", highlight=False)

    def _left(self) -> str:
        seconds, elapsed, made = None, self.get_time() - self._started, self.made.total()
        if self._time_left is not None:
            seconds = self._time_left.seconds(self.totals, self._done, elapsed)
        elif made >= self.folds:
            seconds = elapsed / made * (sum(self.totals.values()) - self.found.total() - made)
        return f"time left {in_words(seconds)}"


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

    def __init__(self, experiment: str, folder: Path | None) -> None:
        self.experiment, self.folder = experiment, folder

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
            say(f"--track: nothing more is written ({error.strerror or error}); the run continues")


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
