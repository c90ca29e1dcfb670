"""From an experiment's records to its one comparison: which values count, which methods are complete, what is asked.

The comparison of a score is made here and nowhere else, for the page, the tables and the claims.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from results.spec.experiment_spec import Experiment, PrimaryScore
from results.statistics.comparison_result import ComparisonResult, MethodValues, Missing, Unit
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.method_comparison import ALPHA, compare_methods, mean_half_widths
from results.statistics.run_values import EmbeddingKind, RunKey, by_search, values_by_run
from results.statistics.search_deviation import nearest_search_deviation
from results.store.experiment_results import MeasuredExperiment

FURTHER_SCORES = 5
"""Headline scores beside the primary one: three metrics of two kinds of embeddings."""

Metric = Literal["map_at_r", "r_precision", "precision_at_1"]


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
    return compare_methods(values, unit, compare, alpha, score.margin / 100, resolution(measured, score), assumed)


def method_values(measured: MeasuredExperiment, score: PrimaryScore) -> dict[str, MethodValues]:
    """Return the values of the methods that are tested against each other, in the experiment's order."""
    values = unit_values(measured, values_by_run(measured.records, score.metric, score.embeddings))
    return {key: values[key] for key in measured.summary.compared}


def unit_values(measured: MeasuredExperiment, by_run: Mapping[str, Mapping[RunKey, float]]) -> dict[str, MethodValues]:
    """Return the independent values of all planned methods from values by run (`values_by_run`).

    The runs of one search share the setting that it found. So where searches are repeated, the values are the means of
    the complete searches. Else they are the runs.
    """
    summary, searched = measured.summary, measured.searched_methods
    with_runs = {record.method for record in measured.records}
    searches = summary.experiment.search.searches
    values = {}
    for key in summary.methods:
        own, planned, constant = by_run.get(key, {}), summary.runs[key], key in summary.constant
        # A method without runs has a search to come.
        is_searched = summary.trials > 0 and (key in searched or key not in with_runs)
        missing: Missing | None = None
        if searches > 1 and planned >= searches * summary.reproductions:
            complete = [runs for runs in by_search(own).values() if len(runs) >= summary.reproductions]
            missing = "searches missing" if len(complete) < searches else None
            units = tuple(float(np.mean(runs)) for runs in complete)
            values[key] = MethodValues(units, sum(map(len, complete)), is_searched, missing=missing)
        else:
            missing = "runs missing" if len(own) < planned else None
            values[key] = MethodValues(tuple(own.values()), len(own), is_searched, constant, missing)
    return values


def resolution(measured: MeasuredExperiment, score: PrimaryScore) -> float:
    """Return about the smallest step of a score: one hit more of one query, in one of the models that are averaged."""
    record = measured.records[0]
    neighbours = max(1.0, record.test_images / record.test_classes - 1)
    step = {"precision_at_1": 1.0, "r_precision": 1 / neighbours, "map_at_r": 1 / neighbours**2}[score.metric]
    models = len(record.fold_scores) if score.embeddings == "separated" else 1
    return step / (record.test_images * max(1, models))


def method_intervals(measured: MeasuredExperiment, by_run: Mapping[str, Mapping[RunKey, float]]) -> dict[str, Interval]:
    """Return mean and 95 % interval of every method from its values by run (`values_by_run`).

    Where searches are repeated, they are the unit: mean and interval are over the complete searches, with the variance
    of the comparison (`mean_half_widths`), and n counts them. A method with missing searches has no interval. Else the
    interval is Student's t over runs, and holds for the settings.
    """
    intervals = {method: student_t_interval(list(values.values())) for method, values in by_run.items()}
    if unit_of(measured.summary.experiment) != "search":
        return intervals
    values = unit_values(measured, by_run)
    widths = mean_half_widths({key: values[key] for key in measured.summary.compared})
    for method, over_runs in intervals.items():
        units, missing = values[method].units, values[method].missing
        alone = student_t_interval(units) if units else Interval(over_runs.mean, None, 0)
        half_width = None if missing else widths.get(method, alone.half_width)
        intervals[method] = Interval(alone.mean, half_width, len(units))
    return intervals
