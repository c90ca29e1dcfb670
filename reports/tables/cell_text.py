"""The text of a cell, with the same digits in every format."""

from collections.abc import Sequence

from reports.tables.table import Cell, NumberFormat


def joined(names: Sequence[str]) -> str:
    """Join names with commas, or with semicolons if a name has a comma."""
    return _separator(names).join(names)


def joined_with_and(names: Sequence[str]) -> str:
    """Join at least one name as in `a, b and c`, or as in `a, 1; b; and c` if a name has a comma."""
    *first, last = names
    separator = _separator(names)
    and_word = "; and" if separator == "; " else " and"
    return f"{separator.join(first)}{and_word} {last}" if first else last


def joined_groups(groups: Sequence[Sequence[str]]) -> str:
    """Join groups of names as in `a, b; c, d`, or as in `(a, 1; b); (c; d)` if a name has a comma."""
    if any("," in name for group in groups for name in group):
        return "; ".join(f"({'; '.join(group)})" for group in groups)
    return "; ".join(", ".join(group) for group in groups)


def _separator(names: Sequence[str]) -> str:
    return "; " if any("," in name for name in names) else ", "


def cell_text(cell: Cell) -> str:
    """Return the value with its interval, without mark and note. The text of an empty cell is empty."""
    return " ".join(part for part in (value_text(cell), interval_text(cell)) if part)


def value_text(cell: Cell) -> str:
    """Return the value alone, or the interval of a cell that has no value."""
    if cell.written:
        return cell.written
    if isinstance(cell.value, str):
        return cell.value
    if cell.value is not None:
        return number_text(cell.value, cell.form)
    return "" if cell.interval is None else _ends(cell.interval, cell.form)


def interval_text(cell: Cell) -> str:
    """Return what is shown after the value: its half width, or the ends of its interval."""
    if cell.value is None:
        return ""
    if cell.half_width is not None:
        return f"± {_digits(cell.half_width, cell.form)}"
    if cell.interval is None:
        return ""
    ends = _ends(cell.interval, cell.form)
    return f"({ends})" if cell.form.ends == "to" else ends


def number_text(value: float, form: NumberFormat) -> str:
    """Return a number with its sign, or "< smallest" if it is below the smallest number that `form` shows.

    A number that rounds to zero has no minus.
    """
    if form.smallest and value < form.smallest:
        return f"< {form.smallest:.{form.digits}f}"
    return _digits(value, form, sign="+" if form.signed else "")


def _digits(value: float, form: NumberFormat, sign: str = "") -> str:
    grouping = "," if form.thousands else ""
    if isinstance(value, int) and form.digits == 0 and form.scale == 1:
        return f"{value:{sign}{grouping}d}"
    return f"{form.scale * value:{sign}z{grouping}.{form.digits}{'g' if form.significant else 'f'}}"


def _ends(interval: tuple[float, float], form: NumberFormat) -> str:
    low, high = (number_text(end, form) for end in interval)
    return f"{low} to {high}" if form.ends == "to" else f"[{low}, {high}]"
