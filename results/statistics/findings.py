"""What a reader must know beside the numbers of an experiment, computed once for table, page and terminal.

A finding is a sentence with a level and a place. Who shows findings chooses among them and does not reword them.
"""

from collections.abc import Iterator, Mapping

from results.records.experiment_summary import ExperimentData, ExperimentSummary
from results.spec import mlrc_constants
from results.spec.data_choice import OWN_DATA, DrawnSplit
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.trunk_spec import NO_TRUNK
from results.statistics.compare import power_words
from results.statistics.finding import Finding, origin_findings
from results.statistics.planning import MOST_UNITS, Detectable, detectable
from results.statistics.primary_comparison import (
    primary_comparison,
    primary_score,
    score_intervals,
    unit_values,
)
from results.statistics.readings import reading_findings, readings_of
from results.statistics.search_findings import search_findings, training_findings
from results.store.experiment_results import MeasuredExperiment
from results.wording import capitalized, counted, listed, plural


def findings_of(measured: MeasuredExperiment) -> tuple[Finding, ...]:
    """Compute all findings of an experiment; none without runs."""
    if not measured.records:
        return ()
    comparison, summary = primary_comparison(measured), measured.summary
    return (
        *_of_comparison(measured),
        *_printed(measured),
        *data_findings(summary.experiment, summary.data, split_file=_has_split_file(measured)),
        *search_findings(measured, comparison),
        *training_findings(measured),
        *origin_findings(measured),
    )


def missing_units(measured: MeasuredExperiment) -> dict[str, str]:
    """Return by method which searches or runs are there, such as `1 of 3 searches`, where some are missing."""
    score, summary, missing = primary_score(measured), measured.summary, {}
    for key, own in unit_values(measured, measured.values(score.metric, score.embeddings)).items():
        if own.missing == "searches missing":
            missing[key] = f"{len(own.units)} of {summary.experiment.search.searches} searches"
        elif own.missing:
            missing[key] = f"{own.runs} of {counted(summary.runs[key], 'run')}"
    return missing


def budget_finding(budget: Detectable, score: PrimaryScore) -> Finding:
    """Say which differences a budget can show, and what that follows from."""
    unit = "run" if budget.unit == "run" else "search"
    given = f"{counted(budget.units, unit)} of each of {budget.methods} methods"
    if budget.deviation is None:
        more = "" if budget.units > 1 else f" 3 {plural(unit)} of each would say."
        text = f"Which differences {given} can show is not known."
        return Finding("limit", text, "comparison", f"How far {plural(unit)} of this kind vary is not known.{more}")
    if budget.smallest is None:
        text = f"{capitalized(given)} can show no difference."
    else:
        text = f"Differences below {100 * budget.smallest:.1f} points can stay unseen."
    detail = []
    if budget.smallest is not None:
        name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
        detail.append(f"{given} show larger ones in {name} with a probability of {power_words(score.compare)}.")
    if budget.one_more is not None and (budget.smallest is None or budget.one_more < budget.smallest):
        detail.append(f"One {unit} more of each would show {100 * budget.one_more:.1f} points.")
    needed = f"more than {MOST_UNITS:,} {plural(unit)}" if budget.needed is None else counted(budget.needed, unit)
    detail.append(f"A difference of {100 * budget.wanted:g} points takes {needed} of each.")
    asked = {"all": "all pairs", "best": "each method with the best"}.get(score.compare, f"each with {score.compare}")
    doubled = ", doubled for one search each" if budget.unit == "single search" else ""
    detail.append(
        f"This follows from a deviation of {100 * budget.deviation:.2f} points between {plural(unit)} in "
        f"{budget.source}{doubled}, for tests of {asked}."
    )
    return Finding("limit", text, "comparison", " ".join(detail))


