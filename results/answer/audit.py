"""Answers for scores that were measured anywhere: one for each dataset (or exported experiment) of a table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from results.answer.answer_question import answer_read
from results.answer.answers import Answer
from results.answer.deviations import SearchDeviation
from results.answer.pair_tests import MOST_DEGREES
from results.answer.question import AskedMethod, Question, question_of
from results.answer.scaling import scaling_of
from results.reading.columns import is_known
from results.reading.read_scores import read_scores
from results.reading.scores_table import ANOTHER_SCORE, OpenQuestionsError, Reading, ReadScores, ScoresError
from results.records.frame import PLANNED, QUESTION, ExportedRun
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, counted_span, joined, listed, some

_QUESTION, _PLANNED = TypeAdapter(Question), TypeAdapter(AskedMethod)


@dataclass(frozen=True)
class Audit:
    """Answers for a table of scores.

    Attributes:
        name: What the table is called.
        read: What was read of it, in a few sentences.
        answers: An answer by the name of each of its datasets or experiments; one if the datasets are the sample.
        table: What was read: the columns by what they are, and what was left out and why.
    """

    name: str
    read: str
    answers: Mapping[str, Answer]
    table: ReadScores

    @property
    def exported(self) -> bool:
        """Whether `reproduce export runs` wrote the table."""
        return self.table.exported


def with_questions(measured: MeasuredExperiment, runs: Sequence[ExportedRun]) -> list[ExportedRun]:
    """Write what an experiment asks and what its methods are, as JSON, into its runs for export."""
    question = question_of(measured)
    asked = _QUESTION.dump_json(replace(question, experiment=None)).decode()
    planned = {key: _PLANNED.dump_json(own).decode() for key, own in question.methods.items()}
    return [
        run._replace(reproduce_question=asked, reproduce_planned=planned[run.record.method])
        if run.record.method in planned
        else run
        for run in runs
    ]


def audit(
    table: pd.DataFrame,
    reading: Reading | None = None,
    name: str = "Scores",
    deviation: float | None = None,
    beside: Collection[str] = (),
    **changes: Any,
) -> Audit:
    """Read a table of scores and answer the question for each of its datasets.

    Rows that `reproduce export runs` wrote are asked what their experiment asks.

    Args:
        table: One row per run, or per run and metric, or a plan of runs.
        reading: Which columns are what, and the scale.
        name: What the table is called.
        deviation: Standard deviation between searches that is assumed: in points, in the unit of the score, or a ratio.
        beside: Other scores of the table that are answered too (`audit_scores`).
        changes: Fields of `Question` that are asked in another way, such as compare, margin, assumed and keep_all.

    Raises:
        ScoresError: The table cannot be used.
        ValueError: The question names a method that is not there.
    """
    reading = reading or Reading()
    read, answers = read_scores(table, reading), dict[str, Answer]()
    also = {score.casefold() for score in beside}
    read = replace(read, unread={name: why for name, why in read.unread.items() if name.casefold() not in also})
    if deviation is not None:
        own = scaling_of(read.scale).to_gap(deviation)
        changes["assumed"] = SearchDeviation(own, int(MOST_DEGREES), "", given=True)
    if read.repeats == "dataset":
        answers[name] = answer_read(read, replace(Question(title=name), **changes))
        return Audit(name, said_of(read, reading, name, answers), answers, read)
    groups = read.frame.groupby(["experiment", "dataset"], sort=False)
    parts, lacking = _with_reference(
        [(str(key[0]), str(key[1]), own) for key, own in groups], changes.get("compare", "all")
    )
    for experiment, dataset, rows in parts:
        asked = replace(_question(rows, read, reading, dataset or name), **changes)
        key = asked.title if asked.title not in answers else f"{asked.title} ({experiment[:12]})"
        answers[key] = answer_read(read, asked, rows)
    said = said_of(read, reading, name, answers)
    if lacking:
        said += f" Not answered, since they lack {changes['compare']}: {some(lacking)}."
    return Audit(name, said, answers, read)


def audit_scores(
    table: pd.DataFrame, reading: Reading, name: str, deviation: float | None = None, **changes: Any
) -> dict[str, Audit]:
    """Answer for each of the scores that `reading.score` names, joined by commas: each has a family of its own."""
    known = {str(one).casefold() for one in (*table.columns, *table.get("metric", ()))}
    whole = reading.score.casefold() in known
    scores = [reading.score] if whole else list(dict.fromkeys(map(str.strip, reading.score.split(","))))
    questions, found, read = list[tuple[str, str]](), dict[str, Audit](), None
    for score in scores:
        try:
            one = audit(table, replace(reading, score=score), name, deviation, beside=scores, **changes)
            found[one.table.score] = one
        except OpenQuestionsError as error:
            if len(scores) == 1:
                raise
            own = error.guess
            if (own.lower_is_better, own.scale) != (reading.lower_is_better, reading.scale):
                why = f"direction and scale hold for all scores of a command, so {score} takes one of its own"
                raise OpenQuestionsError([*error.questions, (why, "")], own, error.read) from error
            questions, read = [*questions, *error.questions], read or error.read
            reading = replace(own, score=reading.score)
    if questions:
        raise OpenQuestionsError(questions, reading, read)
    return found


def families_words(found: Mapping[str, Audit]) -> str:
    """Say at which level each of several scores has its family, and what that is for all of them; empty for one."""
    if len(found) < 2:
        return ""
    of_scores = {score: next(iter(one.answers.values())) for score, one in found.items()}
    levels = [f"{score} at {100 * one.question.alpha:g} %" for score, one in of_scores.items()]
    together = sum(one.question.alpha for one in of_scores.values())
    return (
        f"Each score is a family of its own: {listed(levels)}. The probability that any claim about them is wrong is "
        f"up to {100 * together:g} %."
    )


def _with_reference(
    parts: list[tuple[str, str, pd.DataFrame]], compare: str
) -> tuple[list[tuple[str, str, pd.DataFrame]], list[str]]:
    """The parts that have the method that others are compared with, and the datasets that lack it."""
    if compare in ("all", "best"):
        return parts, []
    there = [part for part in parts if compare in set(part[2]["method"])]
    if not there:
        names = list(dict.fromkeys(name for part in parts for name in part[2]["method"]))
        raise ValueError(f"compare {compare!r}: use all, best, or one of {some(names)}")
    return there, [dataset for _, dataset, own in parts if compare not in set(own["method"])]


def _question(frame: pd.DataFrame, read: ReadScores, reading: Reading, title: str) -> Question:
    """What the experiment of an export asks, else all pairs of all that is there.

    A method of the experiment that has no row is asked for too: its searches are missing, and it counts in the
    correction. Older exports do not name it, and with `--where` only the rows that it takes are asked about.
    """
    cells = frame.drop_duplicates("method").set_index("method")
    asked = cells.loc[cells["question"] != "", "question"]
    if asked.empty:
        return Question(title=title)
    try:
        own = _QUESTION.validate_json(asked.iloc[0])
        there = {
            str(key): _PLANNED.validate_json(cell) if cell else _own_method(frame, own, str(key))
            for key, cell in cells["planned"].items()
        }
    except ValidationError as error:
        raise ScoresError(
            f"{QUESTION} or {PLANNED} is not as `reproduce export runs` wrote it; export again, or leave both out"
        ) from error
    own = replace(own, methods=there if reading.where else {**own.methods, **there})
    own = own.on(read.metric, read.embeddings) if reading.score else own
    own = own if reading.lower_is_better is None else replace(own, lower_is_better=reading.lower_is_better)
    return own if own.compare in ("all", "best", *own.compared) else replace(own, compare="all")


def _own_method(frame: pd.DataFrame, question: Question, method: str) -> AskedMethod:
    """A method of which rows were added to an export: it has what is there."""
    rows = frame[frame["method"] == method].drop_duplicates(["search", "run"])
    runs = rows.groupby("search").size()
    if question.sample.of_searches:
        return AskedMethod(method, len(runs), int(runs.min()))
    return AskedMethod(method, 0, len(rows), searched=question.sample.about == "methods")


def said_of(read: ReadScores, reading: Reading, name: str, answers: Mapping[str, Answer] = MappingProxyType({})) -> str:
    """Say what was read: methods, runs, searches, datasets, the score with its scale and direction."""
    counts = [counted(read.frame["method"].nunique(), "method"), *_repeats(read)]
    if datasets := [dataset for dataset in read.frame["dataset"].unique() if dataset]:
        counts.append(f"{counted(len(datasets), 'dataset')} ({joined(datasets[:3])}{', ...' if datasets[3:] else ''})")
    score = f"score {read.score}, {scaling_of(read.scale).read_as}"
    if read.exported and not reading.score:
        score = "what each experiment asks"
    if read.lower_is_better:
        score += ", lower is better"
    elif reading.lower_is_better is None and not read.exported and not is_known(read.score):
        score += ", higher taken as better"
    sentences = [f"{name}: {', '.join(counts)}; {score}."]
    others = [*(one for one in read.scores if one != read.score)]
    others += [name for name, why in read.unread.items() if why == ANOTHER_SCORE]
    if others and not read.exported and not reading.score:
        sentences.append(f"Compared in {read.score}; --score names another ({some(others, 6)}).")
    if unread := [name for name in read.unread if reading.score or name not in others]:
        sentences.append(f"Not read: {joined(unread)}.")
    return " ".join([*sentences, *(read.said if len(answers) > 1 else ())])


def _repeats(read: ReadScores) -> list[str]:
    """How many repeats there are, by what a row repeats."""
    own = read.frame[(read.frame["metric"] == read.metric) & (read.frame["embeddings"] == read.embeddings)]
    rows = own[["experiment", "dataset", "method", "search", "run"]].drop_duplicates()
    match read.repeats:
        case "summary":
            behind = "fold" if read.folds else "run"
            return [f"means and deviations of {counted_span(own['n'].astype(int), behind)} each ({read.column})"]
        case "uncounted summary":
            return [f"means and deviations of an unknown number of {'folds' if read.folds else 'runs'} ({read.column})"]
        case "block":
            return [counted(len(rows), "run"), f"paired by {read.column} ({counted(rows['run'].nunique(), 'value')})"]
        case "fold":
            return [counted(len(rows), "score"), f"paired by the {counted(read.folds, 'fold')} of each repeat"]
        case "dataset":
            return ["one score on each dataset"]
    searches = len(rows[rows["search"] != ""].drop(columns="run").drop_duplicates())
    return [counted(len(rows), "run"), counted(searches, "search") if searches else "no searches"]
