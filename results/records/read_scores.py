"""Anybody's table of scores as a frame (`results.records.frame`): which columns are what, and what is wrong.

One row is one run, or one run and one metric. Every fault is a `ScoresError` of one line with the number of the row.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from results.records.score_columns import (
    ScoresError,
    asked_score,
    columns_of_scores,
    numbers_of,
    roles_of,
    split,
    texts_of,
)

ScoreScale = Literal["fractions", "percent", "points"]

_PLACES = ("experiment", "question", "planned", "dataset", "method", "search", "run")


@dataclass(frozen=True)
class Reading:
    """How to read a table of scores.

    Attributes:
        method: Column of the methods; empty for the first one of `NAMES`.
        score: Column (or metric) that is compared; empty for MAP@R, or for the only column of numbers.
        scale: What the scores are; None for fractions if all are within 0 and 1, else percent. Scores that are no
            percentages are `points`, of which 100 count as 1.
        lower_is_better: Whether the compared score is an error. Its sign is turned.
    """

    method: str = ""
    score: str = ""
    scale: ScoreScale | None = None
    lower_is_better: bool = False


@dataclass(frozen=True)
class ReadScores:
    """A table of scores that was read.

    Attributes:
        frame: One row per run and score, with the columns of `results.records.frame.scores` and those in which
            `reproduce export runs` writes what an experiment asks: experiment, question, planned. They are empty in
            other tables, as is `search` where none is given.
        score: The compared score's name in the table; `metric` and `embeddings` as in the frame.
        scale: What its values were taken for.
        scores: Names of all scores.
        unread: Columns that were not read.
        left_out: Numbers of the rows without the compared score, by dataset and method.
    """

    frame: pd.DataFrame
    score: str
    scale: ScoreScale
    scores: tuple[str, ...]
    unread: tuple[str, ...] = ()
    left_out: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The compared metric."""
        return split(self.score)[1]

    @property
    def embeddings(self) -> str:
        """The compared kind of embeddings."""
        return split(self.score)[0]


def read_scores(table: pd.DataFrame, reading: Reading | None = None) -> ReadScores:
    """Read a table of scores. The index has the numbers of its rows for messages.

    Raises:
        ScoresError: A column is missing, or a row cannot be used.
    """
    reading = reading or Reading()
    table = table.rename(columns=lambda name: str(name).strip())
    if table.empty:
        raise ScoresError("there are no rows; give one to every run, below a line with the names of the columns")
    if twice := sorted(set(table.columns[table.columns.duplicated()])):
        raise ScoresError(f"two columns are called {twice[0]!r}; rename one")
    roles = roles_of(table, reading.method)
    places = _places(table, roles)
    if "metric" in roles and "value" in roles:
        long = places.assign(name=texts_of(table[roles["metric"]]), given=table[roles["value"]])
        if "embeddings" in roles:
            kinds = texts_of(table[roles["embeddings"]])
            long["name"] = [f"{kind}_{name}" if kind else name for kind, name in zip(kinds, long["name"], strict=True)]
    else:
        columns = columns_of_scores(table, roles, reading.score)
        parts = [places.assign(name=name, given=table[name]) for name in columns]
        long = pd.concat(parts, ignore_index=True)
    long = long.assign(**numbers_of(long["given"]))
    asked = asked_score(list(dict.fromkeys(long["name"])), reading.score)
    left_out = long[(long["name"] == asked) & long["value"].isna() & ~long["text"]]
    long, scale = _scaled(long, asked, reading)
    _check_repeats(long, "run" in roles)
    kinds_of = {name: split(name) for name in dict.fromkeys(long["name"])}
    frame = long.assign(
        embeddings=[kinds_of[name][0] for name in long["name"]], metric=[kinds_of[name][1] for name in long["name"]]
    )
    unread = [name for name in table.columns if name not in (*roles.values(), *kinds_of)]
    return ReadScores(
        frame[[*_PLACES, "embeddings", "metric", "value"]],
        asked,
        scale,
        tuple(kinds_of),
        tuple(unread),
        _rows_by_method(left_out),
    )


def _rows_by_method(frame: pd.DataFrame) -> dict[tuple[str, str], list[int]]:
    rows: dict[tuple[str, str], list[int]] = {}
    for dataset, method, row in zip(frame["dataset"], frame["method"], frame["row"], strict=True):
        rows.setdefault((dataset, method), []).append(row)
    return rows


