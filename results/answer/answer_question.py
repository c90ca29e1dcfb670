"""From a frame of scores and a question to the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from results.answer.answers import Answer
from results.answer.caveats import findings_of_scores
from results.answer.compare import compare, compare_at_looks, gains_over
from results.answer.intervals import Interval
from results.answer.question import Planned, Question, Unit
from results.answer.typical import intervals_of, method_values
from results.answer.values import Runs
from results.records.frame import EMBEDDING_KINDS
from results.records.read_scores import Reading, read_scores
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import counted, some


def answer(frame: pd.DataFrame, question: Question) -> Answer:
    """Answer a question about the scores of a frame (`results.records.frame`), or of a table for `read_scores`.

    Without methods the question is about all that the frame has, each with all that it has: methods are compared by
    their searches where one has several, else by the runs of its only search, else, without searches, by their runs.
    Several datasets are several questions; `audit` answers all of a table.

    The probability that the family makes any wrong claim, "better", "beyond" or "within", is at most the question's
    `alpha`; `make calibrate` measures it, and docs/comparisons.md lists where it does not hold. Only complete methods
    are tested. Methods that are not complete count in the correction.
    """
    if not {"metric", "embeddings", "search", "value"} <= {*frame.columns}:
        read = read_scores(frame, Reading(score=question.score))
        frame, question = read.frame, replace(question, score=read.metric, embeddings=read.embeddings)
        if len(several := frame["dataset"].unique()) > 1:
            raise ValueError(f"there are {counted(len(several), 'dataset')}; ask about the rows of one of them")
    return answer_frame(frame, question)


def answer_frame(frame: pd.DataFrame, question: Question) -> Answer:
    """Answer a question about the scores of a frame that has the columns of `results.records.frame`."""
    runs = _runs(frame, question)
    question = question if question.methods else _of_found(question, runs)
    if question.compare not in ("all", "best", *question.compared):
        raise ValueError(f"compare {question.compare!r}: use all, best, or one of {some(question.compared)}")
    if question.assumed and question.assumed.given and question.unit != "single search":
        raise ValueError("a deviation is assumed only where no method was searched twice; leave it out")
    values = method_values(question, runs)
    level, pairs = compare_at_looks(question, runs) if question.looks else (None, compare(question, values))
    defaults = question.defaults if question.unit == "search" else {}
    settings = replace(question, unit="run") if question.unit == "single search" else None
    return Answer(
        question=question,
        frame=frame,
        runs=runs,
        values=values,
        intervals=intervals_of(question, runs, values),
        pairs=pairs,
        settings=compare(settings, values) if settings else (),
        gains=gains_over(values, values, defaults, question.step, question.alpha),
        look_level=level,
        find=findings_of_scores,
    )


def answer_on(found: Answer, metric: str, embeddings: str, alpha: float | None = None) -> Answer:
    """Answer the same question about another score of the frame, once; `alpha` as in `Question.on`."""
    question = found.question.on(metric, embeddings, alpha)
    if question is found.question:
        return found
    key = metric, embeddings, question.alpha
    if key not in found.others:
        found.others[key] = replace(answer_frame(found.frame, question), measured=found.measured)
    return found.others[key]


def runs_on(found: Answer, metric: str, embeddings: str) -> Runs:
    """Return the values of another score of the frame, by method and search."""
    return _runs(found.frame, found.question.on(metric, embeddings))


def intervals_on(found: Answer, metric: str, embeddings: str) -> Mapping[str, Interval]:
    """Return mean and interval of every method in another score of the frame, without comparing the methods in it."""
    question = found.question.on(metric, embeddings)
    if question is found.question:
        return found.intervals
    runs = _runs(found.frame, question)
    return intervals_of(question, runs, method_values(question, runs))


def other_models(found: Answer) -> Answer | None:
    """Answer the same at the same level about single models where joined ones are asked for, or the other way round.

    None where a run has one model, or where there is no verdict.
    """
    question, records = found.question, found.measured.records if found.measured else ()
    models = max((len(run.fold_scores) for run in records), default=1)
    if models == 1 or found.interim or not found.tested or question.score not in HEADLINE_METRICS:
        return None
    (kind,) = set(EMBEDDING_KINDS) - {question.embeddings}
    return answer_on(found, question.score, kind, question.alpha)


def _runs(frame: pd.DataFrame, question: Question) -> Runs:
    of_score = frame[(frame["metric"] == question.score) & (frame["embeddings"] == question.embeddings)]
    runs: dict[str, dict[Any, list[float]]] = {}
    for method, search, value in zip(of_score["method"], of_score["search"], of_score["value"], strict=True):
        runs.setdefault(method, {}).setdefault(search, []).append(value)
    return runs


def _of_found(question: Question, runs: Runs) -> Question:
    """A question about the methods that are there, with all that they have."""
    unit = _unit_of(question, runs)
    methods = {
        key: Planned(key, len(own), min(map(len, own.values())))
        if unit == "search"
        else Planned(key, 0, sum(map(len, own.values())), searched=unit != "run")
        for key, own in runs.items()
    }
    counts = [planned.searches or planned.runs for planned in methods.values()]
    units = 1 if unit == "single search" else min((one for one in counts if one > 1), default=1)
    values = [value for own in runs.values() for of_search in own.values() for value in of_search]
    return replace(question, unit=unit, methods=methods, units=units, step=question.step or rounding_step(values))


def _unit_of(question: Question, runs: Runs) -> Unit:
    """What the values are, by the searches that are named; a given deviation makes a search of each method's runs."""
    if question.unit != "search" or any(len(own) > 1 for own in runs.values()):
        return question.unit
    named = any(search != "" for own in runs.values() for search in own)
    return "single search" if named or question.assumed else "run"


def rounding_step(values: Sequence[float]) -> float:
    """Return the step to which all values are rounded: a power of ten from 1 to 0.0001; 0 for a smaller one."""
    for digits in range(5):
        scaled = np.asarray(values) * 10**digits
        if np.allclose(scaled, np.round(scaled), rtol=0, atol=1e-7):
            return float(10.0**-digits)
    return 0.0
