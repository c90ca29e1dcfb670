"""Anybody's table of scores as a frame (`results.records.frame`), and what a row of it repeats.

One row is one run, or one run and one metric, or a summary of runs. What the columns are follows from their names, and
from what varies within what. What is sure needs no option. All else is asked at once, with what it most likely is.
Every fault is a `ScoresError` with the number of the row. `_read` has the steps in their order.
"""

from dataclasses import replace
from typing import get_args

import pandas as pd

from results.reading.columns import LOWER, SCALE
from results.reading.direction_and_scale import (
    as_fractions,
    can_be_percentage,
    declared,
    is_lower_better,
    metric_of,
    scale_of,
)
from results.reading.known import Known
from results.reading.methods_and_datasets import with_methods_and_datasets
from results.reading.one_dataset import with_one_score_each, without_copied_datasets, without_unscored_datasets
from results.reading.read_export import read_export
from results.reading.rows_left_out import rows_where, without_failed
from results.reading.rows_taken import with_best_of_searches, with_last_of_runs
from results.reading.rows_twice import with_equal_scores_named, without_copied_rows
from results.reading.score_and_summary import column_of_metrics, with_score, with_summary
from results.reading.scores_frame import frame_of, long_frame, roles_of, with_places
from results.reading.scores_table import (
    AskedError,
    OpenQuestionsError,
    Reading,
    ReadScores,
    ScoreScale,
    ScoresError,
    check_texts,
    left_out_rows,
)
from results.reading.tidy_table import tidy
from results.reading.what_repeats import what_repeats, with_repeats
from results.reading.what_varies import with_all_explained
from results.records.frame import OURS

_MOST_QUESTIONS = 12
_OF_RESULTS = frozenset({"method", "variant", "metric", "unit", "rank_low", "rank_high"})
_OF_CONDITIONS = frozenset({"a", "b", "condition", "verdict", "holds"})
"""Columns of the suite's own tables of results and of other conditions, whose rows are means and no runs."""


def read_scores(table: pd.DataFrame, reading: Reading | None = None) -> ReadScores:
    """Read a table of scores. The index has the numbers of its rows for messages.

    Raises:
        OpenQuestionsError: Something is not sure; it has all that is, and the reading that is most likely.
        ScoresError: A column is missing, or a row cannot be used.
    """
    reading, table = reading or Reading(), tidy(table)
    if {*table.columns} >= OURS:
        return read_export(table, reading)
    if {*table.columns} >= _OF_RESULTS or {*table.columns} >= _OF_CONDITIONS:
        raise ScoresError(
            "this is a table of results, which the suite wrote; give the scores of the runs that it was made from, or "
            "for those of a store the folder of `reproduce export runs`"
        )
    return _read_by_guesses(table, reading)


def _read_by_guesses(table: pd.DataFrame, reading: Reading) -> ReadScores:
    """Read a table by the most likely answers to what is not sure, and raise these questions at the end."""
    questions = list[tuple[str, str]]()
    for _ in range(_MOST_QUESTIONS):
        try:
            found = _read(table, reading)
        except AskedError as asked:
            if not asked.sure:
                questions.append((str(asked), asked.taken))
            reading = asked.guess(reading)
            continue
        except ScoresError as error:
            if not questions:
                raise
            raise OpenQuestionsError([*questions, (str(error), "")], reading, None) from error
        if questions:
            raise OpenQuestionsError(questions, reading, found)
        return found
    raise OpenQuestionsError(questions, reading, None)


def _read(table: pd.DataFrame, reading: Reading) -> ReadScores:
    """Read a table step by step."""
    known = without_failed(Known(table, reading))
    known = replace(known, metric=column_of_metrics(known.table))
    known = replace(known, table=rows_where(known.table, reading.where))
    known = with_methods_and_datasets(known)
    known = with_repeats(known)
    known = with_score(known)
    known = with_summary(known)
    known = with_last_of_runs(known)
    known = with_best_of_searches(known)
    known = with_all_explained(known)
    known = without_copied_rows(known)
    known, places = with_places(known)
    score, metric = known.score, metric_of(known.table, known.score)
    lower = is_lower_better(score, metric, declared(known.of_score, LOWER, score), reading.lower_is_better)
    long = long_frame(known, places)
    if known.dataset:
        known, long = without_copied_datasets(known, long)
    left_out = left_out_rows(long, score)
    check_texts(long, score)
    known, scale = _with_scale(known, long, metric, lower=lower)
    long = as_fractions(long, score, scale)
    if what_repeats(known, long[long["name"] == score])[0] == "dataset":
        known, long = with_one_score_each(known, long, logs=scale == "times")
    known, long = without_unscored_datasets(known, long)
    own = long[long["name"] == score]
    if len(own) == 1:
        raise ScoresError(f"nothing to compare: {own['method'].iloc[0]} has the only score in {score!r}")
    known = with_equal_scores_named(known, own)
    repeats, column = what_repeats(known, own)
    read = {*long["name"], column}  # A summary's column has its deviations.
    return ReadScores(
        frame_of(long),
        score,
        scale,
        tuple(dict.fromkeys(long["name"])),
        repeats=repeats,
        column=column,
        folds=places["fold"].nunique() if repeats == "fold" else known.folds_behind,
        plus_minus=known.spread_kind,
        lower_is_better=lower,
        roles=roles_of(known, column),
        unread={name: known.why[name] for name in table.columns if name in known.why and name not in read},
        said=known.said,
        left_out=left_out,
    )


def _with_scale(known: Known, long: pd.DataFrame, metric: str, *, lower: bool) -> tuple[Known, ScoreScale]:
    """Find the scale of the compared score, and say if it is not known whether errors are fractions."""
    score, own = known.score, long[(long["name"] == known.score) & long["value"].notna()]
    if own.empty:
        raise ScoresError(f"no row has a number in {score!r}")
    said = declared(known.of_score, SCALE, score)
    given = known.reading.scale or next((one for one in get_args(ScoreScale) if one == said), None)
    if given == "times" and known.spread:
        raise ScoresError("a mean ± deviation has no ratio of single scores; give the runs, or leave out --scale times")
    scale = scale_of(own, score, metric, lower=lower, given=given)
    if given is None and lower and can_be_percentage(metric) and own["value"].between(0, 1).all():
        known = known.saying(
            f"{score} is compared as it is written; --scale fractions, or percent, if that is what its values within "
            "0 and 1 are."
        )
    return known, scale
