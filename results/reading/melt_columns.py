"""Columns that become rows: each is a method, a dataset, or a repeat such as `seed0`."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from results.reading.cells import is_number, is_whole, numbers_of
from results.reading.columns import (
    NOTES,
    ROW,
    is_difference,
    is_number_of_runs,
    is_only_time,
    is_score,
    is_setting,
    is_size,
    is_summary,
    is_time,
    metric_in,
    plain,
    spread_of,
)
from results.reading.known import Known
from results.reading.scores_table import COLUMNS, ScoresError, option
from results.wording import listed, some

_ROWS_ARE_METHODS = ("method", "method_name", "loss", "loss_name", "algorithm", "classifier")
"""Names of columns beside which no other column is a method. Other names can name datasets in wide tables."""

_REPEAT_IN_NAME = re.compile(r"(seed|run|rep|fold|split|trial)[ _-]?(\d+)([ _.-].*)?")


def columns_of_numbers(known: Known) -> list[str]:
    """Return the free columns of numbers, without deviations of others."""
    spreads = {spread_of(known.by_name, name)[0] for name in known.table.columns}
    return [name for name in known.free if name not in {ROW, *spreads} and is_number(known.table[name])]


def methods_in_columns(numbers: Sequence[str]) -> list[str]:
    """Return the columns that are methods by their names: no scores, times, settings, counts or summaries.

    Where several begin or end with one score, as `rmse_lstm` and `rmse_arima`, these are.
    """
    by_score = Counter(filter(None, map(metric_in, numbers)))
    score, count = next(iter(by_score.most_common(1)), ("", 0))
    if count > 1:
        return [name for name in numbers if metric_in(name) == score]
    return [name for name in numbers if not _is_no_method(name)]


def _is_no_method(name: str) -> bool:
    none = (is_score, is_only_time, is_summary, is_setting, is_size, is_number_of_runs, is_difference, NOTES.fullmatch)
    return any(is_none(name) for is_none in none)


def metric_of_all(names: Sequence[str]) -> str:
    """Return the one metric that names of columns begin or end with; empty for several, or none."""
    metrics = {metric_in(name) for name in names}
    return metrics.pop() if len(metrics) == 1 else ""


def with_columns_as(known: Known, role: Literal["method", "dataset"]) -> Known:
    """Turn columns of numbers (or of `71.5 ± 0.4`) into rows: each is a method, or a dataset.

    Raises:
        ScoresError: The rows are methods, fewer than two columns are, a cell is no number, or columns are numbered.
    """
    table, numbers = known.table, columns_of_numbers(known)
    names = methods_in_columns(numbers)
    others = [name for name in numbers if name not in names]
    planned = [n for n in others if is_setting(n) or (not _is_no_method(n) and is_whole(table[n]))]
    others = [name for name in others if name not in planned or table[name].nunique() == 1]
    _check_columns_as(known, role, names, others)
    if sums := [name for name in others if is_summary(name)]:
        known = known.saying(f"Left out: the columns {listed(sums)}, which sum up others.")
    known = known.unread([name for name in others if not is_number_of_runs(name)], f"no {role}")
    if role == "method" and not known.dataset and ROW in table.columns:
        table, known = table.rename(columns={ROW: "dataset"}), replace(known, dataset="dataset")
    score = metric_of_all(names) or "score"
    found: dict[str, Any] = {role: role, "table": _stacked(table, names, role, names, score)}
    return replace(known, melted=score, wide=role == "method", **found)


def _check_columns_as(known: Known, role: str, names: Sequence[str], others: Sequence[str]) -> None:
    table, asked = known.table, option(role, COLUMNS)
    named = [name for name in table.columns if name.casefold() in _ROWS_ARE_METHODS and name != known.dataset]
    if role == "method" and (wrong := next((name for name in named if not is_number(table[name])), "")):
        raise ScoresError(
            f"{asked}: the rows are methods, by the column {wrong!r}; turn the table around, so that each "
            f"column of numbers is a method: in pandas, table.set_index({wrong!r}).T.rename_axis('seed')"
        )
    known_names = {*names, *others, *known.claimed, ROW}
    for name in (one for one in table.columns if one not in known_names and not is_number_of_runs(one)):
        texts = numbers_of(table[name])["text"]
        if 0 < np.mean(texts) <= 0.5:
            row = table.index[texts][0]
            raise ScoresError(
                f"{asked}: row {row}: {plain(str(table.loc[row, name]))!r} in {name!r} is no number; leave the "
                "row or the column out"
            )
    if len(names) < 2:
        raise ScoresError(
            f"{asked}: fewer than two columns of numbers are {role}s; scores, times, settings, deviations and "
            f"summaries are none: {some(list(table.columns))}"
        )
    if all(re.fullmatch(r"\d+", name) for name in names):
        raise ScoresError(
            f"the columns {some(names, 3)} are numbered, as repeats are; write the names of the {role}s, or one "
            "row for each repeat"
        )


def with_columns_as_repeats(known: Known) -> Known:
    """Turn columns such as `seed0`, `seed1`, or scikit-learn's `split0_test_score`, into rows, if there are any."""
    numbers, found = columns_of_numbers(known), dict[tuple[str, str], dict[str, str]]()
    for name in numbers:
        if match := _REPEAT_IN_NAME.fullmatch(name.casefold()):
            role = "fold" if match[1] == "split" and match[3] else match[1]
            found.setdefault((role, match[3] or ""), {})[name] = match[2]
    several = [key for key, names in found.items() if len(names) > 1 and key[0] not in known.by_name]
    if not several or known.reading.score:
        return known
    role, suffix = max(several, key=lambda key: "test" in key[1])  # Else the first.
    names = found[role, suffix]
    gone = [n for n in numbers if n not in names and (is_score(n) or is_summary(n) or is_time(n))]
    score = suffix.strip("_ .-") or "score"
    table = _stacked(known.table, list(names), role, list(names.values()), score)
    return replace(known, table=table, melted=score).unread(gone, "beside the single scores")


def _stacked(table: pd.DataFrame, names: Sequence[str], role: str, values: Sequence[str], score: str) -> pd.DataFrame:
    """A table with a row for each of some columns: a column of the role has their values, another their scores."""
    spreads = {name: f"{name} ±" for name in names if f"{name} ±" in table.columns}
    kept = table.drop(columns=[*names, *spreads.values()])
    parts = []
    for name, value in zip(names, values, strict=True):
        scores = {score: table[name], **({f"{score} ±": table[spreads[name]]} if name in spreads else {})}
        rows = [f"{row} ({name})" for row in table.index]
        parts.append(kept.assign(**{role: value}, **scores).set_axis(rows))
    return pd.concat(parts)
