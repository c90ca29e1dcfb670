"""Progress bars for downloads and for reading images, before a run begins."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from protocols.progress import Progress


class Bars:
    """Shows one bar per task on a terminal, and nothing elsewhere. Use it as a context manager.

    Args:
        console: Where the bars are shown.
    """

    def __init__(self, console: Console) -> None:
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

    def of(self, what: str) -> Progress:
        """Add a bar, which appears with the first progress.

        Args:
            what: Text beside the bar.

        Returns:
            A function that takes the amounts done and in total, and moves the bar.
        """
        task = self._progress.add_task(what, visible=False, total=None)
        return lambda done, total: self._progress.update(task, completed=done, total=total, visible=True)