def _of_comparison(measured: MeasuredExperiment) -> Iterator[Finding]:
    titles, summary, score = measured.summary.methods, measured.summary, primary_score(measured)
    if missing := missing_units(measured):
        named = "; ".join(f"{titles[key]} has {units}" for key, units in missing.items())
        yield Finding("limit", f"Not finished: {named}.", "comparison", "The results can change.")
    if parts := _part_of_the_budget(summary):
        yield Finding(
            "limit",
            f"A part of the protocol's budget: {', '.join(parts)}.",
            "comparison",
            "The full budget can rank the methods differently.",
        )
    if len(summary.compared) > 1 and not summary.experiment.search.until_decided:
        budget = detectable(summary.experiment, len(summary.compared), score, measured)
        # What is not known of single searches is a finding about the search.
        if budget.deviation is not None or budget.unit != "single search":
            yield budget_finding(budget, score)
    if constant := [title for key, title in titles.items() if key in summary.constant]:
        yield Finding(
            "note",
            f"{listed(constant)}: one run, because every further run would be equal.",
            "comparison",
            "The tests take its value without an error of its own.",
        )
    yield from _below_untrained(measured, score, titles)
    yield from _of_readings(measured, score, titles)
    if summary.interim_looks:
        yield Finding(
            "warning",
            f"Searches or runs were added after results were known ({listed(summary.interim_looks)}).",
            "comparison",
            "Adding after a look makes wrong claims more likely than the tests say.",
        )


def _part_of_the_budget(summary: ExperimentSummary) -> list[str]:
    if summary.experiment.protocol != "mlrc":
        return []
    searches = summary.experiment.search.searches
    parts = (
        (summary.trials, mlrc_constants.TRIALS, "trials" if searches == 1 else "trials in each search"),
        # Runs of several searches are not the reproductions of one.
        (summary.reproductions if searches == 1 else 0, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (summary.experiment.folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    return [f"{count} of {full} {unit}" for count, full, unit in parts if 0 < count < full]


def _below_untrained(measured: MeasuredExperiment, score: PrimaryScore, titles: Mapping[str, str]) -> Iterator[Finding]:
    intervals = score_intervals(measured, score.metric, score.embeddings)
    means = {key: interval.mean for key, interval in intervals.items()}
    if below := [titles[key] for key in means if key != "untrained" and means[key] <= means.get("untrained", -1)]:
        verb = "has" if len(below) == 1 else "have"
        on_features = measured.summary.experiment.conditions.trunk.name == NO_TRUNK
        baseline = "the features as given" if on_features else "the untrained trunk"
        yield Finding("warning", f"{listed(below)} {verb} no higher mean than {baseline}.", "comparison")


def _of_readings(measured: MeasuredExperiment, score: PrimaryScore, titles: Mapping[str, str]) -> Iterator[Finding]:
    intervals = score_intervals(measured, score.metric, score.embeddings)
    means, comparison = {key: interval.mean for key, interval in intervals.items()}, primary_comparison(measured)
    families = readings_of(measured.summary.experiment.variants, means)
    yield from reading_findings(families, means, titles, comparison.pairs if comparison else ())


def _printed(measured: MeasuredExperiment) -> Iterator[Finding]:
    titles, rows = measured.summary.methods, []
    for key, printed in measured.summary.printed.items():
        values = ", ".join(f"{HEADLINE_METRICS[metric]} {value:g}" for metric, value in printed.items())
        rows += [f"{titles[key]} {values}"] if values else []
    if rows:
        text = f"Printed by the methods' sources: {'; '.join(rows)}."
        yield Finding("note", text, "comparison", "Under conditions of their own, so nothing is tested against them.")


def data_findings(experiment: Experiment, data: ExperimentData | None, *, split_file: bool) -> Iterator[Finding]:
    """Say what is not usual about the data; `split_file` if the user's file has the test classes."""
    name = experiment.dataset.name
    if experiment.dataset.subset:
        part = name if data is None else f"{data.classes} classes of {name}"
        yield Finding("limit", f"A part of the dataset: {part}.", "data", "Scores on the whole of it differ.")
    if data is not None and data.left_out:
        yield Finding("note", f"Left out of the data: {'; '.join(data.left_out)}.", "data")
    if data is not None and data.equal_files:
        yield Finding("note", f"The data have {data.equal_files}.", "data")
    if isinstance(experiment.split, DrawnSplit):
        text = f"The test classes are a random half of the classes (seed {experiment.split.seed})."
        yield Finding("note", text, "data", "In MLRC they are the second half in the order of the classes.")
    elif experiment.split is None and name in OWN_DATA and split_file:
        text = "Training and test classes are those of the user's split file, not the halves of MLRC."
        yield Finding("note", text, "data")


def _has_split_file(measured: MeasuredExperiment) -> bool:
    return any(result.spec.split == "mlrc_conventional" for result in measured.trainings.values())
