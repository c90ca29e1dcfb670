"""From a frame of scores and a question to the answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from results.answer.answers import Answer
from results.answer.compare import compare, compare_at_looks, gains_over
from results.answer.intervals import Interval
from results.answer.pair_tests import family
from results.answer.question import AskedMethod, Question
from results.answer.sample import Unit, sample_of
from results.answer.scaling import Scaling
from results.answer.table_caveats import ScoresAnswer
from results.answer.typical import intervals_of, method_values
from results.answer.values import Runs
from results.reading.read_scores import read_scores
from results.reading.scores_table import Reading, ReadScores
from results.wording import counted, some

MOST_PAIRS = 50_000
"""Of more pairs nobody reads the answers, and half a million take minutes."""

MetricOn = tuple[str, str]
"""Metric, and kind of embeddings."""


def answer(frame: pd.DataFrame, question: Question | None = None) -> ScoresAnswer:
    """Answer a question about the scores of a frame (`results.records.frame`), or of a table for `read_scores`.

    Without methods the question is about all that the frame has, each with all that it has: methods are compared by
    their searches where one has several, else by the runs of its only search, else, without searches, by their runs.
    Several datasets are several questions; `audit` answers all of a table.

    The probability that the family makes any wrong claim, "better", "beyond" or "within", is meant to be at most
    the question's `alpha`; `make calibrate` measures it, and docs/comparisons.md lists where it does not hold. Only
    complete methods are tested. Methods that are not complete count in the correction.

    Raises:
        OpenQuestionsError: Something about the table is not sure; it has all that is, as the command `audit`.
        ScoresError: The table cannot be used.
        ValueError: It has several datasets, or no method that the question compares with.
    """
    question = question or Question()
    if {"metric", "embeddings", "search", "value"} <= {*frame.columns}:
        score = question.score or next((one for one in ("map_at_r", *frame["metric"]) if one in {*frame["metric"]}), "")
        kinds = list(frame.loc[frame["metric"] == score, "embeddings"].unique())
        usual = next((one for one in ("concatenated", *kinds) if one in kinds), "")
        return answer_frame(frame, replace(question, score=score, embeddings=question.embeddings or usual))
    read = read_scores(frame, Reading(**{one.name: getattr(question, one.name) for one in fields(Reading)}))
    if read.repeats != "dataset" and len(several := read.frame["dataset"].unique()) > 1:
        raise ValueError(
            f"there are {counted(len(several), 'dataset')}; ask about the rows of one of them, or use `audit`"
        )
    return answer_read(read, question)


def answer_read(read: ReadScores, question: Question, frame: pd.DataFrame | None = None) -> ScoresAnswer:
    """Answer a question about a table that was read, or about a part of its rows, by what its rows repeat."""
    asked = question if question.methods else replace(question, **asked_by(read))
    missing: dict[str, list[int]] = {}
    datasets = {*read.frame["dataset"]} if frame is None else {*frame["dataset"]}
    for (dataset, method), rows in read.left_out.items():
        if dataset in datasets:
            missing.setdefault(method, []).extend(rows)
    found = answer_frame(read.frame if frame is None else frame, asked)
    return replace(found, without_score=missing, reading=read.said)


def asked_by(read: ReadScores) -> dict[str, Any]:
    """Return what a table's rows decide of a question: the unit, the scale, the direction."""
    unit: Unit = "search" if read.repeats == "run" else read.repeats
    return {
        "score": read.metric,
        "embeddings": read.embeddings,
        "unit": unit,
        "scale": read.scale,
        "lower_is_better": read.lower_is_better,
        "folds": read.folds,
        "plus_minus": read.plus_minus,
        "shared": read.column,
    }


