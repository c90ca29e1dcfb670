"""Anybody's table of scores as a frame (`results.records.frame`), and what a row of it repeats.

One row is one run, or one run and one metric, or a summary of runs. Every fault is a `ScoresError` of one line with the
number of the row.
"""

from typing import get_args

import pandas as pd

from results.records.account import Account, account_of
from results.records.columns import (
    LOWER,
    SCALE,
    Reading,
    ScoreScale,
    ScoresError,
    means_lower,
    melted,
    numbers_of,
    spelling,
    texts_of,
    tidy,
    with_spreads,
)
from results.records.frame import OURS
from results.records.read_export import read_export
from results.records.row_checks import check_columns, check_repeats, merged_datasets, take_rows, without_copied_datasets
from results.records.score_scale import scaled
from results.records.scores_table import PLACES, ReadScores, Repeats, check_filled, check_texts, left_out_rows, split
from results.spec.mlrc_constants import is_in_percent

_OF_RESULTS = frozenset({"method", "variant", "metric", "ci95_half_width", "unit", "rank_low", "rank_high"})
"""Columns of the suite's own tables of results, whose rows are means and no runs."""


def read_scores(table: pd.DataFrame, reading: Reading | None = None) -> ReadScores:
    """Read a table of scores. The index has the numbers of its rows for messages.

    Raises:
        ScoresError: A column is missing or not accounted for, or a row cannot be used.
    """
    reading = reading or Reading()
    table = tidy(table)
    if {*table.columns} >= OURS:
        return read_export(table, reading)
    if {*table.columns} >= _OF_RESULTS:
        raise ScoresError(
            "this is a table of results, which the suite wrote; give the scores of the runs that it was made from, or "
            "for those of a store the folder of `reproduce export runs`"
        )
    table = with_spreads(table)
    table = melted(table) if reading.wide else table
    found = account_of(table, reading)
    take_rows(found)
    check_columns(found)
    check_repeats(found)
    places = _places(found)
    long = _long(found, places)
    if found.dataset:
        kept = without_copied_datasets(
            found, places["dataset"], long[long["name"] == found.score].set_index("at")["value"]
        )
        long = long[kept.reindex(long["at"]).to_numpy()]
    lower = _direction(found)
    left_out = left_out_rows(long, found.score)
    check_texts(long, found.score)
    given = reading.scale or next((one for one in get_args(ScoreScale) if one == found.declared(SCALE)), None)
    long, scale = scaled(long, found.score, given, lower=lower)
    repeats, column = _what_repeats(found, long[long["name"] == found.score])
    folds = places["fold"].nunique() if repeats == "fold" else 0
    frame = long.assign(metric=long["name"], embeddings="")
    columns = [*PLACES, "embeddings", "metric", "value", *(("deviation", "n") if repeats == "summary" else ())]
    return ReadScores(
        frame[columns].reset_index(drop=True),
        found.score,
        scale,
        tuple(dict.fromkeys(long["name"])),
        repeats=repeats,
        column=column,
        folds=folds,
        lower_is_better=lower,
        unread=tuple(name for name in found.unread if name not in set(long["name"])),
        said=tuple(found.said),
        left_out=left_out,
    )


def _places(found: Account) -> pd.DataFrame:
    """Number, dataset, method, search, run and fold of every row, as texts."""
    table = found.table
    places = pd.DataFrame({"row": table.index, "at": table.index}, index=table.index)
    for role in ("experiment", "question", "planned", "dataset", "search"):
        places[role] = ""
    places["method"] = texts_of(table[found.method])
    check_filled(places, "method", found.method)
    _check_spelling(places)
    if found.dataset:
        places["dataset"] = merged_datasets(found)
        check_filled(places, "dataset", found.dataset)
    if found.search:
        (places["search"],) = found.keys(found.search)
        check_filled(places, "search", found.search)
    places["fold"] = found.keys(found.fold)[0] if found.fold else ""
    runs = found.keys(found.block) if found.block else found.keys(*found.runs, found.fold)
    if runs:
        places["run"] = pd.concat(runs, axis=1).agg(" ".join, axis=1)
    else:
        keys = ["dataset", "method", "search"]
        if found.metric:
            keys.append("metric")
            places["metric"] = texts_of(table[found.metric])
        places["run"] = (places.groupby(keys).cumcount() + 1).astype(str)
    return places


def _check_spelling(places: pd.DataFrame) -> None:
    """Refuse two spellings of one method that differ in blanks, dashes or case only."""
    seen: dict[str, tuple[str, int]] = {}
    first = places.drop_duplicates("method")
    for method, row in zip(first["method"], first["row"], strict=True):
        other, at = seen.setdefault(spelling(method), (method, row))
        if other != method:
            raise ScoresError(
                f"rows {at} and {row}: {other!r} and {method!r} differ in blanks, dashes or case only; write one"
            )


def _long(found: Account, places: pd.DataFrame) -> pd.DataFrame:
    """One row per run and score: the compared one, and further ones of the suite's names."""
    table = found.table
    places = places.drop(columns="metric", errors="ignore")
    if found.metric:
        long = places.assign(name=texts_of(table[found.metric]), given=table[found.by_name["value"]])
    else:
        # Scores of this suite stand beside it.
        known = [one for one in found.others if is_in_percent(split(one)[1])]
        long = pd.concat([places.assign(name=name, given=table[name]) for name in (found.score, *known)])
    long = long.assign(**numbers_of(long["given"]))
    if found.spread:
        spread, number = (numbers_of(table[name])["value"] for name in (found.spread, found.number))
        scored = numbers_of(table[found.by_name["value"] if found.metric else found.score])["value"].notna()
        bad = (spread.isna() | (spread < 0) | ~(number >= 1))[scored]
        if bad.any():
            row = bad[bad].index[0]
            raise ScoresError(
                f"row {row}: give {found.spread!r} (0 or more) and {found.number!r} (1 or more) as numbers"
            )
        spread = spread * number**0.5 if found.spread_kind == "se" else spread
        long = long.assign(deviation=spread.reindex(long["at"]).to_numpy(), n=number.reindex(long["at"]).to_numpy())
    return long.reset_index(drop=True)


def _direction(found: Account) -> bool:
    """Whether a lower score is better; a name that says so is asked about."""
    if found.reading.lower_is_better is not None:
        return found.reading.lower_is_better
    if said := found.declared(LOWER):
        return said in ("true", "1", "yes")
    if means_lower(found.score):
        raise ScoresError(
            f"{found.score} reads as better when lower; add --lower-is-better, or --higher-is-better if it is not"
        )
    return False


def _what_repeats(found: Account, own: pd.DataFrame) -> tuple[Repeats, str]:
    if found.spread:
        return "summary", found.spread
    if found.block:
        return "block", found.block
    if found.search:
        return "search", found.search
    if found.fold:
        return "fold", found.fold
    if own["dataset"].nunique() > 1 and not own.duplicated(["dataset", "method"]).any():
        return "dataset", found.dataset
    return "run", " and ".join(found.runs)
