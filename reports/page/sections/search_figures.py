"""Figures of each method's search, in one collapsed group per method."""

from collections.abc import Iterator, Sequence

import numpy as np

from reports.figures.contour import FEWEST_TRIALS, search_contour
from reports.figures.parallel_coordinates import parallel_coordinates
from reports.figures.search_history import search_history
from reports.figures.style import PAGE_WIDTH
from reports.figures.trials import Parameter, SearchHistory, TrialPoint, finished
from reports.page.sections.alternative_texts import of_contour, of_parallel_coordinates, of_search
from reports.page.sections.drawn_figure import Drawn, drawn
from results.whole_files import file_name


def search_figures(key: str, title: str, search: SearchHistory) -> Iterator[Drawn]:
    """Draw the history of a method's search; with two or more hyperparameters also parallel coordinates and a contour."""
    name = file_name(key)
    fold, trials = f"Search of {title}", search.trials
    done = finished(trials)
    if not done:
        return
    yield from drawn(
        f"search_{name}_history",
        f"{title}: trials in order",
        lambda: search_history(trials, startup=min(search.startup, len(trials)), width=PAGE_WIDTH),
        lambda: of_search(trials),
        "Each trial is one setting, trained on every fold. The best trial is chosen by this value, so the value is "
        "too high on average. The tables show new trainings with the best setting." + _about_raced(trials),
        fold,
    )
    searched = {parameter.name for parameter in search.parameters}
    complete = tuple(trial for trial in trials if searched <= trial.parameters.keys())
    if len(search.parameters) < 2:
        return
    yield from drawn(
        f"search_{name}_parallel",
        f"{title}: all trials across the hyperparameters",
        lambda: parallel_coordinates(complete, search.parameters, width=PAGE_WIDTH),
        lambda: of_parallel_coordinates(complete, search.parameters),
        "The colour is the validation MAP@R.",
        fold,
    )
    x, y = _two_strongest(complete, search.parameters)
    yield from drawn(
        f"search_{name}_contour",
        f"{title}: {x.name} and {y.name}",
        lambda: search_contour(complete, x, y, width=PAGE_WIDTH),
        lambda: of_contour(complete, x, y),
        (
            "The surface is interpolated between trials and ends at the outermost trials."
            if len(finished(complete)) >= FEWEST_TRIALS
            else f"There is no surface between the trials, because there are fewer than {FEWEST_TRIALS}."
        )
        + (" The other hyperparameters of the trials differ too." if len(search.parameters) > 2 else ""),
        fold,
    )


def _about_raced(trials: Sequence[TrialPoint]) -> str:
    count = sum(trial.raced for trial in trials)
    if not count:
        return ""
    return f" {count} of {len(trials)} trials were clearly behind and got no more folds; their value is an estimate."


def _two_strongest(trials: Sequence[TrialPoint], parameters: Sequence[Parameter]) -> tuple[Parameter, Parameter]:
    if len(parameters) == 2:
        return parameters[0], parameters[1]
    done = finished(trials)
    values = _ranks(np.array([value for _, value in done]))
    strength = {p.name: _correlation(_ranks(p.places([trial for trial, _ in done])), values) for p in parameters}
    chosen = sorted(parameters, key=lambda p: -strength[p.name])[:2]
    first, second = (p for p in parameters if p in chosen)
    return first, second


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)
    return ranks


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return abs(float(np.corrcoef(a, b)[0, 1])) if len(a) > 1 and a.std() and b.std() else 0.0
