"""Progress bars for downloads and for reading images, before a run begins."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from protocols.progress import Progress


class Bars:
    """A bar per task on a terminal, nothing elsewhere. Use as a context manager."""

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
        """A callable for done and total that moves a bar of its own, shown from the first call on."""
        task = self._progress.add_task(what, visible=False, total=None)
        return lambda done, total: self._progress.update(task, completed=done, total=total, visible=True)
