"""What every column of a table of scores is: the method, the dataset, a score, or what tells repeats apart."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from results.records.columns import (
    BLOCK,
    DATASET,
    DONE,
    FAILED,
    FOLD,
    LONG,
    METHOD,
    NOTES,
    PARTS_OF_DATA,
    REPEAT,
    ROW,
    RUN,
    SEARCH,
    STATE,
    SWEEP,
    Reading,
    ScoresError,
    as_written,
    is_number,
    is_number_of_runs,
    is_setting,
    numbered,
    numbers_of,
    one_number,
    plain,
    spread_of,
    texts_of,
)
from results.wording import some, things

PREFERRED = ("concatenated_map_at_r", "map_at_r", "separated_map_at_r")
"""Scores that are compared where none is named and several are there."""


@dataclass
class Account:
    """What the columns of a table are.

    Attributes:
        table: The rows that are left, under their numbers.
        method: Column of the methods; likewise the others, empty where there is none.
        runs: Columns that together number the runs.
        score: The compared score: a column, or a metric of the long form.
        others: Further columns of numbers, or metrics.
        spread: Column of what stands behind a mean, if a row is a summary; its kind, and the column of the numbers.
        unread: Columns that nothing is read from.
        said: What was left out or merged, in sentences.
        chosen: Whether an option chose the best trial of each search.
    """

    table: pd.DataFrame
    reading: Reading
    method: str = ""
    dataset: str = ""
    search: str = ""
    block: str = ""
    fold: str = ""
    runs: tuple[str, ...] = ()
    score: str = ""
    others: tuple[str, ...] = ()
    spread: str = ""
    spread_kind: str = ""
    number: str = ""
    unread: tuple[str, ...] = ()
    said: list[str] = field(default_factory=list)
    explained: set[str] = field(default_factory=set)
    chosen: bool = False

    @property
    def by_name(self) -> dict[str, str]:
        """The columns by their names in small letters."""
        return {name.casefold(): name for name in self.table.columns}

    @property
    def metric(self) -> str:
        """The column of metrics, where a row is one run and one metric."""
        known = self.by_name
        return known["metric"] if set(LONG) <= known.keys() else ""

    @property
    def repeats(self) -> tuple[str, ...]:
        """All columns that tell the repeats of a method on a dataset apart."""
        return tuple(filter(None, (self.search, self.block, self.fold, *self.runs)))

    @property
    def claimed(self) -> tuple[str, ...]:
        """The columns that have a role."""
        return tuple(filter(None, (self.method, self.dataset, *self.repeats, self.spread, self.number)))

    def named(self, names: Sequence[str], given: str = "") -> str:
        """Return the column that an option names, else the first that has one of the names; empty for none."""
        if given:
            if (found := self.by_name.get(plain(given).casefold())) is None:
                raise ScoresError(f"there is no column {given!r}; the columns are {some(list(self.table.columns))}")
            return found
        return next((self.by_name[name] for name in names if name in self.by_name), "")

    def keys(self, *names: str) -> list[pd.Series]:
        """Return the texts of columns, for those that are there."""
        forms = {self.method: texts_of, self.dataset: as_written}
        return [forms.get(name, numbered)(self.table[name]) for name in names if name]

    def declared(self, name: str) -> str:
        """Return what a column of this name, such as `scale`, says of the compared score; empty without one.

        Raises:
            ScoresError: It says two things.
        """
        if name not in self.by_name:
            return ""
        said = [text.casefold() for text in texts_of(self.of_score()[self.by_name[name]]).unique() if text]
        if len(said) > 1:
            what = f"{name.removeprefix('reproduce_')}: {said[0]} in one row and {said[1]} in another"
            raise ScoresError(f"{what} of {self.score}; compare one kind")
        return said[0] if said else ""

    def of_score(self) -> pd.DataFrame:
        """Return the rows of the compared score."""
        return self.table[texts_of(self.table[self.metric]) == self.score] if self.metric else self.table


def account_of(table: pd.DataFrame, reading: Reading) -> Account:
    """Say what the columns of a table are, and leave out the rows that the reading leaves out.

    Raises:
        ScoresError: A column could be two things, or none could be what is needed.
    """
    found = Account(table, reading)
    _without_failed(found)
    found.table = rows_where(found.table, reading)
    found.dataset = found.named(DATASET, reading.dataset)
    found.method = _method(found)
    if found.dataset == found.method:
        found.dataset = ""
    _repeats(found)
    _scores(found)
    return found


def _without_failed(found: Account) -> None:
    """Leave out the runs that a tracker marks as crashed or not finished."""
    if not (column := found.named(STATE)):
        return
    states = texts_of(found.table[column]).str.casefold().str.removeprefix("trialstate.")
    if set(states) - DONE - FAILED - {""} or not set(states) & FAILED:
        return
    gone = states.isin(FAILED)
    kinds = ", ".join(dict.fromkeys(texts_of(found.table.loc[gone, column])))
    if gone.all():
        raise ScoresError(f"no run is finished ({column}: {kinds})")
    found.said.append(f"Left out: {rows_words(found.table.index[gone])} ({column}: {kinds}).")
    found.table = found.table[~gone]


def rows_where(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Return the rows that have the values that `--where` names."""
    for name, value in reading.where:
        column = Account(table, reading).named((), name)
        cells = numbered(table[column])
        kept = cells.str.casefold() == one_number(plain(value)).casefold()
        if not kept.any():
            raise ScoresError(f"no row has {column} {value!r}; there are {some(list(dict.fromkeys(cells)))}")
        table = table[kept]
    return table


