"""Which score is compared, and whether it is a mean with what stands behind it."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from results.reading.cells import columns_by_name, is_number, is_shared, numbers_of, rows_words, texts_of
from results.reading.columns import (
    METRICS,
    NOTES,
    PARTS_OF_DATA,
    ROLES,
    ROW,
    TESTED_ON,
    TRAINED_ON,
    VALUES,
    is_number_of_runs,
    is_score,
    is_setting,
    is_size,
    is_time,
    plain,
    spread_of,
    words_of,
)
from results.reading.known import Known, columns_of
from results.reading.one_dataset import independent_columns
from results.reading.scores_table import FEWEST_DATASETS, AskedError, ScoresError
from results.wording import some

PREFERRED = ("concatenated_map_at_r", "map_at_r", "separated_map_at_r")
"""Scores that are compared where none is named and several are there."""


def column_of_metrics(table: pd.DataFrame) -> str:
    """Return the column that names the metric of a row, where another one has its value; empty if there is none."""
    by_name = columns_by_name(table)
    name = next((by_name[name] for name in METRICS if name in by_name), "")
    if not name or is_number(table[name]) or not any(value in by_name for value in VALUES):
        return ""
    metrics = texts_of(table[name]).unique()
    return name if "value" in by_name or 2 * sum(map(is_score, metrics)) > len(metrics) else ""


def with_score(known: Known) -> Known:
    """Find the compared score, and further ones.

    Raises:
        AskedError: Several columns could be the score.
        ScoresError: No column of numbers is, or there is none of the given name.
    """
    table, asked = known.table, plain(known.reading.score)
    if known.metric:
        names = list(dict.fromkeys(texts_of(table[known.metric])))
        score = _asked_score(known, names, asked, names)
        return replace(known, score=score, others=tuple(name for name in names if name != score))
    free = [name for name in table.columns if name not in {*known.claimed, ROW}]
    counts = {name: numbers_of(table[name]) for name in free if not pd.api.types.is_bool_dtype(table[name])}
    numbers = [n for n, own in counts.items() if own["value"].notna().any() and 2 * np.mean(own["text"]) <= 1]
    spreads = {spread_of(known.by_name, name)[0] for name in numbers} - {""}
    numbers = [name for name in numbers if name not in spreads]
    likely = _likely_scores(numbers, plain(known.reading.best_of).casefold())
    if not likely and not asked:
        # Such as 71,5 or 71.5 %: the first row is refused.
        words = [name for name in counts if not is_setting(name)]
        likely = [name for name in words if texts_of(table[name]).str.match(r"-?\d").mean() > 0.5][:1]
    if not likely and not asked:
        raise ScoresError(f"no column of numbers is a score; the columns are {some(list(table.columns))}")
    score = _asked_score(known, [known.melted] if known.melted in likely else likely, asked, list(counts))
    others = tuple(name for name in numbers if name != score)
    return replace(known, score=score, others=others).unread(spreads, "a deviation")


def _likely_scores(numbers: Sequence[str], chooses: str) -> list[str]:
    """The columns of numbers that are no settings and, where others are left, no counts and no times."""
    likely = [name for name in numbers if not is_setting(name) and not NOTES.fullmatch(name)]
    for is_none in (
        lambda name: words_of(name)[-1:] == ["id"],
        lambda name: is_number_of_runs(name) or is_size(name),
        lambda name: name.casefold() in ROLES["method"][0],
        lambda name: name.casefold() == chooses,
        is_time,
    ):
        likely = [name for name in likely if not is_none(name)] or likely
    return likely


def _asked_score(known: Known, likely: Sequence[str], asked: str, names: Sequence[str]) -> str:
    if asked:
        if same := [name for name in names if name.casefold() == asked.casefold()]:
            return same[0]
        raise ScoresError(f"there is no score {asked!r}; there are {some(list(likely or names))}")
    if one := [name for name in PREFERRED if name in likely] or (likely if len(likely) == 1 else []):
        return one[0]
    if one := _scores_by_name(likely):
        return one[0]
    summed = [name for name in likely if spread_of(known.by_name, name)[0]]
    if len(summed) == 1:
        return summed[0]
    methods = texts_of(known.table[known.method])
    shared = [name for name in likely if name in known.table and is_shared(texts_of(known.table[name]), methods)]
    measured = [name for name in summed or likely if name not in shared]
    measured.sort(key=lambda name: "normalized" not in words_of(name))  # Of several metrics comparable.
    raise AskedError(
        f"several columns could be the score; name one with --score: {some(list(likely))}",
        score=(measured or likely)[0],
    )


def _scores_by_name(likely: Sequence[str]) -> list[str]:
    """The columns with names of scores: of tests, if there are some, and those that say the whole."""
    named = [name for name in likely if is_score(name)]
    if len(named) < len(likely) and all({*words_of(name)} & TRAINED_ON for name in named):
        return []  # Not the loss of training beside what one asks about.
    tested = [name for name in named if {*words_of(name)} & TESTED_ON]
    kept = tested or [name for name in named if not {*words_of(name)} & PARTS_OF_DATA] or named
    parts = {"loss", "precision", "recall"}
    return [name for name in kept if not {*words_of(name)} & parts or re.search(r"\d", name)] or kept


def with_summary(known: Known) -> Known:
    """Find what stands behind a mean, where each method has one row on a dataset.

    Raises:
        AskedError: All means are of five or ten, and nothing says whether of runs or folds.
        ScoresError: The given number of runs is none.
    """
    spread, kind = spread_of(known.by_name, known.values)
    rows = pd.concat(known.keys(known.method, known.dataset), axis=1).loc[known.of_score.index]
    if not spread or rows.duplicated().any():
        return known
    table, number = known.table, next((name for name in known.table.columns if is_number_of_runs(name)), "")
    seeds = [name for name in columns_of(table, "run") if "seed" in words_of(name)]
    known = replace(
        known,
        runs=(),
        search="",
        block="",
        fold="",
        spread_kind=known.reading.plus_minus if kind == "±" else "se" if kind == "se" else "sd",
    )
    given = re.fullmatch(r"(\d+)?[ -]*(runs?|folds?)?", known.reading.n.casefold())
    if given is None or given[1] in ("0", "1"):
        raise ScoresError(f"--n {known.reading.n}: write the number of runs behind each mean, such as 5, or 5-folds")
    if given[1]:
        number = "n" if number == "n" else f"n = {given[1]}"
        table = table.assign(**{number: int(given[1])})
    elif not number and known.dataset and table[independent_columns(known)[0]].nunique() >= FEWEST_DATASETS:
        return known.saying(
            f"{spread} is not used: nothing says of how many runs. --n with their number answers for each "
            f"{known.dataset}."
        ).unread([spread], "of an unknown number of runs")
    elif seeds and not number:
        return (
            replace(known, runs=(seeds[0],))
            .saying(
                f"{spread} is not used: each row is of one {seeds[0]}, so it is no deviation of runs; --n takes it as "
                "one of so many."
            )
            .unread([spread], "of one run, such as over images")
        )
    folds = _folds_behind(given[2] or _what_n_are(number, known.score), table, number)
    # A score that is no number is refused where it is read.
    lacking = (texts_of(table[spread]) == "") & ~numbers_of(table[known.values])["text"]
    known = replace(known, table=table, spread=spread, number=number, folds_behind=folds)
    if not lacking.any() or lacking.all():
        return known
    known = replace(known, table=table[~lacking])
    return known.saying(f"Left out: {rows_words(table.index[lacking])} (no {spread}).")


def _what_n_are(number: str, score: str) -> str:
    """What a number behind means counts by its name: folds, runs, or empty."""
    named = number.casefold()
    if "cv" in words_of(score):
        return "folds"
    if "run" in named or "seed" in named or number.startswith("n = "):
        return "runs"
    return "folds" if "fold" in named else ""


def _folds_behind(said: str, table: pd.DataFrame, number: str) -> int:
    """The number of folds behind each mean, whose deviations are none of runs; asks where all have five or ten."""
    counts = {*numbers_of(table[number])["value"].dropna()} if number else {-1.0}
    if not said and len(counts) == 1 and counts <= {5.0, 10.0}:
        raise AskedError(
            f"all means have {number} = {min(counts):g}: --n runs if these are runs, --n folds if they are "
            "folds of a cross-validation, which share training data",
            n="folds",
        )
    return int(min(counts)) if said.startswith("fold") and len(counts) == 1 else 0
