"""Reads what `reproduce export runs` wrote, and own rows beside it."""

from collections.abc import Sequence

import pandas as pd

from results.reading.cells import numbers_of, rows_words, texts_of
from results.reading.rows_left_out import rows_where
from results.reading.scores_table import (
    PLACES,
    Reading,
    ReadScores,
    ScoresError,
    check_filled,
    check_texts,
    left_out_rows,
    split,
)
from results.records.frame import EXPERIMENT, OURS, PLANNED, QUESTION
from results.wording import counted, listed, some


def read_export(table: pd.DataFrame, reading: Reading) -> ReadScores:
    """Read what `reproduce export runs` wrote; own rows join the experiment on their dataset."""
    _check_options(reading)
    table, said = _without_unlisted(table)
    table = rows_where(table, reading.where)
    places = pd.DataFrame({"row": table.index, "at": table.index}, index=table.index)
    roles = {"experiment": EXPERIMENT, "question": QUESTION, "planned": PLANNED}
    for role, column in (*roles.items(), *((name, name) for name in ("dataset", "method", "search", "run"))):
        places[role] = texts_of(table[column]) if column in table.columns else ""
    for role in ("method", "dataset"):
        check_filled(places, role, role)
    for dataset, own in places.groupby("dataset", sort=False):
        known = [one for one in own["experiment"].unique() if one]
        mine = own.index[own["experiment"] == ""]
        if len(mine) and len(known) > 1:
            raise ScoresError(
                f"{rows_words(mine)}: {dataset} has {counted(len(known), 'experiment')}; write in {EXPERIMENT} which "
                "one they join"
            )
        if len(known) == 1:
            places.loc[mine, "experiment"] = known[0]
    asked = places["experiment"].isin(places.loc[places["question"] != "", "experiment"])
    said += _fill_runs(places, asked)
    if "trials" in table.columns:
        places.loc[~asked & (texts_of(table["trials"]) == "0"), "search"] = ""
    check_filled(places[asked], "search", "search")
    again = places[places.duplicated(["experiment", "dataset", "method", "search", "run"])]
    if len(again):
        row = again.iloc[0]
        raise ScoresError(
            f"row {row['row']}: run {row['run']} of search {row['search']} of {row['method']} is there twice; number "
            "the runs apart, or leave one out"
        )
    names = [name for name in table.columns if split(name)[0] and _has_numbers(table[name])]
    long = pd.concat([places.assign(name=name, given=table[name]) for name in names], ignore_index=True)
    long = long.assign(**numbers_of(long["given"]))
    score = _asked_of_export(names, reading.score)
    left_out = left_out_rows(long, score)
    check_texts(long, score)
    long = long[long["value"].notna()].reset_index(drop=True)
    _check_fractions(long[long["name"] == score], score)
    long = long[long["value"].between(0, 1).groupby(long["name"]).transform("all")].reset_index(drop=True)
    kinds = {name: split(name) for name in names}
    frame = long.assign(
        embeddings=[kinds[name][0] for name in long["name"]], metric=[kinds[name][1] for name in long["name"]]
    )
    return ReadScores(
        frame[[*PLACES, "embeddings", "metric", "value"]],
        score,
        "fractions",
        tuple(names),
        lower_is_better=bool(reading.lower_is_better),
        exported=True,
        said=said,
        left_out=left_out,
    )


_NOT_TAKEN = ("method", "dataset", "run", "search", "paired", "last", "best_of", "n")


def _check_options(reading: Reading) -> None:
    """Refuse options that say what columns are, where the export says it."""
    if given := next((name for name in _NOT_TAKEN if getattr(reading, name)), None):
        raise ScoresError(
            f"--{given.replace('_', '-')}: `reproduce export runs` wrote this table, whose columns say what a row is; "
            f"leave the option out, or the columns {listed(sorted(OURS))}"
        )
    if reading.scale not in (None, "fractions"):
        raise ScoresError(f"--scale {reading.scale}: scores of an export are fractions of 1; leave the option out")


def _without_unlisted(table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out runs that no experiment lists, which older releases exported too; own rows have no fingerprint.

    Raises:
        ScoresError: These are all.
    """
    gone = (texts_of(table["fingerprint"]) != "") & (texts_of(table[EXPERIMENT]) == "")
    if not gone.any():
        return table, ()
    if gone.all():
        raise ScoresError(f"no row is of an experiment; {EXPERIMENT} is empty in all")
    return table[~gone], (f"Left out: {rows_words(table.index[gone])}, which no experiment lists any more.",)


def _check_fractions(own: pd.DataFrame, score: str) -> None:
    """Refuse a score without numbers, and one that is no fraction."""
    if own.empty:
        raise ScoresError(f"no row has a number in {score!r}")
    outside = own[~own["value"].between(0, 1)]
    if len(outside):
        row = outside.iloc[0]
        raise ScoresError(
            f"row {row['row']}: {row['value']:g} in {score!r} is not within 0 and 1; write fractions of 1"
        )


def _fill_runs(places: pd.DataFrame, asked: pd.Series) -> tuple[str, ...]:
    """Number a user's own runs where nothing does; beside an experiment they are of one search if none is named."""
    ours = places["planned"] != ""
    several = (places[ours].groupby(["experiment", "method"])["search"].nunique() > 1).any()
    exported = {*zip(places.loc[ours, "dataset"], places.loc[ours, "method"], strict=True)}
    said = []
    for (dataset, method), rows in places.groupby(["dataset", "method"], sort=False):
        if (dataset, method) in exported:
            continue
        if (rows["run"] == "").all():
            places.loc[rows.index, "run"] = [str(number) for number in range(1, len(rows) + 1)]
        if asked[rows.index].all() and (rows["search"] == "").all():
            places.loc[rows.index, "search"] = "1"
            if several:
                said.append(
                    f"{method} names no search: {counted(len(rows), 'run')} of one, until its column search names "
                    "several."
                )
    return tuple(said)


def _has_numbers(column: pd.Series) -> bool:
    return bool(numbers_of(column)["value"].notna().any())


def _asked_of_export(names: Sequence[str], score: str) -> str:
    """Return the compared score of an export; a metric is enough."""
    wanted = [score, f"concatenated_{score}", f"separated_{score}"] if score else ["concatenated_map_at_r"]
    if found := [name for one in wanted for name in names if name.casefold() == one.casefold()]:
        return found[0]
    if score:
        raise ScoresError(f"there is no score {score!r}; there are {some(names)}")
    return names[0]