def answer_frame(frame: pd.DataFrame, question: Question) -> ScoresAnswer:
    """Answer a question about the scores of a frame that has the columns of `results.records.frame`."""
    runs = _runs(frame, question)
    question = question if question.methods else _of_found(question, runs, _of_score(frame, question))
    if question.compare not in ("all", "best", *question.compared):
        raise ValueError(f"compare {question.compare!r}: use all, best, or one of {some(question.compared)}")
    methods = len(question.compared)
    if question.compare == "all" and family("all", methods) > MOST_PAIRS:
        raise ValueError(
            f"{counted(family('all', methods), 'pair')} of {counted(methods, 'method')}: more than {MOST_PAIRS:,} are "
            "not compared; compare each with the best (compare best), or with one by its name"
        )
    if question.assumed and question.assumed.given and question.sample.test != "assumed":
        raise ValueError("a deviation is assumed only where no method was searched twice; leave it out")
    values = method_values(question, runs)
    if question.sample.test == "welch":
        summaries = _summaries(frame, question)
        values = {key: replace(own, summary=summaries[key], runs=summaries[key][1]) for key, own in values.items()}
    level, pairs = compare_at_looks(question, runs) if question.looks else (None, compare(question, values))
    defaults = question.defaults if question.sample.of_searches else {}
    gains = gains_over(values, values, defaults, question.step, question.alpha, question.sign)
    settings = replace(question, unit="run") if question.sample.test == "assumed" else None
    return ScoresAnswer(
        question=question,
        frame=frame,
        runs=runs,
        values=values,
        intervals=intervals_of(question, runs, values),
        pairs=tuple(pair.limited() for pair in pairs),
        # Of one search no end is called open, so only cut-offs limit these.
        settings=tuple(pair.limited() for pair in compare(settings, values)) if settings else (),
        gains=tuple(pair.limited() for pair in gains),
        look_level=level,
    )


def answer_on(found: Answer, metric: str, embeddings: str, alpha: float | None = None) -> Answer:
    """Answer the same question about another score of the frame; `alpha` as in `Question.on`."""
    question = found.question.on(metric, embeddings, alpha)
    if question is found.question:
        return found
    key = metric, embeddings, question.alpha
    if key not in found.answered:
        found.answered[key] = answer_frame(found.frame, question)
    return found.answered[key]


def early_answer(found: Answer) -> Answer | None:
    """Answer the same, at the same level, about the best models up to the end of a trial.

    None where no training went on beyond that. A method that trains nothing has its own scores there too.
    """
    frame, question, kind = found.frame, found.question, f"early_{found.question.embeddings}"
    if known := found.answered.get((question.score, kind, question.alpha)):
        return known
    trained = set(frame.loc[frame["embeddings"] == kind, "method"])
    if not trained:
        return None
    others = frame[(frame["embeddings"] == question.embeddings) & ~frame["method"].isin(trained)]
    methods = {key: replace(planned, cut_off="") for key, planned in question.methods.items()}
    asked = replace(question.on(question.score, kind, question.alpha), methods=methods)
    early = answer_frame(pd.concat([frame, others.assign(embeddings=kind)]), asked)
    return found.answered.setdefault((question.score, kind, question.alpha), early)


def runs_on(found: Answer, metric: str, embeddings: str) -> Runs:
    """Return the values of another score of the frame, by method and search."""
    return _runs(found.frame, found.question.on(metric, embeddings))


def intervals_on(found: Answer, scores: Iterable[MetricOn]) -> dict[MetricOn, Mapping[str, Interval]]:
    """Return mean and interval of every method in other scores of the frame, without comparing the methods in them."""
    questions = {score: found.question.on(*score) for score in scores}
    intervals: dict[MetricOn, Mapping[str, Interval]] = {}
    for score, runs in {score: _runs(found.frame, question) for score, question in questions.items()}.items():
        question = questions[score]
        if question is found.question:
            intervals[score] = found.intervals
        else:
            intervals[score] = intervals_of(question, runs, method_values(question, runs))
    return intervals


def _runs(frame: pd.DataFrame, question: Question) -> Runs:
    """The values in which the scores of the question are compared."""
    of_score = _of_score(frame, question)
    of_score = of_score.assign(value=question.scaling.to_values(of_score["value"]))
    if question.sample.paired:
        return _paired_runs(of_score, question)
    runs: dict[str, dict[Any, list[float]]] = {}
    for method, search, value in zip(of_score["method"], of_score["search"], of_score["value"], strict=True):
        runs.setdefault(method, {}).setdefault(search, []).append(value)
    return runs


def _of_score(frame: pd.DataFrame, question: Question) -> pd.DataFrame:
    return frame[(frame["metric"] == question.score) & (frame["embeddings"] == question.embeddings)]