def _places(table: pd.DataFrame, roles: dict[str, str]) -> pd.DataFrame:
    """Number, experiment, dataset, method, search and run of every row, as texts."""
    places = pd.DataFrame({"row": table.index}, index=table.index)
    for role in _PLACES:
        places[role] = texts_of(table[roles[role]]) if role in roles else ""
        empty = places.loc[places[role] == "", "row"]
        if role in roles and role in ("method", "search", "dataset") and len(empty):
            remedy = "" if role == "method" else ", or leave the column out"
            raise ScoresError(f"row {empty.iloc[0]}: there is no {role} in {roles[role]!r}; fill it in{remedy}")
    _check_spelling(places)
    if "run" not in roles:
        keys = ["experiment", "dataset", "method", "search"]
        if "metric" in roles and "value" in roles:
            keys.append("metric")
            places["metric"] = texts_of(table[roles["metric"]])
        places["run"] = (places.groupby(keys).cumcount() + 1).astype(str)
    return places


def _check_spelling(places: pd.DataFrame) -> None:
    """Refuse two spellings of one method that differ in blanks or case only."""
    seen: dict[str, tuple[str, int]] = {}
    first = places.drop_duplicates("method")
    for method, row in zip(first["method"], first["row"], strict=True):
        other, at = seen.setdefault("".join(method.split()).casefold(), (method, row))
        if other != method:
            raise ScoresError(f"rows {at} and {row}: {other!r} and {method!r} differ in blanks or case only; write one")


def _scaled(long: pd.DataFrame, asked: str, reading: Reading) -> tuple[pd.DataFrame, ScoreScale]:
    """The rows with a score, as fractions of 1, and the scale of the asked one; others that fit no scale are left."""
    parts, scale_of_asked = [], reading.scale
    for name, own in long.groupby("name", sort=False):
        if name == asked and own["text"].any():
            row, text = own[own["text"]][["row", "given"]].iloc[0]
            remedy = "write a point in place of the comma" if "," in str(text) else "write the number alone"
            raise ScoresError(f"row {row}: {str(text).strip()!r} in {name!r} is no number; {remedy}")
        own = own[own["value"].notna()]
        scale = _scale_of(own["value"], reading.scale)
        if name == asked:
            if own.empty:
                raise ScoresError(f"no row has a number in {name!r}")
            if scale is None:
                _refuse(own, str(name), reading.scale)
            scale_of_asked = scale
        if scale is None or own.empty:
            continue
        value = own["value"] if scale == "fractions" else own["value"] / 100
        parts.append(own.assign(value=-value if name == asked and reading.lower_is_better else value))
    assert scale_of_asked is not None
    return pd.concat(parts, ignore_index=True), scale_of_asked


_ENDS: dict[ScoreScale, tuple[float, float]] = {
    "fractions": (0.0, 1.0),
    "percent": (0.0, 100.0),
    "points": (-np.finfo(float).max, np.finfo(float).max),
}


def _scale_of(values: pd.Series, given: ScoreScale | None) -> ScoreScale | None:
    for scale in [given] if given else ("fractions", "percent"):
        low, high = _ENDS[scale]
        if values.between(low, high).all():
            return scale
    return None


def _refuse(own: pd.DataFrame, name: str, given: ScoreScale | None) -> None:
    low, high = _ENDS[given or "percent"]
    first = own[~own["value"].between(low, high)].iloc[0]
    row, value = first["row"], first["value"]
    if np.isinf(value):
        raise ScoresError(f"row {row}: {value} in {name!r} is no score; write the number, or leave the cell empty")
    remedy = "" if given else "; if the scores are no percentages, add --scale points"
    raise ScoresError(f"row {row}: {value:g} in {name!r} is not within 0 and {high:g}{remedy}")


def _check_repeats(long: pd.DataFrame, has_runs: bool) -> None:
    keys = ["experiment", "dataset", "method", "search", "run", "name"]
    again = long[long.duplicated(keys)]
    if not has_runs or again.empty:
        return
    first = long[(long[keys] == again.iloc[0][keys]).all(axis=1)].iloc[0]
    where = ", ".join(f"{key} {first[key]}" for key in ("method", "dataset", "search", "run") if first[key])
    raise ScoresError(
        f"rows {first['row']} and {again.iloc[0]['row']} are both {where}; number the runs apart, or leave one out"
    )
