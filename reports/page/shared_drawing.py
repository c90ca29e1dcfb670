"""Divides the drawing of figures between this process and another."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec

from reports.page.sections.drawn_figure import Drawn

P = ParamSpec("P")

Begun = Callable[[], tuple[Drawn, ...]]
"""Figures that were offered to another process. Called, it returns them."""


def begin(
    helper: Executor | None, draw: Callable[P, Iterable[Drawn]], *arguments: P.args, **options: P.kwargs
) -> Begun:
    """Offer figures to another process. What it has not begun when the figures are wanted is drawn here."""
    work = partial(_all_of, partial(draw, *arguments, **options))
    if helper is None:
        return work
    future = helper.submit(work)
    return lambda: work() if future.cancel() else future.result()


def _all_of(draw: Callable[[], Iterable[Drawn]]) -> tuple[Drawn, ...]:
    return tuple(draw())
