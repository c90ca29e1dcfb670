"""Cells of a table of scores: their texts and numbers, and what a column or rows are by them."""

import re
import unicodedata
from typing import Any

import numpy as np
import pandas as pd

from results.reading.columns import plain
from results.reading.scores_table import ScoresError
from results.wording import some, things

MISSING = ("", "nan", "na", "n/a", "null", "none", "-")
"""How cells say that there is nothing."""

_DASHES = re.compile(r"[_\u2010-\u2015\u2212]")


def texts_of(column: pd.Series) -> pd.Series:
    """Return the cells as plain texts; empty where there is nothing."""
    texts = column.astype("string").fillna("").tolist()
    found = {text: plain(text) for text in set(texts)}
    return pd.Series([found[text] for text in texts], column.index, object, column.name)


def as_written(column: pd.Series) -> pd.Series:
    """Return the cells as texts without blanks around them, in the Unicode form that they have."""
    return column.astype("string").fillna("").str.strip().astype(object)


def numbers_of(given: pd.Series) -> dict[str, Any]:
    """Return the numbers, NaN where there is none, and whether text stands there instead."""
    if pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_bool_dtype(given):
        return {"value": given.astype(float), "text": False if given.empty else np.zeros(len(given), dtype=bool)}
    texts = texts_of(given)
    missing = texts.str.lower().isin(MISSING)
    numbers = pd.to_numeric(texts.mask(missing), errors="coerce").astype(float)
    return {"value": numbers, "text": (numbers.isna() & ~missing).to_numpy()}


def numbered(column: pd.Series) -> pd.Series:
    """Return the names of repeats; `1`, `1.0` and `01` are one."""
    texts = texts_of(column)
    found = {text: one_number(text) for text in set(texts)}
    return pd.Series([found[text] for text in texts], column.index, object, column.name)


def one_number(text: str) -> str:
    """Return a whole number in one form, and other texts as they are."""
    return str(int(float(text))) if re.fullmatch(r"[+-]?\d{1,15}(\.0+)?", text) else text


def spelled_alike(names: pd.Series) -> list[tuple[str, str]]:
    """Return the names whose spelling another one has, each with the first that has it."""
    first: dict[str, str] = {}
    pairs = [(first.setdefault(_spelling(name), name), name) for name in names.unique()]
    return [pair for pair in pairs if pair[0] != pair[1]]


def _spelling(name: str) -> str:
    """What names that differ in blanks, dashes, case or the form of letters only have in common."""
    return _DASHES.sub("-", "".join(unicodedata.normalize("NFKC", plain(name)).split())).casefold()


def rows_words(index: pd.Index) -> str:
    """Write numbers of rows, such as `rows 2, 3, 4 and 5 more`."""
    return f"{things(len(index), 'row')} {some([str(row) for row in index], 3)}"


def columns_by_name(table: pd.DataFrame) -> dict[str, str]:
    """Return the columns by their names in small letters."""
    return {name.casefold(): name for name in table.columns}


def column_named(table: pd.DataFrame, given: str) -> str:
    """Return the column of a name, in capital or small letters.

    Raises:
        ScoresError: There is none.
    """
    if (column := columns_by_name(table).get(plain(given).casefold())) is None:
        raise ScoresError(f"there is no column {given!r}; the columns are {some(list(table.columns))}")
    return column


def is_number(column: pd.Series) -> bool:
    """Tell whether a column holds numbers and no text."""
    own = numbers_of(column)
    return bool(own["value"].notna().any() and not np.any(own["text"]))


def is_whole(column: pd.Series) -> bool:
    """Tell whether all numbers of a column are written without a point."""
    return not texts_of(column).str.contains(".", regex=False).any()


def is_shared(cells: pd.Series, methods: pd.Series) -> bool:
    """Tell whether several methods have the same cells, and more than one of them."""
    sets = {frozenset(own) for _, own in cells.groupby(methods, sort=False)}
    return len(sets) == 1 and methods.nunique() > 1 and len(next(iter(sets))) > 1


def follows_from(cells: pd.Series, by: pd.Series) -> bool:
    """Tell whether a column has one value for each value of another one."""
    return bool(numbered(cells).groupby(numbered(by), sort=False).nunique().max() <= 1)