def _method(found: Account) -> str:
    if found.reading.method:
        return found.named((), found.reading.method)
    table = found.table
    there = [found.by_name[name] for name in (*METHOD, ROW) if name in found.by_name]
    # A logged loss is a number.
    words = [name for name in there if name.casefold() == "method" or not is_number(table[name])]
    if not words:
        names, columns = ", ".join(METHOD[:5]), some(list(table.columns))
        number = f" ({there[0]} holds numbers)" if there else ""
        raise ScoresError(
            f"no column of words is called {names}{number}; name the column of the methods with --method, or add "
            f"--wide if each is a column: {columns}"
        )
    if words[0].casefold() == "method":
        return words[0]
    counts = {name: texts_of(table[name]).nunique() for name in words}
    varying = [name for name in words if 1 < counts[name] < len(table)] or words  # Names of runs are all different.
    first, *others = varying
    rest = [name for name in others if not len(table[[first, name]].drop_duplicates()) == counts[first] == counts[name]]
    if rest:
        raise ScoresError(
            f"{first} and {rest[0]} could both be the methods; name one with --method, and keep one value of the other "
            f"with --where, such as --method {rest[0]} --where {first}={texts_of(table[first]).iloc[0]}"
        )
    return first


def _repeats(found: Account) -> None:
    """Find what tells repeats apart: folds, shared blocks, searches and runs."""
    reading, table = found.reading, found.table
    found.search = found.named(SEARCH, reading.search)
    sweep = found.by_name.get(SWEEP, "")
    if sweep and not found.search and (texts_of(table[sweep]) != "").all():
        rows = table.groupby([texts_of(table[sweep]), texts_of(table[found.method])]).size()
        found.search = sweep if reading.best_of or rows.max() == 1 else ""
    found.block = found.named((), reading.paired) if reading.paired else _block(found)
    found.dataset = "" if found.dataset == found.block else found.dataset
    found.search = "" if found.search == found.block else found.search
    fold = found.named(FOLD)
    found.fold = "" if fold == found.block else fold
    if reading.run:
        found.runs = (found.named((), reading.run),)
        return
    there = [found.by_name[name] for name in (*REPEAT, *RUN) if name in found.by_name]
    taken = (found.method, found.block, found.search, found.dataset)
    found.runs = tuple(name for name in there if name not in taken)
    _check_crossed(found)


