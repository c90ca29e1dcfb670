"""The table writers, by the name of the format on the command line.

LaTeX is for pdfLaTeX with the packages `fontenc` (T1) and `booktabs`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reports.tables.table import Cell, Column, Row, Table, Value, cell_text, half_width_text, short, value_text

_SIGNS = {
    **{sign: "\\" + sign for sign in "&%_#${}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"},
    **{"±": r"$\pm$", "×": r"$\times$", "−": r"$-$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\to$", "√": r"$\surd$"},
    "²": "$^2$",
    **{"“": "``", "”": "''", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}", "[": "{[}", "]": "{]}", "*": "{*}"},
}


_PAGE = 40
"""Rows that a page has room for, beside a caption and short notes."""

_TWO_COLUMNS = "% In a document of two columns write table* for table, at both ends."
_PACKAGES = r"% Needs \usepackage[T1]{fontenc} and \usepackage{booktabs}."


def escape_latex(text: str) -> str:
    """Write plain text for LaTeX. Words in backticks are set in typewriter, words in quotation marks get LaTeX's own.

    Letters with accents stay as they are; fonts for other scripts are the business of the document.
    """
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))  # Every second one was in backticks.
    return "".join(_typewriter(part) if index % 2 else _prose(part) for index, part in enumerate(parts))


def _typewriter(text: str) -> str:
    return rf"\texttt{{{_escaped(text)}}}"


def _prose(text: str) -> str:
    return _EXPONENT.sub(_power, _escaped(re.sub('"([^"]*)"', r"“\1”", text)))


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)


_EXPONENT = re.compile(r"(?<![\w.])(\d[\d.]*)e(\+|-|\$-\$)(\d{2,})(?![\w.]*\d)")
"""A number such as 3.5e-07, as it stands in escaped text or in a cell."""


def _power(number: re.Match[str]) -> str:
    return f"${_times(number)}$"


def _times(number: re.Match[str]) -> str:
    sign = "" if number[2] == "+" else "-"
    return rf"{number[1]} \times 10^{{{sign}{int(number[3])}}}"


def to_latex(table: Table) -> str:
    r"""Write a `table` environment: caption, `\label{tab:...}`, a booktabs table, and notes below.

    A comment names the packages that it needs. Without chosen columns the table has those `in_latex`. Nothing is scaled
    or split. A table that is too wide or too long for a page takes fewer columns or rows (`chosen`).
    """
    every = table
    if table.in_latex:
        table = table.with_columns(table.in_latex)
    title = table.title if table.title.endswith(("?", "!", ".")) else f"{table.title}."
    names = [escape_latex(table.first)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in table.columns]
    texts = (table.legend, *table.notes, *(column.meaning for column in table.columns), *table.remarks)
    notes = [rf"{escape_latex(note)}\par" for note in dict.fromkeys(texts) if note]
    layout = "".join(["l", *("r" if column.numeric else "l" for column in table.columns)])
    own = [column.name for column in table.columns]
    hint = ""
    if len(set(own)) > 1:
        hint = f" Too wide? Take fewer columns: --columns {'MAP@R' if 'MAP@R' in own else own[0]}"
    if len(every.columns) > len(table.columns):
        hint = f" All columns: --columns {_named(every.columns)}"
    if len(table.rows) > _PAGE:
        hint = f" Longer than a page: take fewer rows.{hint}"
    lines = [
        f"{_PACKAGES}{hint}",
        _TWO_COLUMNS,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(' '.join([title, table.caption]))}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', (table.label or table.title).lower()).strip('-')}}}",
        r"\smallskip",
        r"\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{@{{}}{layout}@{{}}}}",
        r"\toprule",
        *_group_headings(table),
        " & ".join(names) + r" \\",
        r"\midrule",
        *_latex_rows(table),
        r"\bottomrule",
        r"\end{tabular}",
        *([r"\par\medskip", r"{\footnotesize\raggedright", *notes, "}"] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _named(columns: Sequence[Column]) -> str:
    """Names of columns for the command line: their groups, and headings of those without one."""
    names = ",".join(dict.fromkeys(column.group or column.name for column in columns))
    return f'"{names}"' if " " in names else names


def _group_headings(table: Table) -> list[str]:
    if not any(column.group for column in table.columns):
        return []
    cells, rules, start = [""], [], 2
    for group, width in table.groups:
        shown = escape_latex(group[:1].upper() + group[1:])
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{shown}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(cells) + r" \\", "".join(rules)]


def _latex_rows(table: Table) -> list[str]:
    spaced = any(row.below for row in table.rows)
    lines: list[str] = []
    for row in table.rows:
        lines += [r"\addlinespace"] if spaced and lines and not row.below else []
        head = (r"\quad " if row.below else "") + escape_latex(row.head + row.sign)
        lines.append(" & ".join([head, *map(_latex_cell, row.cells)]) + r" \\")
    return lines


def _latex_cell(cell: Cell) -> str:
    text, note = cell_text(cell), escape_latex(cell.note)
    if not text:
        return note
    if cell.kind == "measured":
        number = _latex_number(text)
        written = rf"$\mathbf{{{number}}}$" if cell.leads else f"${number}$"
    else:
        words = escape_latex(text)
        written = rf"\textbf{{{words}}}" if cell.leads else words
    return f"{written} {note}".rstrip()


def _latex_number(text: str) -> str:
    """Write a number with its interval as mathematics."""
    text = _EXPONENT.sub(_times, text).replace("±", r"\pm").replace(" [", r"\ [")
    return re.sub(r",(?=\d)", "{,}", text)


if TYPE_CHECKING:
    from jinja2 import Environment


def to_markdown(table: Table) -> str:
    """Write a pipe table with its title, caption and notes. Leading values are bold."""
    names = [column.title for column in table.columns]
    alignment = ["---", *("--:" if column.numeric else "---" for column in table.columns)]
    lines = [f"**{' '.join(table.title.split())}**", "", _piped([table.first, *names]), "|" + "|".join(alignment) + "|"]
    lines += [_piped([row.head + row.sign, *map(_markdown_cell, row.cells)]) for row in table.rows]
    notes = [f"\n- {note}" for note in (*table.notes, *table.remarks)]
    return _without_html("\n".join([*lines, "", table.full_caption, *notes])) + "\n"


def _without_html(text: str) -> str:
    """Return a text in which no title or name is a tag of HTML, which Markdown would pass on."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)


