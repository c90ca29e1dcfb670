"""What a table looks like, apart from any format: columns in groups, rows of one or more lines, marks, notes.

`writers` turns it into Markdown, CSV, LaTeX and HTML. Every text is plain text, never markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from results.statistics.intervals import Interval

Mark = Literal["", "best", "tied", "untested"]
"""Of a column's values: the highest mean, one that is not significantly lower, one with too few runs to tell."""

Value = str | float | int | None


@dataclass(frozen=True)
class Cell:
    """text: as shown; empty for nothing. aside: shown behind it, such as the number of runs.

    kind: what the text is: `measured` numbers are set as mathematics in LaTeX; HTML has it as class.
    """

    text: str = ""
    mark: Mark = ""
    aside: str = ""
    kind: str = ""


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
    """A row under its head, of one line or more."""

    head: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Sheet:
    """The values behind a table, at full precision: what its CSV file holds. None is written as nothing."""

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A table to be written.

    first: heading of the rows' heads. notes: what must be known beside the numbers. remarks: longer, on single numbers.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sheet: Sheet
    first: str = "Method"
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            for line in row.lines:
                if len(line.cells) != len(self.columns):
                    counts = f"{len(line.cells)} cells for {len(self.columns)} columns"
                    raise ValueError(f"table {self.title!r}, row {row.head!r}: {counts}")

    @property
    def has_line_names(self) -> bool:
        """Whether lines are named, which takes a column of its own."""
        return any(line.name for row in self.rows for line in row.lines)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups with the number of columns under each, in order; an ungrouped column is by itself."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if column.group and found and found[-1][0] == column.group:
                found[-1] = (column.group, found[-1][1] + 1)
            else:
                found.append((column.group, 1))
        return found

    @property
    def legend(self) -> str:
        """What the marks mean, as far as there are any."""
        marks = {cell.mark for row in self.rows for line in row.lines for cell in line.cells}
        meanings = {
            "best": "Bold: the highest mean of its column.",
            "tied": "Italic: not significantly below it (t-test, paired where runs are matched, Holm's correction "
            "within the column, 5 %).",
            "untested": "Question mark: too few runs to be told from it.",
        }
        return " ".join(meaning for mark, meaning in meanings.items() if mark in marks)


def plain_rows(heads: Sequence[str], cells: Sequence[Sequence[Cell]]) -> tuple[Row, ...]:
    """Rows of one line each."""
    return tuple(Row(head, (Line(tuple(own)),)) for head, own in zip(heads, cells, strict=True))


def percent(interval: Interval | None, mark: Mark = "", aside: str = "") -> Cell:
    """A measured fraction of 1 in percent, mean ± half width; an empty cell for None."""
    if interval is None:
        return Cell()
    half = None if interval.half_width is None else 100 * interval.half_width
    return Cell(_mean_and_half(100 * interval.mean, half, "{:.2f}"), mark, aside, "measured")


def number(interval: Interval | None, form: str, mark: Mark = "", aside: str = "") -> Cell:
    """A measured number in its own unit; form: such as `{:.2f}`."""
    if interval is None:
        return Cell()
    return Cell(_mean_and_half(interval.mean, interval.half_width, form), mark, aside, "measured")


def _mean_and_half(mean: float, half: float | None, form: str) -> str:
    return form.format(mean) if half is None else f"{form.format(mean)} ± {form.format(half)}"
