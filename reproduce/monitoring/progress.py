"""Live progress of a run: a bar with the time left and a line per method; without a terminal, plain lines."""

from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from protocols.jobs import EvaluateJob, Job, Outcome
from reproduce.monitoring.observer import Tick
from reproduce.monitoring.time_left import Forecast, in_words
from results.records.records import FoldResult, RunRecord


class RunProgress:
    """Shows the progress of a run as an observer of the scheduler. Use it as a context manager around the run.

    A log gets a line per trial or run, that is, per number of folds.
    """

    def __init__(self, console: Console, forecast: Forecast, titles: dict[str, str], folds: int) -> None:
        self.console, self.forecast, self.titles, self.folds = console, forecast, titles, folds
        self.running: dict[str, int] = {}
        self._finished: set[str] = set()
        self.notes = dict.fromkeys(titles, "waiting")
        self._best = dict.fromkeys(titles, 0.0)
        self._bar = Progress(
            TextColumn("trainings"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bar.add_task("trainings", total=forecast.total, left="")
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
        """Count a training or show a test score."""
        if isinstance(outcome, RunRecord):
            search = f" of search {outcome.search + 1}" if outcome.search else ""
            self.notes[method] = (
                f"run {outcome.run + 1}{search} tested, separated MAP@R {outcome.separated.map_at_r:.4f}"
            )
            assert isinstance(job, EvaluateJob)
            self.forecast.test_finished(method, max(0.0, outcome.wall_time - job.training_time))
            if not from_store:
                self._say(method)
            return
        assert isinstance(outcome, FoldResult)
        assert not isinstance(job, EvaluateJob)
        self.running.pop(outcome.fingerprint, None)
        self._finished.add(outcome.fingerprint)
        # An untrained trunk takes almost no time, so its durations would make the forecast too short.
        seconds = 0.0 if outcome.stopped_by == "untrained" else outcome.wall_time
        self.forecast.finished(method, seconds, now=not from_store)
        self._best[method] = max(self._best[method], outcome.best_map_at_r or 0.0)
        phase = "choosing the epoch" if job.chooses_epoch else "search" if job.run is None else "reproductions"
        count = f"{self.forecast.done[method]} of {self.forecast.totals[method]} trainings"
        self.notes[method] = f"{phase}, {count}, best fold's validation MAP@R {self._best[method]:.4f}"
        # A log gets a line per trial or run, not per training.
        is_whole_run = job.spec.checkpoint_epoch is not None
        if not from_store and (is_whole_run or self.forecast.done[method] % self.folds == 0):
            self._say(method)

    def spared(self, method: str, fingerprints: list[str]) -> None:
        """Leave trainings out of the count and of the display."""
        self.forecast.totals[method] -= len(fingerprints)
        for fingerprint in fingerprints:
            self.running.pop(fingerprint, None)
        self._finished.update(fingerprints)

    def ticks(self, ticks: list[Tick]) -> None:
        """Update the iterations of running trainings."""
        for tick in ticks:
            # A training's last report can arrive after its result.
            if tick.fingerprint not in self._finished:
                self.running[tick.fingerprint] = tick.iterations

    def _left(self) -> str:
        seconds = self.forecast.seconds_left()
        if seconds is None or not self.forecast.made_now:
            return "time left not known yet"
        return f"about {in_words(seconds)} left"

    def _say(self, method: str) -> None:
        if not self.console.is_terminal:
            done, total = self.forecast.n_done, self.forecast.total
            self.console.print(f"[{done}/{total}, {self._left()}] {method}: {self.notes[method]}", highlight=False)

    def _render(self) -> Table:
        self._bar.update(self._task, total=self.forecast.total, completed=self.forecast.n_done, left=self._left())
        grid = Table.grid(padding=(0, 2))
        for method, note in self.notes.items():
            grid.add_row(self.titles[method], note)
        display = Table.grid()
        display.add_row(grid)
        if self.running:
            display.add_row("running: " + ", ".join(f"{done} iterations" for done in self.running.values()))
        display.add_row(self._bar)
        return display
