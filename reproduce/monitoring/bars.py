"""Progress of downloads and of reading images, before a run begins: bars on a terminal, lines elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

if TYPE_CHECKING:
    from protocols.progress import Progress

_FIRST_LINE_SECONDS = 1.0
"""Shorter work prints no line."""

_LINE_SECONDS = 30.0
"""Time between two lines of a task without a terminal."""


class Bars:
    """Shows one bar per task on a terminal, and elsewhere a line every 30 s. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def of(self, what: str) -> "Progress":
        """Add a task, and return a function that takes the amounts done and in total and moves its bar.

        The bar appears with the first progress; without a terminal, the first line after a second.
        """
        if not self._console.is_terminal:
            return _Lines(self._console, what)
        task = self._progress.add_task(what, visible=False, total=None)
        return lambda done, total: self._progress.update(task, completed=done, total=total, visible=True)


class _Lines:
    """Prints the progress of one task as lines, for a log."""

    def __init__(self, console: Console, what: str) -> None:
        self._console, self._what = console, what
        self._next, self._started = time.monotonic() + _FIRST_LINE_SECONDS, False

    def __call__(self, done: int, total: int | None) -> None:
        ended = self._started and done == total
        if not ended and (done == total or time.monotonic() < self._next):
            return
        self._started, self._next = not ended, time.monotonic() + _LINE_SECONDS
        of = "" if total is None else f" of {total:,}"
        self._console.print(f"{self._what}: {done:,}{of}", highlight=False, markup=False)
