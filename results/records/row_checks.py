"""What must hold before rows are compared: every column that varies is accounted for, and nothing counts twice.

Rows that differ in anything but their scores and what tells repeats apart (epochs, budgets, backbones, trials of a
search) are no repeats of each other.
"""

import math
import re
from collections import Counter

import numpy as np
import pandas as pd

from results.records.account import Account, rows_words
from results.records.columns import (
    COUNTERS,
    DONE,
    FAILED,
    LOWER,
    NOTES,
    REPEAT,
    ROW,
    RUN,
    SCALE,
    STATE,
    SWEEP,
    ScoresError,
    is_setting,
    means_lower,
    numbered,
    numbers_of,
    spelling,
    texts_of,
)
from results.wording import capitalized, counted


def take_rows(found: Account) -> None:
    """Take the last row of each run (`--last`), or the best trial of each search (`--best-of`)."""
    for option, given in (("--last", found.reading.last), ("--best-of", found.reading.best_of)):
        if not given:
            continue
        column, best = found.named((), given), option == "--best-of"
        if best and not found.search:
            raise ScoresError(f"--best-of {column}: name the column of the searches with --search")
        own = numbers_of(found.table[column])["value"]
        if own.isna().all():
            raise ScoresError(f"{option} {column}: the column has no numbers")
        names = (found.search,) if best else found.repeats
        falls = best and _falls(found, column)
        order = (-own if falls else own).fillna(-np.inf)
        groups = found.keys(found.method, found.dataset, *names, found.metric)
        lacking = own.isna().groupby(groups, sort=False).transform("all")
        if lacking.any():
            raise ScoresError(
                f"{option} {column}: {rows_words(found.table.index[lacking])} have no number in it, nor has another "
                f"row of their {found.search if best else 'run'}; fill it in, or leave them out"
            )
        last = found.table.index[order == order.groupby(groups, sort=False).transform("max")]
        again = pd.concat([group[last] for group in groups], axis=1).duplicated(keep=False)
        if not best and again.any():
            rows = again[again].index
            raise ScoresError(
                f"{option} {column}: {rows_words(rows)} have the last one of their runs; keep one of what differs "
                "between them with --where, or name it with --run, --paired or --dataset"
            )
        kept = found.table.loc[order.groupby(groups, sort=False).idxmax()].sort_index()
        said = f"The last {column} of each run is taken"
        tied = ""
        if best:
            found.chosen, found.runs, found.block, found.fold = True, (), "", ""
            if again.any():
                rows = capitalized(rows_words(again[again].index))
                tied = f" {rows} tie for it: the first of each {found.search} counts."
            said = f"Of each {found.search} the trial with the {'lowest' if falls else 'highest'} {column} is taken"
            if column == found.score:
                said += ", the compared score itself: such scores are too good, the more so the more trials there are"
        found.explained.add(column)
        found.said.append(f"{said} ({len(kept):,} of {counted(len(found.table), 'row')}).{tied}")
        found.table = kept


def _falls(found: Account, column: str) -> bool:
    """Whether a lower value of a column is better."""
    if column == found.score and found.reading.lower_is_better is not None:
        return found.reading.lower_is_better
    return means_lower(column)


def check_columns(found: Account) -> None:
    """Refuse columns that vary within a method and are neither repeats nor scores."""
    table, known = found.of_score(), {*found.claimed, *found.explained, found.score, found.metric}
    known |= {found.by_name["value"]} if found.metric else set()
    known |= {LOWER, SCALE, *(name for name in table.columns if name.casefold() in STATE and _are_states(table[name]))}
    free = [name for name in table.columns if name not in known]
    found.unread = tuple(free)
    if found.chosen:
        return
    groups = [key.loc[table.index] for key in found.keys(found.method, found.dataset)]
    for name in free:
        cells = numbered(table[name])
        varying = cells.groupby(groups, sort=False).transform("nunique") > 1
        if not varying.any() or not _is_unexplained(found, name, cells):
            continue
        first = varying[varying].index[0]
        same = pd.concat([group == group[first] for group in groups], axis=1).all(axis=1)
        other = cells[same & (cells != cells[first])]
        raise ScoresError(
            f"{name} varies within {groups[0][first]} (rows {first} and {other.index[0]}: {cells[first] or 'empty'}, "
            f"{other.iloc[0] or 'empty'}), so its rows are no repeats; {_remedy(found, name, other.iloc[0])}"
        )


_DATE = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"


def _are_states(column: pd.Series) -> bool:
    """Whether a column has the states of a tracker, not those of a country."""
    return set(texts_of(column).str.casefold().str.removeprefix("trialstate.")) <= {*DONE, *FAILED, ""}


def _is_unexplained(found: Account, name: str, cells: pd.Series) -> bool:
    """Whether a column that varies within methods tells rows apart, and is no note and no score that was measured."""
    low = name.casefold()
    if (
        NOTES.match(name)
        or cells[cells != ""].str.match(_DATE).all()
        or low in (*RUN, *REPEAT)
        or (low == SWEEP and (cells == "").any())
    ):
        return False
    if low == SWEEP or is_setting(name):
        return True
    if name == ROW or name not in found.others:
        return bool(cells.duplicated().any())  # Names of runs and of files are all different.
    whole = not cells.str.contains(".", regex=False).any()
    if whole and not found.repeats and 2 * cells.nunique() < len(cells):
        return True  # A size or a count, and nothing else says what the rows repeat.
    # A score has other values for other methods; what was planned has the same ones.
    methods = texts_of(found.table.loc[cells.index, found.method])
    sets = [frozenset(own) for _, own in cells.groupby(methods, sort=False)]
    return len(sets) > 1 and len(set(sets)) == 1 and len(sets[0]) > 1


