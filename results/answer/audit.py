"""Answers for scores that were measured anywhere: one for each dataset (or exported experiment) of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd
from pydantic import TypeAdapter

from results.answer.answer_question import answer_frame
from results.answer.answers import Answer
from results.answer.caveats import findings_of_scores
from results.answer.question import Planned, Question, question_of
from results.records.frame import ExportedRun
from results.records.read_scores import Reading, ReadScores, read_scores
from results.spec.plan import Plan
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


def with_questions(summary: Plan, runs: Sequence[ExportedRun]) -> list[ExportedRun]:
    """Write what an experiment asks and what its methods are, as JSON, into its runs for export."""
    records = tuple(run.record for run in runs if run.record.method in summary.rows)
    question = question_of(MeasuredExperiment(summary, records))
    asked = _QUESTION.dump_json(replace(question, methods={}, experiment=None)).decode()
    planned = {key: _PLANNED.dump_json(own).decode() for key, own in question.methods.items()}
    return [
        run._replace(question=asked, planned=planned[run.record.method]) if run.record.method in planned else run
        for run in runs
    ]


def audit(table: pd.DataFrame, reading: Reading | None = None, name: str = "Scores", **changes: Any) -> Audit:
    """Read a table of scores and answer the question for each of its datasets.

    Rows that `reproduce export runs` wrote are asked what their experiment asks.

    Args:
        table: One row per run, or per run and metric.
        reading: Which columns are what, and the scale.
        name: What the table is called.
        changes: Fields of `Question` that are asked in another way, such as compare, margin and assumed.

    Raises:
        ScoresError: The table cannot be used.
        ValueError: The question names a method that is not there.
    """
    reading = reading or Reading()
    read, answers = read_scores(table, reading), dict[str, Answer]()
    for names, own in read.frame.groupby(["experiment", "dataset"], sort=False):
        experiment, dataset = map(str, names)
        asked = replace(_question(own, read, reading, dataset or name), **changes)
        missing = {key[1]: rows for key, rows in read.left_out.items() if key[0] == dataset}
        key = asked.title if asked.title not in answers else f"{asked.title} ({experiment[:12]})"
        answers[key] = replace(answer_frame(own, asked), find=partial(findings_of_scores, missing=missing))
    exported = bool((read.frame["experiment"] != "").any())
    return Audit(name, _said(read, reading, name, exported), answers, exported)


def _question(frame: pd.DataFrame, read: ReadScores, reading: Reading, title: str) -> Question:
    """What the experiment of an export asks, else all pairs of all that is there."""
    cells = frame.drop_duplicates("method").set_index("method")
    if (cells["question"] == "").any():
        scale: Literal["percent", "points"] = "points" if read.scale == "points" else "percent"
        return Question(title, read.metric, read.embeddings, scale=scale)
    methods = {str(key): _PLANNED.validate_json(cell) for key, cell in cells["planned"].items()}
    own = replace(_QUESTION.validate_json(cells["question"].iloc[0]), methods=methods)
    own = own.on(read.metric, read.embeddings) if reading.score else own
    return own if own.compare in ("all", "best", *own.compared) else replace(own, compare="all")


def _said(read: ReadScores, reading: Reading, name: str, exported: bool) -> str:
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
    score = "what each experiment asks" if exported and not reading.score else f"score {read.score}, {scale}"
    sentences = [f"{name}: {', '.join(counts)}; {score}."]
    if reading.lower_is_better:
        sentences.append("Lower is better, so it stands below with a minus sign.")
    if len(read.scores) > 1 and not exported and not reading.score:
        others = joined([one for one in read.scores if one != read.score][:6])
        sentences.append(f"Compared in {read.score}; --score names another ({others}).")
    if read.unread and not exported:
        sentences.append(f"Not read: {joined(read.unread)}.")
    return " ".join(sentences)
