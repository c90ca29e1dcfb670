"""The columns of anybody's table of scores: which are what, and which one is compared."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from results.records.frame import EMBEDDING_KINDS
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import joined

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
_MOST_NAMED = 8


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
            raise ScoresError(f"there is no column {method!r}; the columns are {_some(list(table.columns))}")
        roles["method"] = method
    elif "method" in roles:
        columns = [by_name[name] for name in NAMES["method"] if name in by_name]
        # A logged loss is a number.
        texts = [name for name in columns if not pd.to_numeric(table[name], errors="coerce").notna().all()]
        roles["method"] = (texts or columns)[0]
    if "method" not in roles:
        names, there = ", ".join(NAMES["method"]), _some(list(table.columns))
        raise ScoresError(
            f"no column is called {names}; one row is one run of one; name the column with --method: {there}"
        )
    return {role: name for role, name in roles.items() if role == "method" or name != roles["method"]}


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{joined(names[:_MOST_NAMED])}{more}"


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
        raise ScoresError(f"no column of numbers is a score; the columns are {_some(list(table.columns))}")
    if not asked:
        raise ScoresError(f"several columns could be the score; name one with --score: {_some(found)}")
    return [*asked, *(name for name in found if _is_known(name) and name not in asked)]


def _is_known(metric: str) -> bool:
    return metric in HEADLINE_METRICS or metric.startswith(("recall@", "map@", "nmi"))


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
    raise ScoresError(f"there is no score {score!r}; there are {_some(names)}")