def _remedy(found: Account, name: str, value: str) -> str:
    low, where = name.casefold(), f"--where {name}={value}"
    if low == SWEEP:
        return (
            f"--best-of VALIDATION takes the best trial of each {name} by that column; --search {name}, if all rows of "
            "one are runs of what it found"
        )
    if found.search and is_setting(name):
        return f"if they are trials, --best-of VALIDATION takes the best one of each {found.search} by that column"
    if low in COUNTERS:
        return f"--last {name} takes the last of each run, {where} one of them; --run {name}, if it numbers the runs"
    return f"{where} keeps one; --run, --paired, --dataset or --method {name} says what it is; or leave the column out"


def check_repeats(found: Account) -> None:
    """Leave out rows that are there twice, and refuse two rows of one run with other scores."""
    table = found.of_score()
    cells = pd.concat([texts_of(table[name]) for name in table.columns], axis=1)
    if not (found.runs or found.block or found.fold or found.chosen):
        _count_copies_once(found, cells)
        return
    same = cells.duplicated()
    if same.any():
        found.said.append(f"There twice, and counted once: {rows_words(table.index[same])}.")
        found.table = found.table.drop(table.index[same])
    if found.block and not found.runs:
        return  # Several runs of a block are averaged.
    names = [name for name in (found.method, found.dataset, *found.repeats) if name]
    keys = pd.concat(found.keys(*names), axis=1, keys=names).loc[table.index[~same]]
    again = keys[keys.duplicated()]
    if again.empty:
        return
    key = again.iloc[0]
    first = keys[(keys == key).all(axis=1)].index[0]
    where = ", ".join(f"{_role(found, name)} {key[name]}" for name in names if key[name])
    raise ScoresError(f"rows {first} and {again.index[0]} are both {where}; number the runs apart, or leave one out")


def _role(found: Account, name: str) -> str:
    if name == found.method:
        return "method"
    return "run" if name in found.runs else name


def _count_copies_once(found: Account, cells: pd.DataFrame) -> None:
    """Where every row is there as often, such as in a table that was appended to itself, count each once."""
    rows = cells.apply(tuple, axis=1)
    counts = Counter(rows)
    times = math.gcd(*counts.values())
    if times < 2 or len(counts) < 2:
        return
    first, *_ = rows[rows == rows.iloc[0]].index[1:]
    gone = rows.index[rows.duplicated()]
    often = "twice" if times == 2 else f"{times} times"
    found.said.append(
        f"Every row is there {often}, such as rows {rows.index[0]} and {first}, as in a table that was appended to "
        "itself: a copy counts once."
    )
    found.table = found.table.drop(gone)


_SUMMARIES = re.compile(
    r"(the )?(average|avg|mean|median|overall|total|sum|wins?|losses|ties)([ _./-]*(rank|score|accuracy|acc|result)s?)?"
    r"|ranks?|scores?",
    re.IGNORECASE,
)
"""What a row that sums up the others is called."""


def merged_datasets(found: Account) -> pd.Series:
    """Return the dataset of each row: one for spellings that differ in little and hold no two numbers.

    Raises:
        ScoresError: Nothing tells whether two spellings are one dataset.
    """
    (raw,) = found.keys(found.dataset)
    if summary := next((name for name in raw.unique() if _SUMMARIES.fullmatch(name)), ""):
        raise ScoresError(
            f"row {raw.index[raw == summary][0]}: {found.dataset} {summary!r} reads as a summary of the other rows; "
            "leave it out, or write another name"
        )
    spellings: dict[str, list[str]] = {}
    for name in raw.unique():
        spellings.setdefault(spelling(name), []).append(name)
    keys = pd.concat(found.keys(found.method, *found.repeats, found.metric), axis=1).apply(tuple, axis=1)
    for first, *others in spellings.values():
        for other in others:
            both = f"{first!r} and {other!r}"
            if not found.repeats:
                raise ScoresError(
                    f"{found.dataset} {both} differ in blanks, dashes or case only; write one name, or two that differ "
                    "more"
                )
            if set(keys[raw == first]) & set(keys[raw == other]):
                found.said.append(
                    f"Two datasets, {both}, differ in blanks, dashes or case only: if they are one, write one name."
                )
            else:
                raw = raw.replace(other, first)
                found.said.append(f"{both} are taken as one dataset.")
    return raw


def without_copied_datasets(found: Account, dataset: pd.Series, value: pd.Series) -> pd.Series:
    """Return which rows remain when a dataset that holds the numbers of another one is left out."""
    kept, seen = pd.Series(True, index=dataset.index), dict[tuple[object, ...], str]()
    methods = texts_of(found.table.loc[dataset.index, found.method])
    for name, own in dataset.groupby(dataset, sort=False):
        numbers = value[own.index]
        held = tuple(sorted(zip(methods[own.index], numbers.fillna(-math.inf), strict=True)))
        if numbers.nunique() < 3:
            continue
        if held in seen:
            found.said.append(f"Left out: {name} holds the same numbers as {seen[held]}.")
            kept[own.index] = False
        seen.setdefault(held, str(name))
    return kept
