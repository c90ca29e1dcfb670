"""The one kind of table: columns in groups, rows of one or more lines, typed cells, and the values for a CSV file.

A cell holds a value, not its text. The writers make the text: Markdown, LaTeX, HTML, CSV, JSON, the terminal, the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from results.statistics.comparisons import PublishedVerdict
from results.statistics.intervals import Interval

Mark = Literal["", "best", "tied", "untested"]
"""Of a column's values: the highest mean, one that is not significantly lower, one with too few runs to tell."""

CellKind = Literal["", "measured", "published", "verdict", "not run"]
"""What a cell is about: our runs, a paper's number, where our interval lies by it, or a method without any run."""

Value = str | float | int | None


@dataclass(frozen=True)
class NumberFormat:
    """How a number is shown.

    Args:
        digits: Digits behind the point, or significant digits if `significant`.
        scale: Factor before the number is shown: 100 for fractions that are shown in percent.
        thousands: Whether thousands are set apart by commas.
        signed: Whether positive numbers have a plus sign. Half widths never have one.
        significant: Whether `digits` counts significant digits.
        smallest: Numbers below this are shown as "< smallest"; 0 for none.
        ends: How the ends of an interval are shown: as `[1, 2]` or as `1 to 2`.
    """

    digits: int = 0
    scale: float = 1.0
    thousands: bool = False
    signed: bool = False
    significant: bool = False
    smallest: float = 0.0
    ends: Literal["brackets", "to"] = "brackets"


PERCENT = NumberFormat(digits=2, scale=100)
"""Fractions of 1 as percentages with two digits."""


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Args:
        value: A number, a text, or None for nothing.
        half_width: Of the value's interval, in the value's unit.
        interval: Low and high end, where these are shown in place of a half width.
        n: Runs behind the value.
        mark: Whether the value is the best of its column or tied with it.
        note: Words that are shown behind the value, such as the number of runs.
        form: How numbers are shown.
        kind: What the value is; LaTeX sets measured numbers as mathematics, HTML has the kind as class.
        written: Words that are shown in place of the number, such as a published number with the paper's own digits.
        verdict: Where the interval lies by a published value, if there is one. Only the page shows it.
        tooltip: Where the number comes from. Only the page shows it.
    """

    value: str | float | int | None = None
    half_width: float | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    mark: Mark = ""
    note: str = ""
    form: NumberFormat = NumberFormat()
    kind: CellKind = ""
    written: str = ""
    verdict: PublishedVerdict | None = None
    tooltip: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is no value to show."""
        return self.value in (None, "") and self.interval is None and not self.written

    @property
    def sort_key(self) -> Value:
        """What a column is sorted by: the value, or the low end of an interval that stands alone; None for nothing."""
        if self.value is None and self.interval is not None:
            return self.interval[0]
        return self.value or None if isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Column:
    """A column's name. group: a common heading over neighbouring columns. numeric: aligned to the right."""

    name: str
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Line:
    """A cell for every column. name: what the line is, where a row has several."""

    cells: tuple[Cell, ...]
    name: str = ""


@dataclass(frozen=True)
class Row:
    """A row of one line or more.

    Args:
        head: The row's name.
        lines: Its lines, from the top.
        key: Our key of the method that the row is about; empty where there is none.
        sign: Shown behind the head; leads to a note below the table.
    """

    head: str
    lines: tuple[Line, ...]
    key: str = ""
    sign: str = ""

    @classmethod
    def single(cls, head: str, cells: Sequence[Cell], key: str = "", sign: str = "") -> "Row":
        """A row of one line."""
        return cls(head, (Line(tuple(cells)),), key, sign)

    def heads(self, line: Line) -> str:
        """What stands before a line: the head and its sign before the first one, nothing before the others."""
        return self.head + self.sign if line is self.lines[0] else ""


@dataclass(frozen=True)
class Sheet:
    """The values behind a table, at full precision, for CSV and JSON files. None is written as nothing.

    Args:
        header: Names of the columns.
        rows: A value for every column.
        only_json: Names of the columns that the CSV file does not have.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    only_json: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table that every writer takes. Texts are plain text, never markup.

    Args:
        title: What the table is.
        caption: How to read it.
        columns: Without the column of the rows' heads.
        rows: Each line has a cell for every column.
        sheet: What CSV and JSON files hold.
        first: Heading of the rows' heads.
        notes: What a reader must know beside the numbers.
        remarks: Longer notes on single numbers.

    Raises:
        ValueError: If a line has another number of cells than there are columns.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sheet: Sheet = Sheet((), ())
    first: str = "Method"
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            for line in row.lines:
                if len(line.cells) != len(self.columns):
                    counts = f"{len(line.cells)} cells for {len(self.columns)} columns"
                    raise ValueError(f"table {self.title!r}, row {row.head!r}: {counts}")

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all rows."""
        return tuple(line for row in self.rows for line in row.lines)

    @property
    def has_line_names(self) -> bool:
        """Whether lines are named, which takes a column for the names."""
        return any(line.name for line in self.lines)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups with the number of columns under each, in order; an ungrouped column is by itself."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if column.group and groups and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return groups

    @property
    def legend(self) -> str:
        """What the marks mean, as far as there are any."""
        marks = {cell.mark for line in self.lines for cell in line.cells}
        meanings = {
            "best": "Bold: the highest mean of its column.",
            "tied": "Italic: not significantly below it (t-test, paired where runs are matched, Holm's correction "
            "within the column, 5 %).",
            "untested": "Question mark: too few runs to be told from it.",
        }
        return " ".join(meaning for mark, meaning in meanings.items() if mark in marks)

    @property
    def full_caption(self) -> str:
        """Caption and legend."""
        return " ".join(part for part in (self.caption, self.legend) if part)


def measured_cell(interval: Interval | None, form: NumberFormat, mark: Mark = "", note: str = "") -> Cell:
    """A mean over runs with its half width; an empty cell for None."""
    if interval is None:
        return Cell()
    return Cell(interval.mean, interval.half_width, n=interval.n, mark=mark, note=note, form=form, kind="measured")
