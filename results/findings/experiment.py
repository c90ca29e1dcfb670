"""The answer of an experiment, with all that a reader must know beside it, computed once for table, page and terminal.

A finding is a sentence with a level and a place. Who shows findings chooses among them and does not reword them.
"""

from collections.abc import Iterator
from dataclasses import replace

from results.answer.answer_question import answer_frame
from results.answer.caveats import caveats
from results.answer.finding import Finding
from results.answer.over_classes import of_classes, with_class_intervals
from results.answer.question import question_of
from results.answer.values import Answer
from results.findings.handicaps import handicaps
from results.findings.origin import origin_findings
from results.findings.readings import reading_findings
from results.findings.search import search_findings, training_findings
from results.records.experiment_summary import ExperimentData, ExperimentSummary
from results.records.frame import EMBEDDING_KINDS
from results.spec import mlrc_constants
from results.spec.data_choice import OWN_DATA, DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.trunk_spec import NO_TRUNK
from results.store.experiment_results import MeasuredExperiment
from results.wording import listed


def answer_of(measured: MeasuredExperiment, compare: str | None = None) -> Answer:
    """Answer what an experiment asks, in its primary score.

    Args:
        compare: Other comparisons than its file asks for: `all` pairs, each with the `best`, or with this method.
    """
    question = question_of(measured)
    found = answer_frame(measured.frame, question if compare is None else replace(question, compare=compare))
    whole = replace(found, measured=measured, find=_findings, find_other_models=_other_models)
    return with_class_intervals(whole)


def _other_models(found: Answer) -> Answer | None:
    """Answer the same at the same level about single models where joined ones are asked for, or the other way round."""
    question, records = found.question, found.of_experiment.records
    models = max((len(run.fold_scores) for run in records), default=1)
    if models == 1 or found.interim or not found.tested or question.score not in HEADLINE_METRICS:
        return None
    (kind,) = set(EMBEDDING_KINDS) - {question.embeddings}
    return answer_frame(found.frame, replace(question.on(question.score, kind), alpha=question.alpha))


def _findings(found: Answer) -> Iterator[Finding]:
    measured = found.measured
    if measured is None or not measured.records:
        return
    summary = measured.summary
    yield from caveats(found)
    yield from of_classes(found)
    yield from _part_of_the_budget(summary)
    yield from _below_untrained(found, summary)
    yield from reading_findings(found)
    yield from _looked_before(summary)
    yield from _printed(summary)
    yield from data_findings(summary.experiment, summary.data, split_file=_has_split_file(measured))
    yield from handicaps(summary)
    yield from search_findings(found, measured)
    yield from training_findings(measured)
    yield from origin_findings(measured)


def _looked_before(summary: ExperimentSummary) -> Iterator[Finding]:
    if summary.interim_looks:
        yield Finding(
            "warning",
            f"Searches or runs were added after results were known ({listed(summary.interim_looks)}).",
            "comparison",
            "Adding after a look makes wrong claims more likely than the tests say.",
        )


def _part_of_the_budget(summary: ExperimentSummary) -> Iterator[Finding]:
    if summary.experiment.protocol != "mlrc":
        return
    searches = summary.experiment.search.searches
    parts = (
        (summary.trials, mlrc_constants.TRIALS, "trials" if searches == 1 else "trials in each search"),
        # Runs of several searches are not the reproductions of one.
        (summary.reproductions if searches == 1 else 0, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (summary.experiment.folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    if given := [f"{count} of {full} {unit}" for count, full, unit in parts if 0 < count < full]:
        text = f"A part of the protocol's budget: {', '.join(given)}."
        yield Finding("limit", text, "comparison", "The full budget can rank the methods differently.")


def _below_untrained(found: Answer, summary: ExperimentSummary) -> Iterator[Finding]:
    means = {key: interval.mean for key, interval in found.intervals.items()}
    if below := [found.titles[key] for key in means if key != "untrained" and means[key] <= means.get("untrained", -1)]:
        verb = "has" if len(below) == 1 else "have"
        on_features = summary.experiment.conditions.trunk.name == NO_TRUNK
        baseline = "the features as given" if on_features else "the untrained trunk"
        yield Finding("warning", f"{listed(below)} {verb} no higher mean than {baseline}.", "comparison")


def _printed(summary: ExperimentSummary) -> Iterator[Finding]:
    titles, rows = summary.methods, []
    for key, printed in summary.printed.items():
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
