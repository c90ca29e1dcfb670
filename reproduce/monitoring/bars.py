"""Progress of reading images and the like, before a run begins: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from results.wording import in_words

if TYPE_CHECKING:
    from protocols.images.packing import Progress

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())

_LINE_SECONDS = 30.0
"""Time between two lines of a task in a log."""


class Bars(RichProgress):
    """Shows one bar per task on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal)

    def of(self, what: str) -> Progress:
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
