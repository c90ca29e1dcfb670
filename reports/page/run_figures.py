"""Figures of runs, of their trainings and of the searches: intervals, curves, batch sizes, trials."""

import math
from collections.abc import Iterator
from functools import partial

from reports.figures import curves, dependence, intervals, search
from reports.figures.curves import FoldCurve, MethodCurves
from reports.figures.dependence import Dependence, DependencePanel, Point, points_of
from reports.figures.intervals import MethodRuns
from reports.figures.search import SearchHistory
from reports.page.drawn_figure import Drawn, drawn
from reports.page.material import Material
from results.records.records import FoldResult
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.whole_files import file_name
from results.wording import capitalized


def run_figures(material: Material) -> Iterator[Drawn]:
    """Draw all figures for which there are runs."""
    yield from _intervals(material)
    yield from _validation_curves(material)
    yield from _test_curves(material)
    yield from _batch_sizes(material)
    for key, history in material.searches.items():
        yield from _search(key, material.titles[key], history)


def _intervals(material: Material) -> Iterator[Drawn]:
    unit = material.unit
    rows = [
        MethodRuns(material.titles[key], values.units, material.intervals[key])
        for key, values in material.values.items()
    ]
    return drawn(
        "intervals",
        f"{capitalized(material.score_name)} by method",
        lambda: intervals.interval_plot(rows, material.score_name, unit),
        lambda: intervals.alternative_text(rows, unit),
        intervals.caption(unit),
    )


def _validation_curves(material: Material) -> Iterator[Drawn]:
    shown = []
    for key, records in material.records.items():
        results = [material.measured.trainings.get(name) for name in records[0].fold_fingerprints]
        folds = [curve for training in results if training and (curve := _validations(training[1])) is not None]
        if folds:
            shown.append(MethodCurves(material.titles[key], tuple(folds)))
    return drawn(
        "validation_curves",
        "Validation scores during the trainings of each method's first run",
        lambda: curves.score_curves(shown),
        lambda: curves.alternative_text(shown, "Validation MAP@R"),
        curves.CAPTION,
    )


def _validations(result: FoldResult) -> FoldCurve | None:
    """The validations with a score; None if there are fewer than two, as for an untrained trunk."""
    scores = {
        point.iteration: point.map_at_r
        for point in result.curve
        if point.map_at_r is not None and math.isfinite(point.map_at_r)
    }
    if len(scores) < 2 or result.best_iteration not in scores:
        return None
    return FoldCurve(tuple(scores), tuple(scores.values()), result.best_iteration)


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
    if shown:
        yield from drawn(
            "test_curves",
            f"{capitalized(name)} during the trainings",
            lambda: curves.score_curves(shown, name, unit),
            lambda: curves.alternative_text(shown, capitalized(name), unit),
            curves.CAPTION_OF_TEST_SCORES,
            fold="Test scores during the trainings",
        )


def _test_curve(material: Material, fingerprint: str, metric: str) -> FoldCurve | None:
    """The test scores of a training; None if they were not recorded, or not at its checkpoint."""
    if fingerprint not in material.measured.test_curves or fingerprint not in material.measured.trainings:
        return None
    best = material.measured.trainings[fingerprint][1].best_iteration
    points = material.measured.test_curves[fingerprint].points
    scores = {point.iteration: float(getattr(point.scores, metric)) for point in points}
    return FoldCurve(tuple(scores), tuple(scores.values()), best) if len(scores) > 1 and best in scores else None


def _batch_sizes(material: Material) -> Iterator[Drawn]:
    """Draw this panel and the panels of the same file that differ from it only in batch size."""
    panels: dict[str, dict[str, dict[float, Point]]] = {}
    this, score = material.measured.summary.experiment, material.score
    for measured in material.panels.values():
        other = measured.summary.experiment
        if not measured.records or _with_batch_size(other, this.conditions.training.batch_size) != this:
            continue
        by_method = panels.setdefault(other.dataset.name, {})
        for key, point in points_of(measured, score.metric, score.embeddings).items():
            sizes = by_method.setdefault(measured.summary.methods[key], {})
            sizes[other.conditions.training.batch_size] = point
    if len({size for methods in panels.values() for sizes in methods.values() for size in sizes}) < 2:
        return
    shown = [
        DependencePanel(dataset, "batch size", tuple(Dependence(*line) for line in methods.items()), "log2")
        for dataset, methods in panels.items()
    ]
    yield from drawn(
        "batch_size",
        f"{capitalized(material.score_name)} by batch size",
        lambda: dependence.dependence_plot(shown, material.score_name, stacked=True),
        lambda: dependence.alternative_text(shown, material.score_name),
        dependence.CAPTION_OF_BATCH_SIZES,
    )


def _with_batch_size(experiment: Experiment, batch_size: int) -> Experiment:
    training = experiment.conditions.training.model_copy(update={"batch_size": batch_size})
    return experiment.with_conditions(training=training)


def _search(key: str, title: str, history: SearchHistory) -> Iterator[Drawn]:
    """Draw a method's search; with two or more hyperparameters also the two that matter most."""
    if not history.values:
        return
    name, describe = f"search_{file_name(key)}", partial(search.alternative_text, history)
    draw = partial(search.search_history, history)
    yield from drawn(f"{name}_history", f"{title}: trials", draw, describe, search.caption(history), "Searches")
    if len(history.parameters) > 1:
        x, y = search.strongest_pair(history)
        draw = partial(search.search_contour, history, x, y)
        yield from drawn(f"{name}_contour", f"{title}: {x} and {y}", draw, describe, search.CAPTION_OF_PAIR, "Searches")
