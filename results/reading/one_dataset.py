"""What is one dataset: spellings that differ in little, copies, and what is crossed by another column."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from results.reading.cells import follows_from, spelled_alike
from results.reading.columns import is_role
from results.reading.known import Known
from results.reading.scores_table import ScoresError
from results.wording import listed, some


def independent_columns(known: Known) -> list[str]:
    """Return the column that tells datasets apart, and the joined ones that cross it, such as the weather of an image.

    It is the one called dataset, else the one with most values.
    """
    table, parts = known.table, known.parts.get(known.dataset, ())
    free = [one for one in parts if not any(follows_from(table[one], table[by]) for by in parts if by != one)]
    if len(free) < 2:
        return [known.dataset]
    return sorted(free, key=lambda name: (not is_role(name, "dataset"), -table[name].nunique()))


def with_merged_datasets(known: Known) -> tuple[Known, pd.Series]:
    """Return the dataset of each row: one for spellings that differ in little and hold no two numbers.

    Raises:
        ScoresError: Names differ in little, and nothing numbers the rows.
    """
    (raw,) = known.keys(known.dataset)
    keys = pd.concat(known.keys(known.method, *known.repeats, known.metric), axis=1).apply(tuple, axis=1)
    for first, other in spelled_alike(raw):
        both = f"{first!r} and {other!r}"
        if not known.repeats:
            raise ScoresError(
                f"{known.dataset} {both} differ in blanks, dashes or case only; write one name, or two that differ more"
            )
        if {*keys[raw == first]} & {*keys[raw == other]}:
            known = known.saying(
                f"Two datasets, {both}, differ in blanks, dashes or case only: if they are one, write one name."
            )
        else:
            raw = raw.replace(other, first)
            known = known.saying(f"{both} are taken as one dataset.")
    return known, raw


def without_copied_datasets(known: Known, long: pd.DataFrame) -> tuple[Known, pd.DataFrame]:
    """Leave out a dataset that holds the numbers of another one."""
    own, seen, copies = long[long["name"] == known.score], dict[tuple[object, ...], str](), list[int]()
    for name, rows in own.groupby("dataset", sort=False):
        held = tuple(sorted(zip(rows["method"], rows["value"].fillna(-math.inf), strict=True)))
        if rows["value"].nunique() < 3:
            continue
        if held in seen:
            known = known.saying(f"Left out: {name} holds the same numbers as {seen[held]}.")
            copies += [*rows["at"]]
        seen.setdefault(held, str(name))
    return known, long[~long["at"].isin(copies)]


def without_unscored_datasets(known: Known, long: pd.DataFrame) -> tuple[Known, pd.DataFrame]:
    """Leave out datasets that have other scores than the compared one alone."""
    scored = {*long.loc[long["name"] == known.score, "dataset"]}
    if not (lacking := [name for name in long["dataset"].unique() if name not in scored]):
        return known, long
    known = known.saying(f"Left out: {some(lacking, 3)}, without {known.score}.")
    return known, long[~long["dataset"].isin(lacking)]


def with_one_score_each(known: Known, long: pd.DataFrame, *, logs: bool) -> tuple[Known, pd.DataFrame]:
    """Return one score for each dataset: the mean over what crosses it, such as the weathers of an image.

    Args:
        known: The table.
        long: A row for each score.
        logs: Whether ratios are compared, whose means are geometric.

    Raises:
        ScoresError: No dataset is there for all methods.
    """
    unit, *others = independent_columns(known)
    if not others:
        return known, long
    scored = long[long["value"].notna()]
    keys = [scored["name"], scored["dataset"]]
    complete = scored.groupby(keys)["method"].transform("nunique") == scored["method"].nunique()
    if not complete.any():
        raise ScoresError(
            f"no {listed([unit, *others])} is there for all methods; --where {others[0]}=VALUE keeps one of them"
        )
    lacking = sorted({*scored["dataset"]} - {*scored.loc[complete, "dataset"]})
    scored = scored[complete]
    (units,) = known.keys(unit)
    groups = scored.assign(dataset=units.reindex(scored["at"]).to_numpy()).groupby(
        ["name", "dataset", "method"], sort=False
    )
    means = groups["value"].agg(lambda own: math.exp(np.log(own).mean()) if logs else own.mean())
    known = known.saying(
        f"Each {unit} counts once, with the mean of its scores: another {' or '.join(others)} is no further "
        f"dataset.{f' Left out, since not all methods have them: {some(lacking, 3)}.' if lacking else ''}"
    ).unread(others, f"a mean over it is of each {unit}")
    return replace(known, dataset=unit), groups.first().assign(value=means).reset_index()
