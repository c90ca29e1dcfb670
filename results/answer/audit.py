"""Answers for scores that were measured anywhere: one for each dataset (or exported experiment) of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pandas as pd
from pydantic import TypeAdapter

from results.answer.answer_question import answer
from results.answer.question import Planned, Question, question_of
from results.answer.read_scores import Reading, ReadScores, read_scores
from results.answer.table_caveats import findings_of_scores
from results.answer.values import Answer
from results.records.experiment_summary import ExperimentSummary
from results.records.frame import ExportedRun
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, joined

_QUESTION, _PLANNED = TypeAdapter(Question), TypeAdapter(Planned)


@dataclass(frozen=True)
class Audit:
    """Answers for a table of scores.

    Attributes:
        name: What the table is called.
        read: What was read of it, in a few sentences.
        answers: An answer by the name of each of its datasets or experiments.
        exported: Whether `reproduce export runs` wrote it.
    """

    name: str
    read: str
    answers: Mapping[str, Answer]
    exported: bool = False


def with_questions(summary: ExperimentSummary, runs: Sequence[ExportedRun]) -> list[ExportedRun]:
    """Write what an experiment asks and what its methods are, as JSON, into its runs for export."""
    records = tuple(run.record for run in runs if run.record.method in summary.methods)
    question = question_of(MeasuredExperiment(summary, records))
    asked = _QUESTION.dump_json(replace(question, methods={}, experiment=None)).decode()
    planned = {key: _PLANNED.dump_json(own).decode() for key, own in question.methods.items()}
    return [
        run._replace(question=asked, planned=planned[run.record.method]) if run.record.method in planned else run
        for run in runs
    ]


def audit(
    table: pd.DataFrame, reading: Reading | None = None, question: Question | None = None, name: str = "Scores"
) -> Audit:
    """Read a table of scores and answer the question for each of its datasets.

    Rows that `reproduce export runs` wrote are asked what their experiment asks.

    Args:
        table: One row per run, or per run and metric.
        reading: Which columns are what, and the scale.
        question: Comparisons, margin and assumed deviation; by default all pairs within half a point.
        name: What the table is called.

    Raises:
        ScoresError: The table cannot be used.
        ValueError: The question names a method that is not there.
    """
    read, question = read_scores(table, reading), question or Question()
    answers: dict[str, Answer] = {}
    for (experiment, dataset), own in read.frame.groupby(["experiment", "dataset"], sort=False):
        asked = _asked(own, replace(question, title=dataset or name), read, reading)
        found = answer(own, asked)
        missing = {key[1]: rows for key, rows in read.left_out.items() if key[0] == dataset}
        key = asked.title if asked.title not in answers else f"{asked.title} ({experiment[:12]})"
        answers[key] = replace(found, find=partial(findings_of_scores, missing=missing))
    return Audit(name, _said(read, reading, name), answers, bool((read.frame["experiment"] != "").any()))


def _asked(frame: pd.DataFrame, question: Question, read: ReadScores, reading: Reading | None) -> Question:
    """The experiment's own question with the user's changes, or the user's."""
    scale: Literal["percent", "points"] = "points" if read.scale == "points" else "percent"
    question = replace(question, score=read.metric, embeddings=read.embeddings, scale=scale)
    cells = frame.drop_duplicates("method").set_index("method")
    if not (cells["question"] != "").all():
        return question
    own = _QUESTION.validate_json(cells["question"].iloc[0])
    methods = {str(key): _PLANNED.validate_json(cell) for key, cell in cells["planned"].items()}
    own = replace(own, methods=methods)
    if reading is not None and reading.score:
        own = own.on(read.metric, read.embeddings)
    known = own.compare in ("all", "best", *own.compared)
    default, compare = Question(), own.compare if known else "all"
    return replace(
        own,
        compare=question.compare if question.compare != default.compare else compare,
        margin=question.margin if question.margin != default.margin else own.margin,
        assumed=question.assumed or own.assumed,
    )


def _said(read: ReadScores, reading: Reading | None, name: str) -> str:
    """What was read: methods, runs, searches, datasets, the score and its scale."""
    frame = read.frame[["experiment", "dataset", "method", "search", "run"]].drop_duplicates()
    searches = len(frame[frame["search"] != ""].drop(columns="run").drop_duplicates())
    counts = [counted(frame["method"].nunique(), "method"), counted(len(frame), "run")]
    counts += [counted(searches, "search")] if searches else ["no searches"]
    if datasets := [dataset for dataset in frame["dataset"].unique() if dataset]:
        counts.append(f"{counted(len(datasets), 'dataset')} ({joined(datasets[:3])}{', ...' if datasets[3:] else ''})")
    scale = {
        "fractions": "taken as fractions (within 0 and 1)",
        "percent": "taken as percent (within 0 and 100)",
        "points": "taken as points",
    }[read.scale]
    sentences = [f"{name}: {', '.join(counts)}; score {read.score}, {scale}."]
    if reading is not None and reading.lower_is_better:
        sentences.append("Lower is better, so it stands below with a minus sign.")
    if len(read.scores) > 1 and not (reading and reading.score):
        others = joined([one for one in read.scores if one != read.score][:6])
        sentences.append(f"Compared in {read.score}; --score names another ({others}).")
    if read.unread and not (frame["experiment"] != "").any():
        sentences.append(f"Not read: {joined(read.unread)}.")
    return " ".join(sentences)
