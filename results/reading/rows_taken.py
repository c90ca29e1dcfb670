"""The rows that options take: the last of each run (`--last`), the best trial of each search (`--best-of`)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from results.reading.cells import numbers_of, rows_words
from results.reading.columns import means_lower
from results.reading.known import Known
from results.reading.scores_table import ScoresError
from results.wording import capitalized, counted


def with_last_of_runs(known: Known) -> Known:
    """Take the row of each run that has the highest number in the column of `--last`.

    Raises:
        ScoresError: There is no such column, a run has no number in it, or two rows have its last one.
    """
    if not known.reading.last:
        return known
    known, column = known.with_column(known.reading.last)
    order = _numbers(known, column, "--last")
    groups = known.keys(known.method, known.dataset, *known.repeats, known.metric)
    _check_filled(known, column, order, groups, "--last", "run")
    if len(again := _tied(order, groups)):
        raise ScoresError(
            f"--last {column}: {rows_words(again)} have the last one of their runs; keep one of what differs "
            "between them with --where, or name it with --run, --paired or --dataset"
        )
    return _with_highest(known, order, groups, column, f"The last {column} of each run is taken")


def with_best_of_searches(known: Known) -> Known:
    """Take the trial of each search that is the best by the column of `--best-of`.

    Raises:
        ScoresError: There is no such column, no search, or a search has no number in it.
    """
    if not known.reading.best_of:
        return known
    known, column = known.with_column(known.reading.best_of)
    search = known.search
    if not search:
        raise ScoresError(f"--best-of {column}: name the column of the searches with --search")
    order = _numbers(known, column, "--best-of")
    falls = bool(means_lower(column))
    if column == known.score and known.reading.lower_is_better is not None:
        falls = known.reading.lower_is_better
    order = -order if falls else order
    groups = known.keys(known.method, known.dataset, search, known.metric)
    _check_filled(known, column, order, groups, "--best-of", search)
    said = f"Of each {search} the trial with the {'lowest' if falls else 'highest'} {column} is taken"
    if column == known.score:
        said += ", the compared score itself: such scores are too good, the more so the more trials there are"
    tied = _tied(order, groups)
    ties = f" {capitalized(rows_words(tied))} tie for it: the first of each {search} counts." if len(tied) else ""
    return _with_highest(replace(known, chosen=True, runs=(), block="", fold=""), order, groups, column, said, ties)


def _numbers(known: Known, column: str, flag: str) -> pd.Series:
    own = numbers_of(known.table[column])["value"]
    if own.isna().all():
        raise ScoresError(f"{flag} {column}: the column has no numbers")
    return pd.Series(own)


def _check_filled(known: Known, column: str, order: pd.Series, groups: Sequence[pd.Series], flag: str, of: str) -> None:
    lacking = order.isna().groupby(list(groups), sort=False).transform("all")
    if lacking.any():
        raise ScoresError(
            f"{flag} {column}: {rows_words(known.table.index[lacking])} have no number in it, nor has another "
            f"row of their {of}; fill it in, or leave them out"
        )


def _tied(order: pd.Series, groups: Sequence[pd.Series]) -> pd.Index:
    """The rows that share the highest number of their group."""
    last = order.index[order == order.groupby(list(groups), sort=False).transform("max")]
    again = pd.concat([group[last] for group in groups], axis=1).duplicated(keep=False)
    return again[again].index


def _with_highest(
    known: Known, order: pd.Series, groups: Sequence[pd.Series], column: str, said: str, ties: str = ""
) -> Known:
    """Keep the row of each group that has its highest number."""
    rows = known.table.loc[order.fillna(-np.inf).groupby(list(groups), sort=False).idxmax()].sort_index()
    said = f"{said} ({len(rows):,} of {counted(len(known.table), 'row')}).{ties}"
    known = replace(known, table=rows, why={column: "chose the rows", **known.why})
    return known.saying(said)
