"""Which column names the methods of a table, and which one the datasets; or whether each column is one."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from results.reading.cells import is_number, is_shared, is_whole, texts_of
from results.reading.columns import (
    COUNTERS,
    NOTES,
    RIVALS,
    ROLES,
    ROW,
    SPREADS,
    SWEEP,
    is_number_of_runs,
    is_role,
    is_score,
    is_setting,
    is_size,
    is_summary,
    spread_of,
    words_of,
)
from results.reading.known import Known, columns_of
from results.reading.melt_columns import (
    columns_of_numbers,
    methods_in_columns,
    metric_of_all,
    with_columns_as,
    with_columns_as_repeats,
)
from results.reading.rows_left_out import without_summaries
from results.reading.scores_table import COLUMNS, EACH_ROW, AskedError, ScoresError, option
from results.wording import listed, some

_RUN_IN_NAME = re.compile(r"(?i)^(?P<method>.*?)[\s_/.:(\[-]+(?P<word>seed|run|rep|trial|s)[ _-]?(?P<run>\d+)\W*$")


def with_methods_and_datasets(known: Known) -> Known:
    """Find the columns of methods and datasets, turn columns that are some into rows, and leave out rows of sums.

    Raises:
        AskedError: Several columns could name the methods, or columns could be methods.
        ScoresError: Nothing can.
    """
    asked = known.reading
    if COLUMNS not in (asked.method, asked.dataset):
        known = with_columns_as_repeats(known)
    if asked.dataset and asked.dataset != COLUMNS:
        known, dataset = known.with_column(asked.dataset)
        known = replace(known, dataset=dataset)
    elif not asked.dataset:
        known = replace(known, dataset=known.first_of("dataset"))
    if asked.method == COLUMNS:
        known = with_columns_as(known, "method")
    elif asked.method:
        known, method = known.with_column(asked.method)
        known = replace(known, method=method)
    else:
        known = _with_likely_method(known)
    if asked.dataset == COLUMNS:
        known = with_columns_as(known, "dataset")
    elif not asked.method:
        _ask_about_columns(known)
    if known.dataset == known.method:
        known = replace(known, dataset="")
    known = _with_runs_out_of_names(known)
    if known.dataset:
        known = without_summaries(known, known.dataset, of_columns=True)
    return without_summaries(known, known.method, of_columns=False)


def _with_likely_method(known: Known) -> Known:
    """Find the methods: a column of their names, else the only one of words that varies, else all columns."""
    table, by_role, words = known.table, columns_of(known.table, "method"), _columns_of_words(known)
    counts = {name: texts_of(table[name]).nunique() for name in table.columns}
    if by_role and by_role[0].casefold() == "method" and counts[by_role[0]] > 1:
        return replace(known, method=by_role[0])
    several = [name for name in words if counts[name] > 1]
    varying = [name for name in several if counts[name] < len(table)]  # Names of runs are all different.
    usual = [name for name in by_role if name.casefold() in ROLES["method"][0]]
    ranked = (
        [name for name in tier if name in of] for of in (varying, several, words) for tier in (usual, by_role, [ROW])
    )
    if not (found := next(filter(None, ranked), [])):
        found = _names_of_runs(table) or varying
        if _are_columns(known, found):
            return with_columns_as(known, "method")
        found = found or (several if len(several) == 1 else [])
    if not found:
        raise _which_method(known, by_role, words)
    first, *others = found
    rest = [name for name in others if len(table[[first, name]].drop_duplicates()) > counts[first]]
    if rest:
        raise _which_of(known, first, rest)
    return replace(known, method=first)


def _columns_of_words(known: Known) -> list[str]:
    """The free columns of words that could name methods: no notes, numbers with a unit or lists."""
    free = [name for name in known.free if name != SWEEP and not NOTES.fullmatch(name)]
    words = {name: texts_of(known.table[name]) for name in free if not is_number(known.table[name])}
    return [name for name, own in words.items() if own.any() and not own.str.match(r"-?\d|\[").all()]


def _names_of_runs(table: pd.DataFrame) -> list[str]:
    """The columns of runs that are words and no numbers, such as `lr0.1_mixup`: each could be a method."""
    runs = {name: texts_of(table[name]).str.replace(r"\d", "", regex=True) for name in columns_of(table, "run")}
    return [name for name, texts in runs.items() if texts.nunique() > 1]


def _planned(table: pd.DataFrame) -> list[str]:
    """The columns of settings that differ between rows, and not in all."""
    settings = [n for n in table.columns if is_setting(n) and not is_size(n) and n.casefold() not in COUNTERS]
    return [name for name in settings if 1 < texts_of(table[name]).nunique() < len(table)]


def _are_columns(known: Known, named: Sequence[str]) -> bool:
    """Whether the methods are columns of numbers; asks if other columns could name them."""
    numbers = columns_of_numbers(known)
    columns = [] if _planned(known.table) else methods_in_columns(numbers)
    if len(columns) < 2 or any(map(is_score, numbers)):
        return False
    rows = [*named, *([] if known.dataset else _columns_of_words(known))]
    if rows and not (known.dataset and metric_of_all(columns)):
        spreads = any(spread_of(known.by_name, name)[0] for name in columns)
        raise AskedError(
            f"the methods could be the columns {some(columns, 3)} (--method {COLUMNS}), or {rows[0]} names "
            f"them ({option('method', rows[0])})",
            method=rows[0] if spreads or _names_of_runs(known.table) else COLUMNS,
        )
    return True


def _which_of(known: Known, first: str, rest: Sequence[str]) -> AskedError:
    """The question which of several columns of words names the methods, or whether all do."""
    table, one = known.table, rest[0]
    roles = is_role(first, "method") and is_role(one, "method")
    if roles and not known.dataset and is_shared(texts_of(table[one]), texts_of(table[first])):
        value = texts_of(table[first]).iloc[0]
        return AskedError(
            f"{first} and {one} could both be the methods; name one with --method, and keep one value of the "
            f"other with --where, such as {option('method', one)} {option('where', f'{first}={value}')}, or "
            "answer for each with --dataset",
            method=one,
            dataset=first,
        )
    names = [name for name in table.columns if name in (first, *rest)]
    every = "+".join(names)
    return AskedError(
        f"{listed(names)} could all name the methods: {option('method', names[0])} takes one, "
        f"{option('method', every)} each combination",
        method=every,
    )


def _which_method(known: Known, by_role: Sequence[str], words: Sequence[str]) -> ScoresError:
    """The question which columns name the methods: those of settings that vary, if there are any."""
    table = known.table
    names, columns = ", ".join(ROLES["method"][0][:5]), some(list(table.columns))
    number = f" ({by_role[0]} holds numbers)" if by_role else ""
    text = f"no column of words is called {names}{number}; name the column of the methods with --method: {columns}"
    codes = [name for name in by_role if name in words or is_whole(table[name])]
    several = (name for name in [*codes, *words] if texts_of(table[name]).nunique() > 1)
    if likely := next(several, "+".join(_planned(table))):
        return AskedError(text, method=likely)
    return ScoresError(f"{text}; or add a column method that says which method a row is of")


def _ask_about_columns(known: Known) -> None:
    """Ask about several columns of numbers without a name of a score: datasets, methods, or scores."""
    table, asked, numbers = known.table, known.reading, columns_of_numbers(known)
    names = methods_in_columns(numbers)
    if asked.score or asked.best_of or asked.last or known.melted or known.metric:
        return
    if len(names) < 3 or columns_of(table, "run") or table[known.method].nunique() < len(table):
        return
    if any(is_score(name) or spread_of(known.by_name, name)[1] in SPREADS.values() for name in numbers):
        return
    rows = texts_of(table[known.method])
    sized = any(map(is_number_of_runs, table.columns))
    methods = len(table) > 2 * len(names) or sized or any(map(is_summary, rows))
    raise AskedError(
        f"the columns {some(names, 3)} could be datasets (--dataset columns), methods (--method columns "
        f"{option('dataset', known.method)}) or scores ({option('score', names[0])})",
        sure=any({*words_of(row)} & RIVALS and is_summary(row) for row in rows),
        **({"method": COLUMNS, "dataset": known.method} if methods else {"dataset": COLUMNS}),
    )


def _with_runs_out_of_names(known: Known) -> Known:
    """Split names such as `ppo_seed1` in method and run, where two methods have several; ask about `ppo-s1`."""
    name, asked = known.method, known.reading
    if known.wide or asked.run == EACH_ROW:
        return known
    run = ""
    if asked.run:
        known, run = known.with_column(asked.run)
    if not (named := run == name) and (asked.method or {*columns_of(known.table, "run")} - {name}):
        return known
    texts = texts_of(known.table[name])
    parts = texts.str.extract(_RUN_IN_NAME)
    runs = parts.dropna().drop_duplicates()
    several = runs.groupby("method")["run"].nunique()
    if (several > 1).sum() < 2 or several.min() < 2:
        return known
    words = {*runs["word"].str.casefold()}
    text = f"{name} holds the number of a run in names such as {known.table.loc[runs.index[0], name]}"
    if not named and not words <= {"seed", "run", "rep"}:
        raise AskedError(
            f"{text}, if that is what {listed(sorted(words))} counts: {option('run', name)} takes it so, "
            f"{option('method', name)} takes each name as a method",
            run=name,
        )
    bare = parts["method"].fillna(texts)
    known = replace(known, table=known.table.assign(**{name: bare, "run": parts["run"].fillna("")}), runs=("run",))
    said = f"the methods are {some(list(several.index), 3)}; {option('method', name)} takes each name as one"
    return known.saying(f"{text}: {said}.")
