"""The frame of a table whose columns are known: one row per run and score."""

import pandas as pd

from results.reading.cells import numbers_of, spelled_alike, texts_of
from results.reading.columns import HELD_UP
from results.reading.known import Known
from results.reading.one_dataset import with_merged_datasets
from results.reading.scores_table import PLACES, ScoresError, check_filled, split
from results.spec.mlrc_constants import HEADLINE_METRICS


def with_places(known: Known) -> tuple[Known, pd.DataFrame]:
    """Return number, dataset, method, search, run and fold of every row, as texts.

    Raises:
        ScoresError: One is empty, or two names differ in little.
    """
    table = known.table
    places = pd.DataFrame({"row": table.index, "at": table.index}, index=table.index)
    for role in ("experiment", "question", "planned", "dataset", "search"):
        places[role] = ""
    places["method"] = texts_of(table[known.method])
    check_filled(places, "method", known.method)
    for one, other in spelled_alike(places["method"]):
        rows = [places.index[places["method"] == name][0] for name in (one, other)]
        raise ScoresError(
            f"rows {rows[0]} and {rows[1]}: {one!r} and {other!r} differ in blanks, dashes or case only; write one"
        )
    if known.dataset:
        known, places["dataset"] = with_merged_datasets(known)
        check_filled(places, "dataset", known.dataset)
    if known.search:
        (places["search"],) = known.keys(known.search)
        check_filled(places, "search", known.search)
    if HELD_UP in table:
        places["held_up"] = texts_of(table[HELD_UP])
    places["fold"] = known.keys(known.fold)[0] if known.fold else ""
    if runs := known.keys(known.block) or known.keys(*known.runs, known.fold):
        places["run"] = pd.concat(runs, axis=1).agg(" ".join, axis=1)
    else:
        keys = [places["dataset"], places["method"], places["search"], *known.keys(known.metric)]
        places["run"] = (places.groupby(keys).cumcount() + 1).astype(str)
    return known, places


def long_frame(known: Known, places: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run and score: the compared one, and further ones of the suite's names.

    Raises:
        ScoresError: A deviation, or a number of runs, is none.
    """
    table = known.table
    if known.metric:
        long = places.assign(name=texts_of(table[known.metric]), given=table[known.values])
    else:
        ours = [one for one in known.others if split(one)[1] in HEADLINE_METRICS]
        long = pd.concat([places.assign(name=name, given=table[name]) for name in (known.score, *ours)])
    long = long.assign(**numbers_of(long["given"]))
    if known.spread:
        spread, number = _summary(known)
        long = long.assign(deviation=spread.reindex(long["at"]).to_numpy(), n=number.reindex(long["at"]).to_numpy())
    return long.reset_index(drop=True)


def _summary(known: Known) -> tuple[pd.Series, pd.Series]:
    """The deviation of the runs behind each mean, and their number; the latter is 0 where it is not known."""
    table = known.table
    spread = numbers_of(table[known.spread])["value"]
    number = numbers_of(table[known.number])["value"] if known.number else pd.Series(0.0, spread.index)
    scored = numbers_of(table[known.values])["value"].notna()
    bad = (spread.isna() | (spread < 0) | (~(number >= 1) & bool(known.number)))[scored]
    if bad.any():
        counts = f" and {known.number!r} (1 or more) as numbers" if known.number else " as a number"
        raise ScoresError(f"row {bad[bad].index[0]}: give {known.spread!r} (0 or more){counts}")
    return spread * number**0.5 if known.spread_kind == "se" and known.number else spread, number


def frame_of(long: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `ReadScores.frame` alone."""
    values = [name for name in ("value", "deviation", "n", "held_up") if name in long]
    return long.assign(metric=long["name"], embeddings="")[[*PLACES, "embeddings", "metric", *values]].reset_index(
        drop=True
    )


def roles_of(known: Known, column: str) -> dict[str, str]:
    """Return the columns that were read, by what they are. `column` says what a row repeats."""
    runs = " and ".join(known.runs) if column not in (known.block, known.search) else ""
    roles = {
        **{"method": known.method, "dataset": known.dataset, "search": known.search, "paired": known.block},
        **{"fold": known.fold, "run": runs, "score": known.score, "deviation": known.spread, "n": known.number},
    }
    return {role: name for role, name in roles.items() if name}
