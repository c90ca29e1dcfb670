"""The table model: columns in groups, rows of typed cells, and the values for CSV and JSON files.

A cell holds a value, not its text. The writers make the text: Markdown, LaTeX, HTML, CSV, JSON, the terminal, the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from results.answer.intervals import Interval
from results.numbers import AS_IT_IS, NumberFormat
from results.wording import counted

CellKind = Literal["", "measured", "published", "verdict"]
"""Kind of a cell's value.

measured: from our runs. published: from a paper. verdict: the place of our prediction interval by a published value.
"""

Value = str | float | int | None


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Attributes:
        value: A number, a text, or None for no value.
        half_width: Half width of the value's interval, in the unit of the value.
        leads: Whether the value is of a method that no other is shown to be better than; it is bold.
        note: Text that is shown after the value, such as the number of runs.
        kind: Kind of the value. LaTeX sets measured numbers as mathematics; HTML uses the kind as a class.
        written: Text that is shown instead of the number, such as a published number with the digits of the paper.
    """

    value: str | float | int | None = None
    half_width: float | None = None
    leads: bool = False
    note: str = ""
    form: NumberFormat = AS_IT_IS
    kind: CellKind = ""
    written: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether its interval passes an end of the scale, and does not hold all of it."""
        if self.half_width is None or not isinstance(self.value, float | int):
            return False
        return self.form.is_cut(self.value, self.half_width)

    @property
    def sort_key(self) -> Value:
        """The key for sorting: the value; None for an empty cell."""
        return self.value or None if isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: Heading of the column.
        group: Common heading over neighbouring columns; empty for none.
        numeric: Whether the column holds numbers, which are aligned to the right.
        meaning: A sentence for the notes of LaTeX tables that have the column, if its name does not say what it is.
    """

    name: str
    group: str = ""
    numeric: bool = True
    meaning: str = ""

    @property
    def title(self) -> str:
        """Group and heading, by which a column is asked for."""
        return f"{self.group} {self.name}".strip()


@dataclass(frozen=True)
class Row:
    """A row.

    Attributes:
        key: Key of the row's method in this suite; empty if the row has none.
        sign: Sign after the head that refers to a note below the table.
        below: Whether the row belongs to the one above it.
    """

    head: str
    cells: Sequence[Cell]
    key: str = ""
    sign: str = ""
    below: bool = False


@dataclass(frozen=True)
class Sheet:
    """The values of a table, for CSV and JSON files. None is an empty field in CSV."""

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table for all writers. Texts are plain text, never markup.

    Attributes:
        columns: The columns without the column of row heads.
        rows: The rows, each with one cell for each column.
        own_sheet: The content of CSV and JSON files; None for the cells, each with its half width.
        first: Heading of the column of row heads.
        caption: What the numbers are, in one paragraph.
        notes: What a reader must know beside the numbers.
        remarks: How to read the table, and longer notes on single numbers.
        label: What LaTeX documents refer to it by; empty for the title.
        in_latex: Titles of the columns that LaTeX tables have if none are asked for; empty for all.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    own_sheet: Sheet | None = None
    first: str = "Method"
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    label: str = ""
    in_latex: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                counts = f"{counted(len(row.cells), 'cell')} for {counted(len(self.columns), 'column')}"
                raise ValueError(f"table {self.title!r}, row {row.head!r}: {counts}")

    def _place(self, title: str) -> int:
        titles = [column.title for column in self.columns]
        if title not in titles:
            raise KeyError(f"table {self.title!r} has no column {title!r}; there are {', '.join(titles)}")
        return titles.index(title)

    def column(self, title: str) -> list[Cell]:
        """Return the cells of a column by its group and heading, such as `concatenated MAP@R`."""
        place = self._place(title)
        return [row.cells[place] for row in self.rows]

    def row(self, name: str) -> dict[str, Cell]:
        """Return the cells of a row, by its key or head, by the titles of their columns."""
        found = next(row for row in self.rows if name in (row.key, row.head))
        return {column.title: cell for column, cell in zip(self.columns, found.cells, strict=True)}

    def with_columns(self, titles: Sequence[str]) -> "Table":
        """Return the table with these columns alone, in their order; its files have all that they had."""
        places = [self._place(title) for title in titles]
        rows = (replace(row, cells=[row.cells[place] for place in places]) for row in self.rows)
        columns = tuple(self.columns[place] for place in places)
        return replace(self, columns=columns, rows=tuple(rows), own_sheet=self.sheet, in_latex=())

    @property
    def sheet(self) -> Sheet:
        """The content of CSV and JSON files, in the units of the table unless it has a sheet of its own."""
        if self.own_sheet is not None:
            return self.own_sheet
        spreads = [self._spread(place) for place in range(len(self.columns))]
        header = [self.first]
        for column, spread in zip(self.columns, spreads, strict=True):
            header += [column.title, *([f"{column.title} {spread}"] if spread else [])]
        rows = []
        for row in self.rows:
            values: list[Value] = [row.head]
            for cell, spread in zip(row.cells, spreads, strict=True):
                values += [_plain(cell, cell.value), *([_plain(cell, cell.half_width)] if spread else [])]
            rows.append(tuple(values))
        return Sheet(tuple(header), tuple(rows))

    def _spread(self, place: int) -> str:
        """What stands beside the numbers of a column: half widths, or for ratios the factor to the interval's ends."""
        wide = [row.cells[place] for row in self.rows if row.cells[place].half_width is not None]
        return "" if not wide else "factor" if wide[0].form.exponential else "±"

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns in order, each with its number of columns. A column without a group counts alone."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if column.group and groups and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return groups

    @property
    def legend(self) -> str:
        """Explains what is bold in the table, if anything."""
        leads = any(cell.leads for row in self.rows for cell in row.cells)
        return "Bold: no other method is shown to be better." if leads else ""

    @property
    def full_caption(self) -> str:
        """Caption and legend."""
        return " ".join(part for part in (self.caption, self.legend) if part)


