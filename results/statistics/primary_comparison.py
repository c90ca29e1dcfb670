"""From an experiment's values to its one comparison: which values count, which methods are complete, what is asked.

The comparison of a score is made here and nowhere else, for the page, the tables and the claims.
"""

from dataclasses import replace

import numpy as np

from results.spec.experiment_spec import Experiment, Metric, PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.compare import ALPHA, compare_at_looks, compare_methods, mean_half_widths
from results.statistics.comparison import ComparisonResult, MethodValues, Missing, Unit
from results.statistics.deviations import nearest_search_deviation
from results.statistics.intervals import Interval, student_t_interval
from results.store.experiment_results import MeasuredExperiment, Values
from results.store.frame import EmbeddingKind

FURTHER_SCORES = 5
"""Headline scores beside the primary one: three metrics of two kinds of embeddings."""


def primary_score(measured: MeasuredExperiment) -> PrimaryScore:
    """Return the score that an experiment names, else MAP@R of the concatenated embeddings, or of the only one."""
    one_model = max((len(record.fold_fingerprints) for record in measured.records), default=0) == 1
    embeddings: EmbeddingKind = "separated" if one_model else "concatenated"
    return measured.summary.experiment.primary or PrimaryScore(embeddings=embeddings)


def planned_score(experiment: Experiment) -> PrimaryScore:
    """Return the primary score of an experiment that may have no runs yet."""
    return experiment.primary or PrimaryScore(embeddings=experiment.planned_embeddings)


def unit_of(experiment: Experiment) -> Unit:
    """Return what the methods of an experiment are compared by."""
    if experiment.search.trials == 0:
        return "run"
    return "search" if experiment.search.searches > 1 else "single search"


def primary_comparison(measured: MeasuredExperiment) -> ComparisonResult | None:
    """Compare an experiment's methods on its primary score; see `comparison_on`."""
    return comparison_on(measured, primary_score(measured))


def score_of(measured: MeasuredExperiment, metric: Metric, kind: EmbeddingKind) -> PrimaryScore:
    """Return a score with the margin and the comparisons that the experiment's file asks for."""
    return primary_score(measured).model_copy(update={"metric": metric, "embeddings": kind})


def comparison_on(measured: MeasuredExperiment, score: PrimaryScore) -> ComparisonResult | None:
    """Compare an experiment's methods on a score, as its file asks; None without any run.

    The primary score has the level of 5 %. All others share a second one, a fifth for each, since nobody chose them.
    Rows under other conditions are not in it. Planned methods without runs are, as methods whose searches are missing.
    """
    experiment, values = measured.summary.experiment, method_values(measured, score)
    if not any(own.units for own in values.values()):
        return None
    unit = unit_of(experiment)
    assumed = nearest_search_deviation(experiment, score) if unit == "single search" else None
    # A method that was left out of this start, or whose row is under other conditions, is no reference.
    compare = score.compare if score.compare in ("all", "best", *values) else "all"
    alpha = ALPHA if score == primary_score(measured) else ALPHA / FURTHER_SCORES
    margin, step = score.margin / 100, resolution(measured, score.metric, score.embeddings)
    if experiment.search.until_decided:
        return compare_at_looks(values, compare, alpha, margin, step)
    return compare_methods(values, unit, compare, alpha, margin, step, assumed)


def method_values(measured: MeasuredExperiment, score: PrimaryScore) -> dict[str, MethodValues]:
    """Return the values of the methods that are tested against each other, in the experiment's order."""
    values = unit_values(measured, measured.values(score.metric, score.embeddings))
    return {key: values[key] for key in measured.summary.compared}


def unit_values(measured: MeasuredExperiment, values: Values) -> dict[str, MethodValues]:
    """Return the independent values of all planned methods from the values of their runs.

    The runs of one search share the setting that it found. So where searches are repeated, the values are the means of
    the complete searches. Else they are the runs.
    """
    summary, searched = measured.summary, measured.searched_methods
    searches, units_of = summary.experiment.search.searches, {}
    newest = max((run.evaluation_version for run in measured.records), default=0)
    older = {run.method for run in measured.records if run.evaluation_version < newest}
    for key in summary.methods:
        own, planned, constant = values.get(key, {}), summary.runs[key], key in summary.constant
        missing: Missing | None = None
        if searches > 1 and planned >= searches * summary.reproductions:
            complete = [runs for runs in own.values() if len(runs) >= summary.reproductions]
            missing = "searches missing" if len(complete) < searches else None
            units = tuple(float(np.mean(runs)) for runs in complete)
            units_of[key] = MethodValues(units, sum(map(len, complete)), key in searched, missing=missing)
        else:
            runs = [value for runs in own.values() for value in runs]
            missing = "runs missing" if len(runs) < planned else None
            units_of[key] = MethodValues(tuple(runs), len(runs), key in searched, constant, missing)
    return {key: replace(own, missing="older evaluation") if key in older else own for key, own in units_of.items()}


def resolution(measured: MeasuredExperiment, metric: str, embeddings: str) -> float:
    """Return about the smallest step of a score: one hit more of one query, in one of the models that are averaged.

    It is 0 where it is not known: for other metrics than MLRC's three, and without runs.
    """
    if not measured.records or metric not in HEADLINE_METRICS:
        return 0.0
    record = measured.records[0]
    neighbours = max(1.0, record.test_images / record.test_classes - 1)
    step = {"precision_at_1": 1.0, "r_precision": 1 / neighbours, "map_at_r": 1 / neighbours**2}[metric]
    models = 1 if embeddings == "concatenated" else len(record.fold_scores)
    return step / (record.test_images * max(1, models))


def score_intervals(measured: MeasuredExperiment, metric: str, embeddings: str) -> dict[str, Interval]:
    """Return mean and 95 % interval of a score, by method with values; see `method_intervals`."""
    return method_intervals(measured, measured.values(metric, embeddings), resolution(measured, metric, embeddings))


def method_intervals(measured: MeasuredExperiment, values: Values, step: float = 0.0) -> dict[str, Interval]:
    """Return mean and 95 % interval of every method from the values of its runs.

    Where searches are repeated, they are the unit: mean and interval are over the complete searches, with the variance
    of the comparison (`mean_half_widths`), and n counts them. A method with missing searches has no interval. Else the
    interval is Student's t over runs, and holds for the settings. `step` is the `resolution` of the score, if known.
    """
    intervals = {
        method: student_t_interval([value for runs in own.values() for value in runs]) for method, own in values.items()
    }
    if unit_of(measured.summary.experiment) != "search":
        return intervals
    units_of = unit_values(measured, values)
    widths = mean_half_widths({key: units_of[key] for key in measured.summary.compared}, step)
    for method, over_runs in intervals.items():
        units, missing = units_of[method].units, units_of[method].missing
        alone = student_t_interval(units) if units else Interval(over_runs.mean, None, 0)
        half_width = None if missing else widths.get(method, alone.half_width)
        intervals[method] = Interval(alone.mean, half_width, len(units))
    return intervals
