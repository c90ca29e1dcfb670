"""A second process that draws a part of a page's figures: maps of embeddings take seconds each.

On two cores it takes a third off `report quickstart` (13.8 s of processor time in one process, 9.4 s beside a helper).
"""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context

from reproduce.interrupts import end_with_parent, kept_from_children


@contextmanager
def drawing_helper() -> Iterator[Executor | None]:
    """Start the process; None where there is only one core. At the end of the block it is killed."""
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
    import sklearn.manifold  # noqa: F401

    import reports.page.build  # noqa: F401
