"""Columns that vary within a method: why they need no answer, or the question what they are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from results.reading.cells import MISSING, is_number, is_shared, is_whole, numbered, numbers_of, texts_of
from results.reading.columns import (
    COUNTERS,
    HELD_UP,
    LOWER,
    NOTES,
    ROW,
    SCALE,
    SWEEP,
    VALIDATED_ON,
    is_role,
    is_score,
    is_setting,
    is_size,
    is_time,
    words_of,
)
from results.reading.known import Known
from results.reading.scores_table import ANOTHER_SCORE, COLUMNS, AskedError, ScoresError, option
from results.wording import listed

_DATE = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"


def with_all_explained(known: Known) -> Known:
    """Say why each further column is not read, or ask what those are that vary within a method.

    Raises:
        AskedError: Such a column is neither a repeat, nor a score, nor follows from them.
        ScoresError: There is one method alone.
    """
    table = known.of_score
    done = {*known.claimed, known.score, known.values, LOWER, SCALE, HELD_UP}
    groups = [key.loc[table.index] for key in known.keys(known.method, known.dataset)]
    told = _are_told_apart(known)
    why, open_ones = dict[str, str](), dict[str, pd.Series]()
    for name in (one for one in table.columns if one not in done):
        cells = numbered(table[name])
        varies = cells.groupby(groups, sort=False).nunique().max() > 1
        reason = _why_it_varies(known, name, cells, told=told) if varies else "one value for each method"
        reason = ANOTHER_SCORE if reason and name in known.others and is_score(name) else reason
        if reason or known.chosen:
            why[name] = reason or "differs from row to row"
        else:
            open_ones[name] = cells
    if not open_ones:
        return replace(known, why={**known.why, **why})
    if groups[0].nunique() == 1 and not any(_can_be_planned(name, table[name]) for name in open_ones):
        raise ScoresError(f"nothing to compare: all rows are of {groups[0].iloc[0]}; --method names another column")
    raise _what_varies(known, open_ones, groups)


def _are_told_apart(known: Known, *names: str) -> bool:
    """Whether something numbers the repeats, and columns with it tell all rows apart."""
    return bool(known.repeats) and known.tell_apart(known.fold, *known.runs, *names)


def _can_be_planned(name: str, cells: pd.Series) -> bool:
    """Whether a column is a setting, or has words but yes and no: what one can plan, and not only measure."""
    words = {*texts_of(cells).str.casefold()}
    return is_setting(name) or not (is_number(cells) or words <= {"true", "false", "yes", "no", ""})


def _why_it_varies(known: Known, name: str, cells: pd.Series, *, told: bool) -> str:
    """Why a column that varies within methods needs no answer; empty if it does.

    `told` says whether the rows are told apart without it.
    """
    low = name.casefold()
    if NOTES.fullmatch(name) or cells[cells != ""].str.match(_DATE).all():
        return "a note"
    if is_role(name, "run") or (low == SWEEP and (cells == "").any()):
        return "another number of the runs"
    setting = is_setting(name) or low == SWEEP
    if (not setting or is_size(name)) and (by := _follows(known, cells)):
        return f"follows from {by}"
    methods = texts_of(known.table.loc[cells.index, known.method])
    # A score has other values for other methods; what was planned has the same ones.
    planned = is_shared(cells, methods)
    if not told and _is_of_some(known.table[name], methods):
        planned = planned or 2 * cells.nunique() < len(cells)
    if setting:  # A run can stop at an epoch of its own.
        own = low in COUNTERS or is_size(name)
        told = told or (own and _ends_runs(known, name, cells))
        return "differs from run to run" if own and told and not planned else ""
    if name == ROW or name not in known.others:  # Names of runs and of files are all different.
        return "differs from row to row" if not cells.duplicated().any() or (told and not planned) else ""
    if is_score(name) or (is_time(name) and not planned):
        return ANOTHER_SCORE if is_score(name) else "a time"
    if is_whole(cells) and not told and 2 * cells.nunique() < len(cells):
        return ""  # A size or a count, and nothing else says what the rows repeat.
    return "" if planned else "another number"


def _follows(known: Known, cells: pd.Series) -> str:
    """What a column follows from, for all methods: the size of a fold, the data that a seed draws."""
    if not known.repeats:
        return ""
    keys = [key.loc[cells.index] for key in known.keys(known.dataset, *known.repeats)]
    groups = cells.groupby(keys, sort=False)
    return " and ".join(known.repeats) if groups.size().max() > 1 and groups.nunique().max() <= 1 else ""


def _is_of_some(column: pd.Series, methods: pd.Series) -> bool:
    """Whether a column is a setting that some methods do not have."""
    none = texts_of(column.loc[methods.index]).str.casefold().isin(MISSING)
    return none.nunique() == 2 and none.groupby(methods, sort=False).nunique().max() == 1


def _ends_runs(known: Known, counter: str, cells: pd.Series) -> bool:
    """Whether a counter of epochs says where the run of each row stopped, and is not that of a curve.

    Within every method its steps are uneven and not in the order of the rows, and scores do not move along it.
    """
    if not re.search("epoch|step|iter", counter.casefold()) or not is_number(known.table[counter]):
        return False
    methods = texts_of(known.table.loc[cells.index, known.method])
    groups = [own.dropna() for _, own in pd.to_numeric(cells, errors="coerce").groupby(methods, sort=False)]
    uneven = all(len({*np.diff(np.unique(own))}) > 1 and not own.is_monotonic_increasing for own in groups)
    return uneven and not _scores_move_along(known, counter)


def _scores_move_along(known: Known, counter: str) -> bool:
    table = known.of_score
    both = pd.concat([numbers_of(table[name])["value"] for name in (counter, known.values)], axis=1)
    keys = [key.loc[table.index] for key in known.keys(known.method, known.dataset)]
    return bool(abs(both.groupby(keys).rank(pct=True).corr().iloc[0, 1]) > 0.5)


def _what_varies(known: Known, cells: Mapping[str, pd.Series], groups: Sequence[pd.Series]) -> AskedError:
    """The question what columns are; one of words that all methods share has an answer for each of its values."""
    methods = groups[0]
    joined, asked, told = list[str](), "", False
    for name, own in cells.items():
        varying = own.groupby(list(groups), sort=False).transform("nunique") > 1
        first = varying[varying].index[0]
        same = pd.concat([group == group[first] for group in groups], axis=1).all(axis=1)
        other = own[same & (own != own[first])]
        text = (
            f"{name} varies within {methods[first]} (rows {first} and {other.index[0]}: "
            f"{own[first] or 'empty'}, {other.iloc[0] or 'empty'}), so its rows are no repeats; "
        )
        remedy, likely = _remedy(known, name, other.iloc[0])
        if "method" not in likely:
            named = bool(known.reading.method) or is_role(known.method, "method")
            sure = "dataset" in likely and named and not is_number(known.table[name])
            return AskedError(text + remedy, sure=sure, **likely)
        keys = [*groups, *(cells[one] for one in joined)]
        if not told and own.groupby(keys, sort=False).nunique().max() > 1:
            joined.append(name)
            asked = asked or text + remedy
            told = _are_told_apart(known, *joined)
    others = f". So {'do' if joined[2:] else 'does'} {listed(joined[1:])}" if joined[1:] else ""
    return AskedError(
        f"{asked}{others}",
        sure=told and all(_is_of_some(known.table[name], methods) for name in joined),
        method="+".join([known.reading.method or known.method, *joined]),
    )


def _remedy(known: Known, name: str, value: str) -> tuple[str, dict[str, Any]]:
    """How to say what a column that varies is, and what it most likely is."""
    low, where, table = name.casefold(), option("where", f"{name}={value}"), known.table
    if low == SWEEP:
        return (
            f"--best-of VALIDATION takes the best trial of each {name} by that column; {option('search', name)}, "
            "if all rows of one are runs of what it found",
            {"search": name},
        )
    if known.search and is_setting(name):
        validation = (one for one in known.others if {*words_of(one)} & VALIDATED_ON)
        return (
            f"if they are trials, --best-of VALIDATION takes the best one of each {known.search} by that column",
            {"best_of": next(validation, known.score)},
        )
    if low in COUNTERS and is_number(table[name]):
        is_curve = bool(re.search("epoch|step", low)) or _scores_move_along(known, name)
        return (
            f"{option('last', name)} takes the last of each run, {where} one of them; {option('run', name)}, if "
            "it numbers the runs",
            {"last" if is_curve else "run": name},
        )
    text = (
        f"{where} keeps one; --run, --paired, --dataset or {option('method', name)} says what it is; or leave the "
        "column out"
    )
    shared = is_shared(texts_of(table[name]), texts_of(table[known.method]))
    if words_of(name)[-1:] == ["id"] and shared and not known.repeats:
        return text, {"paired": name}
    crosses = shared and not (is_setting(name) and is_number(table[name]))
    if (known.wide or crosses) and known.reading.dataset != COLUMNS:
        return text, {"dataset": f"{known.reading.dataset or known.dataset}+{name}" if known.dataset else name}
    return text, {"method": name}
