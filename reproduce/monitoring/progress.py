"""Live progress: bars with the time left on a terminal, plain lines now and then in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from protocols.jobs import EvaluateJob, Job, Outcome
from results.records.records import FoldResult, RunRecord
from results.wording import in_words

if TYPE_CHECKING:
    from protocols.images.packing import Progress as Reading

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())

_LINE_SECONDS = 30.0
"""Time between two lines of a task in a log."""


class Bars(Progress):
    """Shows one bar per task on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
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


_SPEED_FROM_SECONDS = 24 * 3600.0
"""The time left comes from the trainings of the last day, since one of them can take hours."""


class RunProgress(Progress):
    """Shows the progress of a run. Use it as a context manager around the run.

    The bar counts the trainings that this run makes. Those found in the store, those that racing takes away, and those
    of methods without a loss, which take almost no time beside others, are left out of it, so that the time left is
    right. With racing it is the longest that is left. A log gets a line per trial or run, that is, per number of folds.

    Args:
        console: Where to show it.
        trainings: Returns how many trainings a method has at most, as far as its trials are known, given its key.
        titles: Titles of the methods.
        folds: Number of trainings of a trial.
        quick: Methods without a loss. Where all are, they count.

    Attributes:
        made: Number of trainings made in this run, by method.
        found: Number of trainings that were in the store before, by method.
    """

    def __init__(
        self,
        console: Console,
        trainings: Callable[[str], int],
        titles: Mapping[str, str],
        folds: int,
        quick: Collection[str] = (),
    ) -> None:
        whole = Column(no_wrap=True)  # On a narrow terminal only the notes are broken over lines.
        super().__init__(
            TextColumn("{task.description}", table_column=whole),
            BarColumn(10, table_column=whole),
            MofNCompleteColumn(table_column=whole),
            TimeRemainingColumn(table_column=whole),
            TextColumn("{task.fields[note]}", table_column=Column()),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=_SPEED_FROM_SECONDS,
        )
        self._trainings, self.folds = trainings, folds
        self._quick = quick if set(titles) - set(quick) else ()
        self.totals = {key: trainings(key) for key in titles}
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self._untimed = Counter({key: self.totals[key] for key in self._quick})
        self._best: dict[str, FoldResult] = {}
        timed = {key: self.totals[key] - self._untimed[key] for key in titles}
        self._all = self.add_task("trainings", total=sum(timed.values()), note="")
        self._rows = {key: self.add_task(title, total=timed[key], note="waiting") for key, title in titles.items()}

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Count a training, or show a test score."""
        if isinstance(outcome, RunRecord):
            score = f"separated MAP@R {outcome.separated.map_at_r:.4f}"
            self._note(method, f"{outcome.name} tested, {score}", say=not from_store)
            return
        assert not isinstance(job, EvaluateJob)
        (self.found if from_store else self.made)[method] += 1
        if from_store:
            self._untimed[method] += method not in self._quick
        elif method not in self._quick:
            self.totals[method] = self._trainings(method)
            self.advance(self._all)
            self.advance(self._rows[method])
        # `update` would forget the speed with every change of the total.
        self.tasks[self._rows[method]].total = self.totals[method] - self._untimed[method]
        self.tasks[self._all].total = sum(self.totals.values()) - self._untimed.total()
        best = max(outcome, self._best.get(method, outcome), key=lambda fold: fold.best_map_at_r or 0.0)
        self._best[method] = best
        phase = "choosing the epoch" if job.chooses_epoch else "search" if job.run is None else "reproductions"
        done = self.made[method] + self.found[method]
        # A log gets a line per trial or run, not per training.
        is_whole = job.spec.checkpoint_epoch is not None or done % self.folds == 0
        note = f"{phase}, {done} of {self.totals[method]} trainings"
        if best.best_map_at_r is not None:  # Without validation classes there is none.
            note += f", best fold's validation MAP@R {best.best_map_at_r:.4f} (untrained {best.untrained_map_at_r:.4f})"
        self._note(method, note, say=not from_store and is_whole)

    def _note(self, method: str, note: str, *, say: bool) -> None:
        self.update(self._rows[method], note=note)
        if say and not self.console.is_terminal:
            done, total = self.made.total() + self.found.total(), sum(self.totals.values())
            left = f"time left {in_words(self.tasks[0].time_remaining)}"
            self.console.print(f"[{done}/{total}, {left}] {method}: {note}", highlight=False)
