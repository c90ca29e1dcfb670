"""Progress of reading images, before a run begins, on a terminal; a log gets no lines of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

if TYPE_CHECKING:
    from protocols.images.packing import Progress

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())


class Bars(RichProgress):
    """Shows one bar per task on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal)

    def of(self, what: str) -> Progress:
        """Add a task, and return a function that takes the amounts done and in total and moves its bar.

        The bar appears with the first progress.
        """
        task = self.add_task(what, visible=False, total=None)
        return lambda done, total: self.update(task, completed=done, total=total, visible=True)
