"""Live progress of a run: a bar with the time left and a line per method; without a terminal, plain lines."""

from collections import Counter
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from protocols.jobs import EvaluateJob, Job, Outcome
from reproduce.forecast import in_words
from results.records.records import FoldResult, RunRecord

_SPEED_FROM_SECONDS = 24 * 3600.0
"""The time left comes from the trainings of the last day, since one of them can take hours."""


class RunProgress:
    """Shows the progress of a run. Use it as a context manager around the run.

    The bar counts the trainings that this run makes. Those found in the store and those of methods without a loss,
    which take almost no time, are left out of it, so that the time left is right. A log gets a line per trial or run,
    that is, per number of folds.

    Args:
        console: Where to show it.
        totals: Number of trainings of each method, by key.
        titles: Titles of the methods.
        folds: Number of trainings of a trial.
        clock: Returns the time in seconds; None takes the console's.

    Attributes:
        made: Number of trainings made in this run, by method.
        found: Number of trainings that were in the store before, by method.
    """

    def __init__(
        self,
        console: Console,
        totals: dict[str, int],
        titles: dict[str, str],
        folds: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.console, self.totals, self.titles, self.folds = console, totals, titles, folds
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self._notes = dict.fromkeys(titles, "waiting")
        self._best = dict.fromkeys(titles, 0.0)
        self._untrained = dict.fromkeys(titles, 0.0)
        columns = (TextColumn("trainings"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TimeRemainingColumn(), TextColumn("left"))
        self._bar = Progress(
            *(*columns, *left), console=console, speed_estimate_period=_SPEED_FROM_SECONDS, get_time=clock
        )
        self._task = self._bar.add_task("trainings", total=sum(totals.values()))
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def __enter__(self) -> "RunProgress":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Count a training, or show a test score."""
        if isinstance(outcome, RunRecord):
            search = f" of search {outcome.search + 1}" if outcome.search else ""
            score = f"separated MAP@R {outcome.separated.map_at_r:.4f}"
            self._note(method, f"run {outcome.run + 1}{search} tested, {score}", say=not from_store)
            return
        assert isinstance(outcome, FoldResult)
        assert not isinstance(job, EvaluateJob)
        if from_store or job.spec.method.loss is None:  # It took almost no time.
            self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) - 1)
        else:
            self._bar.advance(self._task)
        (self.found if from_store else self.made)[method] += 1
        if (outcome.best_map_at_r or 0.0) > self._best[method]:
            self._best[method] = outcome.best_map_at_r or 0.0
            self._untrained[method] = outcome.untrained_map_at_r or 0.0
        phase = "choosing the epoch" if job.chooses_epoch else "search" if job.run is None else "reproductions"
        done = self.made[method] + self.found[method]
        count = f"{done} of {self.totals[method]} trainings"
        # A log gets a line per trial or run, not per training.
        is_whole = job.spec.checkpoint_epoch is not None or done % self.folds == 0
        best = f"best fold's validation MAP@R {self._best[method]:.4f} (untrained {self._untrained[method]:.4f})"
        self._note(method, f"{phase}, {count}, {best}", say=not from_store and is_whole)

    def _note(self, method: str, note: str, *, say: bool) -> None:
        self._notes[method] = note
        if say and not self.console.is_terminal:
            done, total = self.made.total() + self.found.total(), sum(self.totals.values())
            left = f"time left {in_words(self._bar.tasks[0].time_remaining)}"
            self.console.print(f"[{done}/{total}, {left}] {method}: {note}", highlight=False)

    def _render(self) -> Table:
        grid = Table.grid(padding=(0, 2))
        for method, note in self._notes.items():
            grid.add_row(self.titles[method], note)
        display = Table.grid()
        display.add_row(grid)
        display.add_row(self._bar)
        return display
