"""Anybody's table of scores as a frame (`results.records.frame`): which columns are what, and what is wrong.

One row is one run, or one run and one metric. Every fault is a `ScoresError` of one line with the number of the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from results.records.frame import EMBEDDING_KINDS
from results.spec.mlrc_constants import is_in_percent
from results.wording import some

ScoreScale = Literal["fractions", "percent", "points"]

NAMES = {
    "method": ("method", "model", "loss", "name"),
    "search": ("search", "study", "sweep"),
    "run": ("run", "seed", "rep", "trial_seed"),
    "dataset": ("dataset", "benchmark", "task"),
    "experiment": ("experiment_fingerprint",),
    "question": ("question",),
    "planned": ("planned",),
    "embeddings": ("embeddings",),
    "metric": ("metric",),
    "value": ("value",),
}
"""Names that a column of each kind may have; the first one that is there is taken."""

_EMBEDDINGS = (*EMBEDDING_KINDS, "last_epoch")
_PREFERRED = ("concatenated_map_at_r", "map_at_r", "separated_map_at_r")
_MISSING = ("", "nan", "na", "n/a", "null", "none", "-")
_PLACES = ("experiment", "question", "planned", "dataset", "method", "search", "run")
_SCORE = ("embeddings", "metric")
_ENDS: dict[ScoreScale, tuple[float, float]] = {
    "fractions": (0.0, 1.0),
    "percent": (0.0, 100.0),
    "points": (-np.finfo(float).max, np.finfo(float).max),
}


class ScoresError(ValueError):
    """A table of scores cannot be used. The message is one line that says where and what to do."""


def split(name: str) -> tuple[str, str]:
    """Return embeddings and metric of a column, such as `separated_map_at_r`."""
    kind = next((kind for kind in _EMBEDDINGS if name.startswith(f"{kind}_")), "")
    return kind, name.removeprefix(f"{kind}_") if kind else name


def texts_of(column: pd.Series) -> pd.Series:
    """Return the cells as texts without blanks around them; empty where there is nothing."""
    return column.astype("string").fillna("").str.strip().astype(object)


def roles_of(table: pd.DataFrame, method: str) -> dict[str, str]:
    """Return the column of each role that is there (`NAMES`); `method` is that of the methods, if it is given."""
    by_name = {name.casefold(): name for name in table.columns}
    roles = {role: by_name[known[0]] for role, names in NAMES.items() if (known := [n for n in names if n in by_name])}
    if method:
        if method not in table.columns:
            raise ScoresError(f"there is no column {method!r}; the columns are {some(list(table.columns))}")
        roles["method"] = method
    elif "method" in roles:
        columns = [by_name[name] for name in NAMES["method"] if name in by_name]
        # A logged loss is a number.
        texts = [name for name in columns if not pd.to_numeric(table[name], errors="coerce").notna().all()]
        roles["method"] = (texts or columns)[0]
    if "method" not in roles:
        names, there = ", ".join(NAMES["method"]), some(list(table.columns))
        raise ScoresError(
            f"no column is called {names}; one row is one run of one; name the column with --method: {there}"
        )
    return {role: name for role, name in roles.items() if role == "method" or name != roles["method"]}


def columns_of_scores(table: pd.DataFrame, roles: dict[str, str], score: str) -> list[str]:
    """Return the columns to read: those of embeddings, else the compared one and others that are named as here."""
    others = {name for names in NAMES.values() for name in names}
    free = [name for name in table.columns if name not in roles.values() and name.casefold() not in others]
    if suites := [name for name in free if split(name)[0]]:
        return suites
    counts = {name: numbers_of(table[name]) for name in free if not pd.api.types.is_bool_dtype(table[name])}
    found = [name for name, own in counts.items() if own["value"].notna().any() and 2 * own["text"].mean() <= 1]
    if not found and not score:
        # Such as 71,5 or 71.5 %: the first row is refused.
        found = [name for name in counts if texts_of(table[name]).str.match(r"-?\d").mean() > 0.5][:1]
    asked = [asked_score(list(counts), score)] if score else [name for name in _PREFERRED if name in found][:1]
    asked = asked or (found if len(found) == 1 else [])
    if not found and not asked:
        raise ScoresError(f"no column of numbers is a score; the columns are {some(list(table.columns))}")
    if not asked:
        raise ScoresError(f"several columns could be the score; name one with --score: {some(found)}")
    known = [one for one in found if is_in_percent(one)]
    return list(dict.fromkeys([*asked, *known]))


def numbers_of(given: pd.Series) -> dict[str, Any]:
    """Return the numbers, NaN where there is none, and whether text stands there instead."""
    if pd.api.types.is_numeric_dtype(given):
        return {"value": given.astype(float), "text": False if given.empty else np.zeros(len(given), dtype=bool)}
    texts = texts_of(given)
    missing = texts.str.lower().isin(_MISSING)
    numbers = pd.to_numeric(texts.mask(missing), errors="coerce").astype(float)
    return {"value": numbers, "text": (numbers.isna() & ~missing).to_numpy()}


def asked_score(names: Sequence[str], score: str) -> str:
    """Return the name of the compared score; a metric is enough where embeddings are named too."""
    if not score:
        return next((name for name in _PREFERRED if name in names), names[0])
    wanted = (score, f"concatenated_{score}", f"separated_{score}")
    if found := [name for one in wanted for name in names if name.casefold() == one.casefold()]:
        return found[0]
    raise ScoresError(f"there is no score {score!r}; there are {some(names)}")


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
    frame = long.assign(**{of: [kinds_of[name][place] for name in long["name"]] for place, of in enumerate(_SCORE)})
    unread = [name for name in table.columns if name not in (*roles.values(), *kinds_of)]
    return ReadScores(
        frame[[*_PLACES, *_SCORE, "value"]],
        asked,
        scale,
        tuple(kinds_of),
        tuple(unread),
        {(str(of[0]), str(of[1])): [*own["row"]] for of, own in left_out.groupby(["dataset", "method"], sort=False)},
    )


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
