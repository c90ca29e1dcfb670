"""From a frame of scores and a question to the answer."""

from dataclasses import replace

import pandas as pd

from results.answer.caveats import caveats
from results.answer.compare import compare, compare_at_looks
from results.answer.gains import gains_over
from results.answer.question import Planned, Question
from results.answer.typical import intervals_of, method_values
from results.answer.values import Answer, Runs


def answer(frame: pd.DataFrame, question: Question) -> Answer:
    """Answer a question about the scores of a frame (`results.records.frame`).

    Without methods the question is about all that the frame has, each with all that it has.

    The probability that the family makes any wrong claim, "better", "beyond" or "within", is at most the question's
    `alpha`; `make calibrate` measures it, and docs/comparisons.md lists where it does not hold. Only complete methods
    are tested. Methods that are not complete count in the correction.
    """
    runs = _runs(frame, question)
    question = question if question.methods else _of_found(question, runs)
    if question.compare not in ("all", "best", *question.compared):
        raise ValueError(f"compare {question.compare!r}: use all, best, or one of {', '.join(question.compared)}")
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
        find=caveats,
    )


def answer_on(found: Answer, metric: str, embeddings: str) -> Answer:
    """Answer the same question about another score of the frame, once."""
    question = found.question.on(metric, embeddings)
    if question is found.question:
        return found
    if (metric, embeddings) not in found.others:
        found.others[metric, embeddings] = replace(answer(found.frame, question), measured=found.measured)
    return found.others[metric, embeddings]


def _runs(frame: pd.DataFrame, question: Question) -> Runs:
    of_score = frame[(frame["metric"] == question.score) & (frame["embeddings"] == question.embeddings)]
    runs: dict[str, dict[int, list[float]]] = {}
    for method, search, value in zip(of_score["method"], of_score["search"], of_score["value"], strict=True):
        runs.setdefault(method, {}).setdefault(search, []).append(value)
    return runs


def _of_found(question: Question, runs: Runs) -> Question:
    """A question about the methods that are there, with all that they have."""
    by_search = question.unit == "search"
    methods = {
        key: Planned(key, len(own), min(map(len, own.values())))
        if by_search
        else Planned(key, 0, sum(map(len, own.values())))
        for key, own in runs.items()
    }
    counts = [planned.searches if by_search else planned.runs for planned in methods.values()]
    return replace(question, methods=methods, units=max(counts, default=0))
