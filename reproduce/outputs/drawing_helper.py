"""A second process that draws a part of a page's figures."""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context

from reproduce.execution.local import end_with_parent
from reproduce.interrupts import kept_from_children
from reproduce.quick_imports import quick_imports


@contextmanager
def drawing_helper() -> Iterator[Executor | None]:
    """Start the process, which imports what it needs meanwhile; None where there is only one core.

    This module imports little, so that the process can start before the long imports of its caller. At the end of the
    block the process is killed: leaving the usual way takes it half a second, and it has nothing to put away.
    """
    if (os.cpu_count() or 1) < 2:
        yield None
        return
    others = active_children()
    # A process that is forked from one with threads can hang, so the helper starts from nothing.
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as helper:
        with kept_from_children():
            helper.submit(_import_drawing)  # The process starts with the first task.
        try:
            yield helper
        finally:
            for process in active_children():
                if process not in others:
                    process.kill()


def _import_drawing() -> None:
    with quick_imports():
        import sklearn.manifold  # noqa: F401

        import reports.page.build  # noqa: F401
