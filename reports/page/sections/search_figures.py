"""Figures of each method's search, in one collapsed group per method."""

from collections.abc import Iterator

from reports.figures import contour, parallel_coordinates, search_history
from reports.figures.style import PAGE_WIDTH
from reports.figures.trials import SearchHistory, finished
from reports.page.sections.drawn_figure import Drawn, drawn
from results.whole_files import file_name


def search_figures(key: str, title: str, search: SearchHistory) -> Iterator[Drawn]:
    """Draw a method's search; with two or more hyperparameters also parallel coordinates and a contour."""
    name, fold, trials = file_name(key), f"Search of {title}", search.trials
    if not finished(trials):
        return
    yield from drawn(
        f"search_{name}_history",
        f"{title}: trials in order",
        lambda: search_history.search_history(trials, startup=min(search.startup, len(trials))),
        lambda: search_history.alternative_text(trials),
        search_history.caption(trials),
        fold,
    )
    if len(search.parameters) < 2:
        return
    searched = {parameter.name for parameter in search.parameters}
    complete = tuple(trial for trial in trials if searched <= trial.parameters.keys())
    yield from drawn(
        f"search_{name}_parallel",
        f"{title}: all trials across the hyperparameters",
        lambda: parallel_coordinates.parallel_coordinates(complete, search.parameters),
        lambda: parallel_coordinates.alternative_text(complete, search.parameters),
        parallel_coordinates.CAPTION,
        fold,
    )
    x, y = contour.strongest_pair(complete, search.parameters)
    yield from drawn(
        f"search_{name}_contour",
        f"{title}: {x.name} and {y.name}",
        lambda: contour.search_contour(complete, x, y, width=PAGE_WIDTH),
        lambda: contour.alternative_text(complete, x, y),
        contour.caption(complete, others=len(search.parameters) > 2),
        fold,
    )
