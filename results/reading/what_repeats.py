"""What tells the repeats of a method apart: searches, blocks that all methods share, folds and runs."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from results.reading.cells import follows_from, numbered, texts_of
from results.reading.columns import PARTS_OF_DATA, SWEEP, is_role, words_of
from results.reading.known import Known, columns_of
from results.reading.rows_left_out import without_summaries
from results.reading.scores_table import EACH_ROW, AskedError, Repeats, option


def with_repeats(known: Known) -> Known:
    """Find the columns of searches, blocks, folds and runs. Folds stay folds whatever names them.

    Raises:
        AskedError: Two columns could number runs, or one names parts of the data.
        ScoresError: There is no column of a given name.
    """
    asked, given = known.reading, "".join(known.runs)  # What was taken out of the names of methods.
    known = _with_block(_with_search(replace(known, runs=())))
    fold = known.first_of("fold")
    if asked.run and asked.run != EACH_ROW and not given:
        known, given = known.with_column(asked.run)
    block = known.block
    if block and is_role(block, "fold"):
        fold, block = block, ""
    if given and is_role(given, "fold"):
        fold, given = given, ""
    known = replace(
        known,
        fold="" if fold in (known.method, known.dataset, known.search) else fold,
        block=block,
        dataset="" if known.dataset == block else known.dataset,
        search="" if known.search == block else known.search,
    )
    there = [given] if given else [name for name in columns_of(known.table, "run") if name not in known.claimed]
    for name in filter(None, (known.fold, *there)):
        if texts_of(known.table[name]).str.contains(r"\d").any():  # Not where words name the repeats.
            known = without_summaries(known, name, of_columns=True)
    there = [name for name in there if texts_of(known.table[name]).nunique() > 1 or len(there) == 1]
    if asked.run == EACH_ROW:
        return known.unread(there, "every row is a run")
    if known.fold:
        return _with_repeats_of_folds(replace(known, block=""), [*filter(None, [known.block]), *there])
    return replace(known, runs=(given,)) if given else _with_runs(known, there)


def _with_search(known: Known) -> Known:
    if known.reading.search:
        known, found = known.with_column(known.reading.search)
    else:
        found = known.first_of("search")
    sweep = known.by_name.get(SWEEP, "")
    if sweep and not found and (texts_of(known.table[sweep]) != "").all():
        rows = known.table.groupby([texts_of(known.table[sweep]), texts_of(known.table[known.method])]).size()
        found = sweep if known.reading.best_of or rows.max() == 1 else ""
    return replace(known, search="" if found == known.method else found)


def _with_block(known: Known) -> Known:
    """Find what all methods share; a column of the parts of the data must have one of them."""
    if known.reading.paired:
        known, given = known.with_column(known.reading.paired)
        return replace(known, block=given)
    column = known.first_of("paired")
    if not column or column in (known.method, known.dataset, *known.why):
        return known
    cells = sorted({*texts_of(known.table[column]).str.casefold()} - {""})
    parts = {tuple(words_of(text)) for text in cells}  # Without numbers: test 1 and test 2 are of one part.
    of_parts = all(PARTS_OF_DATA & {*words} for words in parts)
    if of_parts and len(parts) > 1:
        value = next((text for text in cells if text.startswith("test")), cells[-1])
        raise AskedError(
            f"{column} names parts of the data; keep one of them: {option('where', f'{column}={value}')}",
            where=((column, value),),
        )
    return replace(known, block="" if of_parts and len(cells) < 2 else column)


def _with_repeats_of_folds(known: Known, there: Sequence[str]) -> Known:
    """Of repeated folds find what numbers the repeats. A seed that tells no two scores of a fold apart is none."""
    fold, table = known.fold, known.table
    if known.tell_apart(fold):
        return known
    telling = [name for name in there if known.tell_apart(fold, name)]
    methods = texts_of(table[known.method])
    for name in telling:
        sets = {frozenset(own) for _, own in numbered(table[name]).groupby(methods, sort=False)}
        if len(sets) == 1 and not follows_from(table[fold], table[name]):
            return replace(known, runs=(name,))
    if not telling:
        return known
    known = known.saying(f"The scores of a {fold} count as one, their mean: {telling[0]} numbers no repeats.")
    return replace(known, chosen=True).unread(telling[:1], f"numbers scores of a {fold}")


def _with_runs(known: Known, there: Sequence[str]) -> Known:
    """Find what numbers runs: one column that does, else all of them."""
    table, seeds = known.table, [name for name in there if "seed" in words_of(name)]
    if seeds:  # What differs from row to row names rows and no runs.
        there = [name for name in there if name in seeds or texts_of(table[name]).duplicated().any()]
    if len(there) > 1 and (alone := next((name for name in there if known.tell_apart(name)), "")):
        there = [alone]
    if len(there) < 2:
        return replace(known, runs=tuple(there))
    one, other = there[:2]
    keys = pd.concat(known.keys(known.method, one, other), axis=1, keys=["method", "one", "other"]).drop_duplicates()
    if min(keys.groupby(["method", by]).size().max() for by in ("one", "other")) > 1:
        raise AskedError(
            f"{one} and {other} both tell rows of a method apart; say which numbers independent runs "
            f"({option('run', one)} or {option('run', other)}) and what the other is (--search, --paired, or "
            f"{option('where', f'{other}={table[other].iloc[0]}')})",
            run=other,
            search=one,
        )
    return replace(known, runs=tuple(there))


def what_repeats(known: Known, own: pd.DataFrame) -> tuple[Repeats, str]:
    """Return what a row of the compared score repeats, and the column that says so."""
    if known.spread:
        return "summary" if known.number else "uncounted summary", known.spread
    if known.block:
        return "block", known.block
    if known.search:
        return "search", known.search
    if known.fold:
        return "fold", known.fold
    if own["dataset"].nunique() > 1 and not own.duplicated(["dataset", "method"]).any():
        return "dataset", known.dataset
    return "run", " and ".join(known.runs)