def _plain(cell: Cell, value: str | float | int | None) -> Value:
    """A value in the unit that is shown, with 12 digits."""
    return short(cell.form.shown(value)) if isinstance(value, float) else value


def short(value: Value) -> Value:
    """Round a number to twelve digits: those behind depend on the processor. Other values are as they are."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def with_notes(table: Table, which: str) -> Table:
    """Leave out notes: `none` leaves out all but those on signs of rows, `short` the remarks, `all` none."""
    signs = tuple(sign for row in table.rows for sign in row.sign)
    notes = tuple(note for note in table.notes if note.startswith(signs)) if which == "none" else table.notes
    if which == "none":
        table = replace(table, columns=tuple(replace(column, meaning="") for column in table.columns))
    return replace(table, notes=notes, remarks=table.remarks if which == "all" else ())


def chosen(table: Table, columns: Sequence[str], rows: Sequence[str]) -> Table:
    """Keep some columns, by heading or group, and some rows, by method or head, in any case; none named keeps all.

    CSV and JSON files then have the cells that are left. Raises ValueError with the known names for an unknown one.
    """
    headings = [{one.name, one.group, one.title} - {""} for one in table.columns]
    heads: list[set[str]] = []
    for row in table.rows:
        heads.append(heads[-1] if row.below else {row.head, row.key} - {""})
    places = _places("column", columns, headings)
    kept = [table.rows[place] for place in _places("row", rows, heads)]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(replace(row, cells=[row.cells[place] for place in places]) for row in kept),
        own_sheet=None,
        in_latex=() if columns else table.in_latex,
    )


def _places(what: str, wanted: Sequence[str], names: Sequence[set[str]]) -> list[int]:
    asked, known = {one.casefold() for one in wanted}, set().union(*names)
    if unknown := asked - {one.casefold() for one in known}:
        raise ValueError(f"no {what} {min(unknown)!r}; there are {', '.join(sorted(known))}")
    return [place for place, own in enumerate(names) if not asked or any(one.casefold() in asked for one in own)]


def measured_cell(interval: Interval | None, form: NumberFormat, *, leads: bool = False, note: str = "") -> Cell:
    """Make a cell of a mean over runs with its half width. None makes an empty cell."""
    if interval is None:
        return Cell()
    return Cell(interval.mean, interval.half_width, leads, note, form, kind="measured")


def cell_text(cell: Cell) -> str:
    """Return the value with its half width, without mark and note. The text of an empty cell is empty."""
    return " ".join(part for part in (value_text(cell), half_width_text(cell)) if part)


def value_text(cell: Cell) -> str:
    """Return the value alone. A number that rounds to zero has no minus; one below `smallest` is "< smallest"."""
    if cell.written or cell.value is None:
        return cell.written
    if isinstance(cell.value, str):
        return cell.value
    return cell.form.text(cell.value)


def half_width_text(cell: Cell) -> str:
    """Return the interval that is shown after the value, if any."""
    if cell.half_width is None or not isinstance(cell.value, float | int):
        return ""
    return cell.form.interval(cell.value, cell.half_width)