def _piped(fields: list[str]) -> str:
    return "| " + " | ".join(" ".join(field.split()).replace("|", r"\|") for field in fields) + " |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell_text(cell)}**" if cell.leads else cell_text(cell)
    return " ".join(part for part in (text, cell.note) if part)


def to_csv(table: Table) -> str:
    """Write the table's sheet as CSV, numbers with twelve digits."""
    buffer, sheet = io.StringIO(), table.sheet
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([sheet.header, *(map(_field, row) for row in sheet.rows)])
    return buffer.getvalue()


def to_json(table: Table) -> str:
    """Write the table's sheet as a JSON list with one object per row."""
    sheet = table.sheet
    rows = [dict(zip(sheet.header, map(short, values), strict=True)) for values in sheet.rows]
    return json.dumps(rows, indent=1) + "\n"


def _field(value: Value) -> str | int:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        return f"'{value}"  # A spreadsheet would take it for a formula.
    return repr(short(value)) if isinstance(value, float) else value


def to_html(table: Table) -> str:
    """Write the table as an HTML fragment with heading, caption and notes. The page shows it as it is.

    A table in which no row belongs to another is `sortable`, and its cells have their values for sorting.
    """
    template = templates(Path(__file__).parent).get_template("table.html")
    return template.render(table=table, cells=lambda row: _html_cells(table, row)) + "\n"


@cache
def templates(folder: Path) -> Environment:
    """Return the templates of a folder: every text is escaped, and an unknown name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # Only HTML needs it.

    loader = FileSystemLoader(folder)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _html_cells(table: Table, row: Row) -> Iterator[tuple[Cell, str, str, str]]:
    """Yield each cell with its classes, its value and its half width."""
    for cell, column in zip(row.cells, table.columns, strict=True):
        # The words of a verdict, such as `not-run`, are a class too, so that a style sheet can colour each verdict.
        verdict = str(cell.value).replace(" ", "-") if cell.kind == "verdict" else ""
        classes = filter(None, ("number" if column.numeric else "", cell.kind, verdict))
        yield cell, " ".join(classes), value_text(cell), half_width_text(cell)


WRITERS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "html": to_html,
    "json": to_json,
}
