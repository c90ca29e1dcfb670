"""Rows that are left out: of runs that failed, without the asked values, and those that sum up others."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from results.reading.cells import column_named, numbered, one_number, rows_words, texts_of
from results.reading.columns import DONE, FAILED, is_summary, plain
from results.reading.known import Known
from results.reading.scores_table import ScoresError
from results.wording import listed, some


def rows_where(table: pd.DataFrame, where: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return the rows that have the values that `--where` names, by column.

    Raises:
        ScoresError: There is no such column, or no such row.
    """
    for name, value in where:
        column = column_named(table, name)
        cells = numbered(table[column])
        kept = cells.str.casefold() == one_number(plain(value)).casefold()
        if not kept.any():
            raise ScoresError(f"no row has {column} {value!r}; there are {some(list(dict.fromkeys(cells)))}")
        table = table[kept]
    return table


def without_failed(known: Known) -> Known:
    """Leave out the runs that a tracker marks as crashed or not finished.

    Raises:
        ScoresError: These are all.
    """
    if not (column := known.first_of("state")):
        return known
    texts = texts_of(known.table[column])
    states = texts.str.casefold().str.removeprefix("trialstate.")
    if {*states} - DONE - FAILED - {""}:
        return known
    known = known.unread([column], "the state of a run")
    gone = states.isin(FAILED)
    if not gone.any():
        return known
    kinds = ", ".join(dict.fromkeys(texts[gone]))
    if gone.all():
        raise ScoresError(f"no run is finished ({column}: {kinds})")
    return _without(known, gone, f"{column}: {kinds}", "")


def without_summaries(known: Known, column: str, *, of_columns: bool) -> Known:
    """Leave out the rows that a column names as a sum of others, such as Average."""
    names = texts_of(known.table[column])
    sums = [name for name in names.unique() if is_summary(name, of_columns=of_columns)]
    if column == known.fold and (names == "").any():  # A mean over the folds has none.
        sums.append("")
    if not sums or len(sums) == names.nunique():
        return known
    named = listed([name or "empty" for name in sums])
    return _without(known, names.isin(sums), f"{column} {named}", ", which sum up others")


def _without(known: Known, gone: pd.Series, which: str, why: str) -> Known:
    rows = rows_words(known.table.index[gone])
    return replace(known, table=known.table[~gone]).saying(f"Left out: {rows} ({which}){why}.")
