"""Figures of runs, of their trainings and of the searches: intervals, curves, batch sizes, trials."""

import math
from collections.abc import Iterator, Mapping

from reports.figures import contour, curves, dependence, intervals, parallel_coordinates, search_history
from reports.figures.curves import FoldCurve, MethodCurves
from reports.figures.dependence import Dependence, DependencePanel, Point, points_of
from reports.figures.intervals import MethodRuns
from reports.figures.style import PAGE_WIDTH
from reports.figures.trials import SearchHistory, finished
from reports.page.material import Material, Score
from reports.page.sections.drawn_figure import Drawn, drawn
from reports.page.sections.published_values import PublishedValues
from reports.wording import capitalized
from results.records.records import FoldResult
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.whole_files import file_name

MOST_METHODS = 40
"""With more methods only the intervals of the primary score are drawn."""


def run_figures(material: Material, published: PublishedValues) -> Iterator[Drawn]:
    """Draw all figures for which there are runs, with published values if there are any."""
    # Drawing takes seconds with very many methods. The table of all scores has the same numbers.
    drawn_scores = material.scores if len(material.records) <= MOST_METHODS else material.scores[:1]
    for score in drawn_scores:
        yield from _intervals(
            material, score, {key: value.mean.value for (key, other), value in published.items() if other == score}
        )
    yield from _curves(material)
    yield from _test_curves(material)
    yield from _batch_sizes(material)


def _intervals(material: Material, score: Score, published: Mapping[str, float]) -> Iterator[Drawn]:
    unit, over_units = material.unit, material.intervals(score)
    rows = [
        MethodRuns(material.titles[key], values.units, over_units[key], published.get(key))
        for key, values in material.values(score).items()
    ]
    yield from drawn(
        f"intervals_{score.name.replace(' ', '_').replace('@', '_at_').lower()}",
        f"{capitalized(score.name)} by method",
        lambda: intervals.interval_plot(rows, score.name, unit),
        lambda: intervals.alternative_text(rows, unit),
        intervals.caption(unit),
        fold="" if score == material.scores[0] else "Other scores by method",
    )


def _curves(material: Material) -> Iterator[Drawn]:
    shown = []
    for key in material.records:
        folds = [curve for result in _first_run(material, key) if (curve := _curve(result)) is not None]
        if folds:
            shown.append(MethodCurves(material.titles[key], tuple(folds)))
    yield from drawn(
        "validation_curves",
        "Validation scores during the trainings of each method's first run",
        lambda: curves.score_curves(shown),
        lambda: curves.alternative_text(shown, "Validation MAP@R"),
        curves.CAPTION,
    )


def _test_curves(material: Material) -> Iterator[Drawn]:
    metric = material.measured.summary.experiment.peeking_metric
    name, unit = f"test {HEADLINE_METRICS[metric]}", "run" if material.folds == 1 else "fold"
    shown = []
    for key, records in material.records.items():
        # A run with one training is one line; of runs with several folds only the first is drawn.
        names = [name for record in records[: None if unit == "run" else 1] for name in record.fold_fingerprints]
        lines = [curve for name in names if (curve := _test_curve(material, name, metric)) is not None]
        if lines:
            shown.append(MethodCurves(material.titles[key], tuple(lines)))
    if not shown:
        return
    yield from drawn(
        "test_curves",
        f"{capitalized(name)} during the trainings",
        lambda: curves.score_curves(shown, name, unit),
        lambda: curves.alternative_text(shown, capitalized(name), unit),
        curves.CAPTION_OF_TEST_SCORES,
        fold="Test scores during the trainings",
    )


def _test_curve(material: Material, fingerprint: str, metric: str) -> FoldCurve | None:
    """Return the test scores of a training; None if they were not recorded, or not at its checkpoint."""
    if fingerprint not in material.measured.test_curves or fingerprint not in material.measured.trainings:
        return None
    best = material.measured.trainings[fingerprint][1].best_iteration
    points = material.measured.test_curves[fingerprint].points
    scores = {point.iteration: float(getattr(point.scores, metric)) for point in points}
    return FoldCurve(tuple(scores), tuple(scores.values()), best) if len(scores) > 1 and best in scores else None


def _first_run(material: Material, method: str) -> list[FoldResult]:
    names = material.records[method][0].fold_fingerprints
    return [material.measured.trainings[name][1] for name in names if name in material.measured.trainings]


def _curve(result: FoldResult) -> FoldCurve | None:
    """Return the validations with a score; None if there are fewer than two, as for an untrained trunk."""
    scores = {
        point.iteration: point.map_at_r
        for point in result.curve
        if point.map_at_r is not None and math.isfinite(point.map_at_r)
    }
    if len(scores) < 2 or result.best_iteration not in scores:
        return None
    return FoldCurve(tuple(scores), tuple(scores.values()), result.best_iteration)


def _batch_sizes(material: Material) -> Iterator[Drawn]:
    """Draw this panel and the panels of the same file that differ from it only in batch size."""
    panels: dict[str, dict[str, dict[float, Point]]] = {}
    score = material.scores[0]
    this = material.measured.summary.experiment
    for measured in material.panels.values():
        other = measured.summary.experiment
        if not measured.records or _with_batch_size(other, this.training.batch_size) != this:
            continue
        by_method = panels.setdefault(other.dataset.name, {})
        for key, point in points_of(measured, score.metric, score.kind).items():
            sizes = by_method.setdefault(measured.summary.methods[key], {})
            sizes[other.training.batch_size] = point
    if len({size for methods in panels.values() for sizes in methods.values() for size in sizes}) < 2:
        return
    shown = [
        DependencePanel(
            dataset, "batch size", tuple(Dependence(title, sizes) for title, sizes in methods.items()), "log2"
        )
        for dataset, methods in panels.items()
    ]
    yield from drawn(
        "batch_size",
        f"{capitalized(score.name)} by batch size",
        lambda: dependence.dependence_plot(shown, score.name, stacked=True),
        lambda: dependence.alternative_text(shown, score.name),
        dependence.CAPTION_OF_BATCH_SIZES,
    )


def _with_batch_size(experiment: Experiment, batch_size: int) -> Experiment:
    training = experiment.training.model_copy(update={"batch_size": batch_size})
    return experiment.model_copy(update={"training": training})


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