def _paired_runs(of_score: pd.DataFrame, question: Question) -> Runs:
    """The values of the blocks (folds, datasets) that all methods have, in one order; several of one are averaged."""
    by = "dataset" if question.sample.test == "ranks" else "run"
    keys, methods = of_score[by].unique(), of_score["method"].unique()
    table = of_score.groupby(["method", by], sort=False)["value"].mean().unstack()
    whole = [key for key in keys if table[key].notna().all()]
    if len(whole) < (1 if question.sample.test == "ranks" else 2):
        few = "none" if not whole else "one"
        raise ValueError(f"the methods share {few} of the {question.shared or by} values; leave one method out")
    rows = {str(method): table.loc[method, whole].to_numpy(dtype=float).tolist() for method in methods}
    return {method: {key: [value] for key, value in zip(whole, row, strict=True)} for method, row in rows.items()}


def _summaries(frame: pd.DataFrame, question: Question) -> dict[str, tuple[float, int]]:
    """Deviation and number of the runs behind each mean."""
    own = frame[frame["metric"] == question.score]
    return {
        str(method): (float(deviation), int(number))
        for method, deviation, number in zip(own["method"], own["deviation"], own["n"], strict=True)
    }


def _of_found(question: Question, runs: Runs, of_score: pd.DataFrame) -> Question:
    """A question about the methods that are there, with all that they have."""
    unit, scaling = _unit_of(question, runs), question.scaling
    sample, held_up = sample_of(unit), _held_up(of_score)
    methods = {
        key: AskedMethod(
            key,
            *((len(own), min(map(len, own.values()))) if sample.of_searches else (0, sum(map(len, own.values())))),
            searched=sample.about == "methods",
            held_up=held_up.get(key, ()),
        )
        for key, own in runs.items()
    }
    counts = [planned.searches or planned.runs for planned in methods.values()]
    units = 1 if sample.test == "assumed" else min((one for one in counts if one > 1), default=1)
    scores, summaries = of_score["value"].tolist(), sample.test == "welch"
    step = question.step or (0.0 if summaries else scaling.to_step(rounding_step(scores), scores))
    digits = max(scaling.least_digits, _digits(runs, of_score["deviation"] if summaries else (), scaling))
    return replace(question, unit=unit, methods=methods, units=units, step=step, digits=digits)


def _held_up(of_score: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """What held methods up by the records that were read, on any of several datasets."""
    if "held_up" not in of_score:
        return {}
    said = of_score.groupby("method")["held_up"].agg(", ".join)
    return {str(key): tuple(dict.fromkeys(filter(None, text.split(", ")))) for key, text in said.items()}


def _digits(runs: Runs, stated: Iterable[float], scaling: Scaling) -> int:
    """Digits after the point that scores need: their deviation, or the usual gap between means, has one that counts.

    A large score has none. Summaries state their deviations.
    """
    groups = [np.array([value for own in of.values() for value in own]) * scaling.factor for of in runs.values()]
    spreads = [one * scaling.factor for one in stated]
    spreads += [float(np.std(own, ddof=1)) for own in groups if len(own) > 1]
    means = np.unique([float(own.mean()) for own in groups if len(own)])
    spread = float(np.median([one for one in spreads if one > 0] or [0.0]))
    gaps = np.diff(means)[np.diff(means) > 1e-9 * np.max(np.abs(means), initial=0.0)] if len(means) > 1 else []
    needed = spread or float(np.median(gaps) if len(gaps) else np.inf)
    return int(np.clip(-np.floor(np.log10(needed)), 0, 12)) if 0 < needed < np.inf else 1


def _unit_of(question: Question, runs: Runs) -> Unit:
    """What the values are, by the searches that are named; a given deviation makes a search of each method's runs."""
    if not question.sample.of_searches or any(len(own) > 1 for own in runs.values()):
        return question.unit
    named = any(search != "" for own in runs.values() for search in own)
    return "single search" if named or question.assumed else "run"


def rounding_step(values: Sequence[float]) -> float:
    """Return the step that all values are rounded to: a power of ten, up to five digits of the largest; else 0.

    Equal values show none: 70.0 and 70.0 are not rounded to 10.
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if not 0 < largest < np.inf or len({*values}) < 2:
        return 0.0
    first = int(np.floor(np.log10(largest) + 1e-12))
    for power in range(first, first - 5, -1):
        scaled = np.asarray(values) / 10.0**power
        if np.allclose(scaled, np.round(scaled), rtol=0, atol=1e-7):
            return float(10.0**power)
    return 0.0
