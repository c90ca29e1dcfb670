"""What is known of a table so far. Each step of reading takes it, and returns it anew with what it found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import pandas as pd

from results.reading.cells import as_written, column_named, columns_by_name, is_number, numbered, texts_of
from results.reading.columns import ROLES, VALUES, is_role, plain
from results.reading.scores_table import Reading, SdOrSe


@dataclass(frozen=True)
class Known:
    """A table, the role of each column as far as it is found, and what is to be said of the rest.

    Attributes:
        table: The rows that are left, under their numbers.
        reading: What is given.
        method: Column of the methods. This and the following names are empty where there is none.
        dataset: Column of the datasets.
        search: Column of the searches.
        block: Column of what all methods share.
        fold: Column of the folds.
        runs: Columns that together number the runs.
        metric: Column that names the metric of a row; another one has its value.
        score: The compared column, or metric.
        others: Further scores.
        spread: Column of what stands behind a mean.
        spread_kind: What that is; None if nothing says it.
        number: Column of the number of runs behind a mean.
        folds_behind: Number of folds behind each mean, -1 if nothing says it; 0 if these are no folds.
        melted: Name of the score whose columns were turned into rows.
        wide: Whether each of these was a method.
        chosen: Whether one row of several was chosen, or their mean: what differs between them needs no answer.
        parts: The columns that a joined one is made of.
        said: What was left out or merged, in sentences.
        why: Why columns are not read.
    """

    table: pd.DataFrame
    reading: Reading
    method: str = ""
    dataset: str = ""
    search: str = ""
    block: str = ""
    fold: str = ""
    runs: tuple[str, ...] = ()
    metric: str = ""
    score: str = ""
    others: tuple[str, ...] = ()
    spread: str = ""
    spread_kind: SdOrSe | None = None
    number: str = ""
    folds_behind: int = 0
    melted: str = ""
    wide: bool = False
    chosen: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    why: Mapping[str, str] = field(default_factory=dict)

    def saying(self, text: str) -> Self:
        """Add a sentence."""
        return replace(self, said=(*self.said, text))

    def unread(self, names: Iterable[str], why: str) -> Self:
        """Add why columns are not read."""
        return replace(self, why={**self.why, **dict.fromkeys(names, why)})

    def with_column(self, given: str) -> tuple[Self, str]:
        """Find the column that an option names; of several joined by `+`, one that has all of them is added.

        Raises:
            ScoresError: There is none.
        """
        wanted = plain(given)
        names = wanted.split("+")
        if len(names) == 1 or wanted.casefold() in self.by_name:
            return self, column_named(self.table, given)
        parts = tuple(column_named(self.table, name) for name in names)
        cells = []
        for part in parts:
            bare = numbered(self.table[part])
            words = not is_number(self.table[part]) and not {*bare.str.casefold()} <= {"true", "false", ""}
            cells.append(bare if words else (part + "=" + bare).where(bare != "", ""))
        joined = pd.concat(cells, axis=1).agg(" ".join, axis=1).str.split().str.join(" ")
        return replace(self, table=self.table.assign(**{wanted: joined}), parts={**self.parts, wanted: parts}), wanted

    def first_of(self, role: str) -> str:
        """Return the first column with a name of a role; empty if there is none."""
        return next(iter(columns_of(self.table, role)), "")

    @property
    def by_name(self) -> dict[str, str]:
        """The columns by their names in small letters."""
        return columns_by_name(self.table)

    @property
    def repeats(self) -> tuple[str, ...]:
        """The columns that tell repeats apart."""
        return tuple(filter(None, (self.search, self.block, self.fold, *self.runs)))

    @property
    def claimed(self) -> set[str]:
        """The columns that have a role, or a reason not to be read."""
        joined = {part for parts in self.parts.values() for part in parts}
        named = {self.method, self.dataset, self.metric, self.spread, self.number, ""}
        return {*named, *self.repeats, *self.why, *joined}

    @property
    def free(self) -> list[str]:
        """The columns that are not claimed, and have a name of no role but of methods."""
        taken = self.claimed | {name for role in ROLES if role != "method" for name in columns_of(self.table, role)}
        return [name for name in self.table.columns if name not in taken]

    @property
    def values(self) -> str:
        """The column of the compared score's numbers."""
        return next(self.by_name[name] for name in VALUES if name in self.by_name) if self.metric else self.score

    @property
    def of_score(self) -> pd.DataFrame:
        """The rows of the compared score."""
        return self.table[texts_of(self.table[self.metric]) == self.score] if self.metric else self.table

    def keys(self, *names: str) -> list[pd.Series]:
        """Return the cells of columns by which rows are told apart: numbers in one form, without empty names."""
        forms = {self.method: texts_of, self.dataset: as_written}
        return [forms.get(name, numbered)(self.table[name]) for name in names if name]

    def tell_apart(self, *names: str) -> bool:
        """Whether columns tell the rows of a method on a dataset, in a search and block, apart."""
        keys = pd.concat(self.keys(self.method, self.dataset, self.search, self.block, *names), axis=1)
        if self.metric:
            keys = keys.assign(metric=texts_of(self.table[self.metric]))
        whole = self.table.astype(str).duplicated() if keys.duplicated().any() else pd.Series(False, index=keys.index)
        return not keys[~whole].duplicated().any()


def columns_of(table: pd.DataFrame, role: str) -> list[str]:
    """Return the columns with a name of a role, those with a usual name first."""
    by_name = columns_by_name(table)
    usual = [by_name[name] for name in ROLES[role][0] if name in by_name]
    others = [name for name in table.columns if is_role(name, role) and name not in usual]
    if role == "dataset":  # Not the loss of a benchmark.
        others = [name for name in others if not is_number(table[name])]
        constant = {name for name in others if texts_of(table[name]).nunique() == 1}
        others.sort(key=constant.__contains__)
    return usual + others
