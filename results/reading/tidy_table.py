"""Any frame as one of plain columns: one level of names, mean and deviation apart, percentages as fractions."""

import re

import pandas as pd

from results.reading.cells import texts_of
from results.reading.columns import ROLES, ROW, is_role, plain
from results.reading.scores_table import ScoresError

_PLUS_MINUS = re.compile(
    r"^(?P<mean>-?[\d.]+(e-?\d+)?)\s*(?:(?:±|\+/?-|\$\\pm\$|\\pm)\s*(?P<spread>-?[\d.]+(e-?\d+)?)|\((?P<inner>[\d.]+)\))$"
)


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with one level of plain names, and with the named levels of its index as columns."""
    table = table.copy(deep=False)
    if isinstance(table.columns, pd.MultiIndex):
        own = [name for name in table.columns.names if any(is_role(str(name), role) for role in ROLES)]
        if own:  # A pivoted frame, whose upper levels say what a column is of.
            stacked = table.stack(own, future_stack=True)
            table = stacked.to_frame("score") if isinstance(stacked, pd.Series) else stacked
    if isinstance(table.columns, pd.MultiIndex):
        parts = ([plain(str(part)) for part in name] for name in table.columns)
        table.columns = pd.Index([" ".join(part for part in own if part) for own in parts])
    index = table.index
    if any(name is not None for name in index.names):
        table = table.reset_index()
    elif not pd.api.types.is_numeric_dtype(index.dtype) and not isinstance(index, pd.MultiIndex):
        if "method" not in {str(name).casefold() for name in table.columns}:
            table.insert(0, "method", index)  # Rows that are named by words are named by their methods.
        table = table.reset_index(drop=True)
    if not table.index.is_unique:
        table = table.reset_index(drop=True)
    table.columns = pd.Index([plain(str(name)) for name in table.columns])
    # A file that pandas wrote has a column of row numbers without a name; one of words has the names of the rows.
    nameless = [at for at, name in enumerate(table.columns) if re.fullmatch(r"(Unnamed: \d+)?", name)]
    numbers = [at for at in nameless if _are_row_numbers(table.iloc[:, at])]
    table = table.iloc[:, [at for at in range(len(table.columns)) if at not in numbers]]
    if nameless != numbers and ROW not in table.columns:
        table = table.rename(columns={name: ROW for name in table.columns if re.fullmatch(r"(Unnamed: \d+)?", name)})
    if table.empty:
        raise ScoresError("there are no rows; give one to every run, below a line with the names of the columns")
    if twice := sorted(set(table.columns[table.columns.duplicated()])):
        what = "have no name" if twice[0] == ROW else f"are called {twice[0]!r}"
        raise ScoresError(f"two columns {what}; rename one, and write one line of names if there are two")
    return _split_cells(table)


def _are_row_numbers(column: pd.Series) -> bool:
    """Tell whether a column without a name counts rows, also those of several files one after the other."""
    texts = texts_of(column)
    if not texts.any():
        return True
    numbers = pd.to_numeric(texts, errors="coerce")
    steps = numbers.diff().fillna(1)
    first = numbers.iloc[0] <= 2  # Years are none.
    return bool(first and numbers.notna().all() and ((steps == 1) | numbers.isin([0, 1])).all())


def _split_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Split columns of `71.5 ± 0.4`, or `71.5 (0.4)`, in two, of which the second has a name that ends in ±.

    Columns of `71.5 %` become fractions.
    """
    for name in list(table.columns):
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        texts = texts_of(table[name])
        percent = texts.str.fullmatch(r"-?\d+(\.\d+)? ?%")
        if percent.any() and (percent | (texts == "")).all():
            table = table.assign(**{name: [f"{float(text[:-1]) / 100:.12g}" if text else "" for text in texts]})
            continue
        parts = texts.str.extract(_PLUS_MINUS)
        parts["spread"] = parts["spread"].fillna(parts["inner"])
        found = parts["mean"].notna()
        if 2 * found.sum() > (texts != "").sum():  # Others are rows of ranks, say, or are refused where they are read.
            table = table.assign(**{name: parts["mean"].fillna(texts), f"{name} ±": parts["spread"].fillna("")})
    return table
