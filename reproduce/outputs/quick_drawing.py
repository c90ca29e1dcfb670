"""Draws the figures of a page faster: on two cores, and with fewer searches for garbage."""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

from reports.page.build import BuiltPage, build_page
from reports.page.material import Material
from reproduce.execution.parent_watch import end_with_parent
from reproduce.interrupts import kept_from_children

_OBJECTS = 100_000
"""New objects between two searches for garbage. Python's own number is 700, and a figure has many thousands."""


def build_quickly(material: Material) -> BuiltPage:
    """Build a page as `build_page` does, on two cores if there are maps of embeddings, since t-SNE takes seconds.

    Args:
        material: The material of the page.
    """
    with _rare_collections():
        if material.exhibits and (os.cpu_count() or 1) > 1:
            try:
                # A process that is forked from one with threads can hang, so the helper starts from nothing.
                with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as helper:
                    with kept_from_children():
                        helper.submit(int)  # The process starts with the first task.
                    return build_page(material, helper)
            except BrokenProcessPool:
                pass  # The helper was killed, or it cannot import the main program of the caller.
        return build_page(material)


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
