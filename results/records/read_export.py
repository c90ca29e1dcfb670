"""Reads what `reproduce export runs` wrote, and own rows beside it."""

from collections.abc import Sequence

import pandas as pd

from results.records.account import rows_words
from results.records.columns import Reading, ScoresError, numbers_of, texts_of
from results.records.frame import EXPERIMENT, PLANNED, QUESTION
from results.records.score_scale import scaled
from results.records.scores_table import PLACES, ReadScores, check_filled, check_texts, left_out_rows, split
from results.wording import counted, some


def read_export(table: pd.DataFrame, reading: Reading) -> ReadScores:
    """Read what `reproduce export runs` wrote; own rows join the experiment on their dataset."""
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
    said = _fill_searches(places)
    check_filled(places, "search", "search")
    again = places[places.duplicated(["experiment", "dataset", "method", "search", "run"])]
    if len(again):
        row = again.iloc[0]
        raise ScoresError(
            f"row {row['row']}: run {row['run']} of search {row['search']} of {row['method']} is there twice; number "
            "the runs apart, or leave one out"
        )
    names = [name for name in table.columns if split(name)[0] and is_score(table[name])]
    long = pd.concat([places.assign(name=name, given=table[name]) for name in names], ignore_index=True)
    long = long.assign(**numbers_of(long["given"]))
    asked = _asked_of_export(names, reading.score)
    left_out = left_out_rows(long, asked)
    check_texts(long, asked)
    long, scale = scaled(long, asked, "fractions", lower=False)
    kinds = {name: split(name) for name in names}
    frame = long.assign(
        embeddings=[kinds[name][0] for name in long["name"]], metric=[kinds[name][1] for name in long["name"]]
    )
    return ReadScores(frame[[*PLACES, "embeddings", "metric", "value"]], asked, scale, tuple(names), said=said, left_out=left_out)


def _fill_searches(places: pd.DataFrame) -> tuple[str, ...]:
    """Take the runs of a user's own methods that name no search as those of one, and number them if nothing does."""
    ours = places["planned"] != ""
    several = (places[ours].groupby(["experiment", "method"])["search"].nunique() > 1).any()
    said = []
    for (_, method), rows in places[~places["method"].isin(places.loc[ours, "method"])].groupby(
        ["dataset", "method"], sort=False
    ):
        if (rows["search"] == "").all():
            places.loc[rows.index, "search"] = "1"
            if several:
                said.append(
                    f"{method} names no search, so its {counted(len(rows), 'run')} count as those of one; fill in "
                    "search if they are of several."
                )
        if (rows["run"] == "").all():
            places.loc[rows.index, "run"] = [str(number) for number in range(1, len(rows) + 1)]
    return tuple(said)


def is_score(column: pd.Series) -> bool:
    """Tell whether a column has a number at all."""
    return bool(numbers_of(column)["value"].notna().any())


def _asked_of_export(names: Sequence[str], score: str) -> str:
    """Return the compared score of an export; a metric is enough."""
    wanted = [score, f"concatenated_{score}", f"separated_{score}"] if score else ["concatenated_map_at_r"]
    if found := [name for one in wanted for name in names if name.casefold() == one.casefold()]:
        return found[0]
    if score:
        raise ScoresError(f"there is no score {score!r}; there are {some(names)}")
    return names[0]
