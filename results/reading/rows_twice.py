"""Rows that are there twice: copies count once, and two rows of one run are asked about."""

import math
from collections import Counter
from dataclasses import replace

import pandas as pd

from results.reading.cells import rows_words, texts_of
from results.reading.columns import is_score
from results.reading.known import Known
from results.reading.scores_table import EACH_ROW, AskedError
from results.wording import capitalized, counted


def without_copied_rows(known: Known) -> Known:
    """Count rows that are there twice once.

    Raises:
        AskedError: Two rows of one run have other scores.
    """
    table = known.of_score
    cells = pd.concat([texts_of(table[name]) for name in table.columns], axis=1)
    if not known.repeats and not known.chosen:
        return _without_whole_copies(known, cells)
    same = cells.duplicated()
    if same.any():
        known = known.saying(f"There twice, and counted once: {rows_words(table.index[same])}.")
        known = replace(known, table=known.table.drop(table.index[same]))
    if (known.block and not known.runs) or (known.fold and known.chosen):
        return known  # Several runs of a block are averaged.
    names = [name for name in (known.method, known.dataset, *known.repeats) if name]
    keys = pd.concat(known.keys(*names), axis=1, keys=names).reindex(table.index[~same])
    again = keys[keys.duplicated()]
    if again.empty or known.reading.run == EACH_ROW:
        return known
    key = again.iloc[0]
    first = keys[(keys == key).all(axis=1)].index[0]
    roles = {known.method: "method", **dict.fromkeys(known.runs, "run")}
    where = ", ".join(f"{roles.get(name, name)} {key[name]}" for name in names if key[name])
    text = f"rows {first} and {again.index[0]} are both {where}"
    if "+" in known.reading.method:  # The columns that were named are all that methods differ in.
        said = f"{capitalized(text)}, as are {counted(len(again), 'further row')}: each counts as a run."
        return replace(known.saying(said).unread(known.runs, "there more than once for a method"), runs=())
    raise AskedError(f"{text}; number the runs apart, leave one out, or count each with --run {EACH_ROW}", run=EACH_ROW)


def _without_whole_copies(known: Known, cells: pd.DataFrame) -> Known:
    """Where every row is there as often, such as in a table that was appended to itself, count each once."""
    rows = cells.apply(tuple, axis=1)
    counts = Counter(rows)
    times = math.gcd(*counts.values())
    if times < 2 or len(counts) < 2:
        return known
    first, *_ = rows[rows == rows.iloc[0]].index[1:]
    often = "twice" if times == 2 else f"{times} times"
    return replace(known, table=known.table.drop(rows.index[rows.duplicated()])).saying(
        f"Every row is there {often}, such as rows {rows.index[0]} and {first}, as in a table that was appended to "
        "itself: a copy counts once."
    )


def with_equal_scores_named(known: Known, own: pd.DataFrame) -> Known:
    """Name rows of one method whose scores are equal to the last of many digits, or in all of several scores.

    Args:
        known: The table.
        own: A row for each compared score.
    """
    if known.spread or known.metric or not known.repeats:
        return known
    scores = [known.score, *(name for name in known.others if name in known.table and is_score(name))]
    table = known.table.loc[[*dict.fromkeys(own["at"])]]
    cells = pd.concat([texts_of(table[name]) for name in (known.method, known.dataset, *scores) if name], axis=1)
    digits = texts_of(table[known.score]).str.replace(r"\D", "", regex=True).str.strip("0").str.len()
    again = cells.duplicated(keep=False) & (digits >= 4)
    if not again.any() or again.all():
        return known
    rows = capitalized(rows_words(again[again].index))
    return known.saying(f"{rows} have the scores of another run of their method to the last digit.")