def _check_crossed(found: Account) -> None:
    """Refuse two columns of repeats of which neither follows from the other."""
    table = found.table
    varying = [name for name in found.runs if table[name].nunique() > 1]
    if len(varying) < 2 or found.fold:
        return
    one, other = varying[:2]
    pairs = pd.concat(found.keys(found.method, one, other), axis=1, keys=["method", "one", "other"]).drop_duplicates()
    if min(pairs.groupby(["method", by]).size().max() for by in ("one", "other")) > 1:
        raise ScoresError(
            f"{one} and {other} both tell rows of a method apart; say which numbers independent runs (--run {one} or "
            f"--run {other}) and what the other is (--search, --paired, or --where {other}={table[other].iloc[0]})"
        )


def _block(found: Account) -> str:
    column = found.named(BLOCK)
    cells = {text.casefold() for text in texts_of(found.table[column])} if column else set()
    if cells <= PARTS_OF_DATA | {""}:
        if len(cells) > 1:
            value = texts_of(found.table[column]).iloc[-1]
            raise ScoresError(f"{column} names parts of the data; keep one of them: --where {column}={value}")
        return ""
    return column


def _scores(found: Account) -> None:
    """Find the compared score, and further ones."""
    table, asked = found.table, plain(found.reading.score)
    if found.metric:
        names = list(dict.fromkeys(texts_of(table[found.metric])))
        found.score = _asked(names, asked, names)
        _summary(found, found.by_name["value"])
        found.others = tuple(name for name in names if name != found.score)
        return
    free = [name for name in table.columns if name not in (*found.claimed, ROW) and name.casefold() not in STATE]
    counts = {name: numbers_of(table[name]) for name in free if not pd.api.types.is_bool_dtype(table[name])}
    numbers = [name for name, own in counts.items() if own["value"].notna().any() and 2 * own["text"].mean() <= 1]
    spreads = {spread_of(table.columns, name)[0] for name in numbers} - {""}
    likely = [name for name in numbers if name not in spreads and not (is_setting(name) or NOTES.match(name))]
    likely = [name for name in likely if name.casefold() not in METHOD] or likely
    chooses = plain(found.reading.best_of).casefold()
    likely = [name for name in likely if name.casefold() != chooses] or likely
    likely = [name for name in likely if not is_number_of_runs(name)] or likely
    if not likely and not asked:
        # Such as 71,5 or 71.5 %: the first row is refused.
        words = [name for name in counts if not is_setting(name)]
        likely = [name for name in words if texts_of(table[name]).str.match(r"-?\d").mean() > 0.5][:1]
    if not likely and not asked:
        raise ScoresError(f"no column of numbers is a score; the columns are {some(list(table.columns))}")
    found.score = _asked(likely, asked, list(counts))
    _summary(found, found.score)
    found.others = tuple(name for name in numbers if name not in (found.score, found.spread, found.number))


def _asked(likely: Sequence[str], asked: str, known: Sequence[str]) -> str:
    if asked:
        if same := [name for name in known if name.casefold() == asked.casefold()]:
            return same[0]
        raise ScoresError(f"there is no score {asked!r}; there are {some(list(likely or known))}")
    if one := [name for name in PREFERRED if name in likely] or (list(likely) if len(likely) == 1 else []):
        return one[0]
    raise ScoresError(f"several columns could be the score; name one with --score: {some(list(likely))}")


def _summary(found: Account, column: str) -> None:
    """Find what stands behind a mean, where each method has one row on a dataset."""
    spread, kind = spread_of(found.table.columns, column)
    rows = pd.concat(found.keys(found.method, found.dataset), axis=1).loc[found.of_score().index]
    if not spread or rows.duplicated().any():
        return
    number = next((name for name in found.table.columns if is_number_of_runs(name)), "")
    if not number:
        raise ScoresError(
            f"{column} and {spread} are summaries of runs; add a column n with the number of runs of each"
        )
    found.runs, found.search, found.block, found.fold = (), "", "", ""
    found.spread, found.number, found.spread_kind = spread, number, found.reading.plus_minus if kind == "±" else kind


def rows_words(index: pd.Index) -> str:
    """Write numbers of rows, such as `rows 2, 3, 4 and 5 more`."""
    return f"{things(len(index), 'row')} {some([str(row) for row in index], 3)}"
