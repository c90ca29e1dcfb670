"""A drawing as Markdown, CSV, LaTeX and HTML: the only place that knows how these formats are written."""

import csv
import io
from collections.abc import Callable
from html import escape as escape_html

from reports.tables.table import Cell, Column, Drawing, Line, Mark, Row, Sheet, Value

_LATEX = str.maketrans(
    {
        **{sign: "\\" + sign for sign in "&%_#${}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": r"$-$",
        "†": r"\dag{}",
        "–": "--",
    }
)
_WIDE, _TALL = 8, 40
"""With more columns or lines a LaTeX table is set in small type."""


def to_markdown(drawing: Drawing) -> str:
    """A pipe table; marks are bold and italic."""
    names = [drawing.first, *([""] if drawing.has_line_names else [])]
    names += [" ".join(part for part in (column.group, column.name) if part) for column in drawing.columns]
    aligned = ["---"] * (len(names) - len(drawing.columns))
    aligned += ["--:" if column.numeric else "---" for column in drawing.columns]
    lines = [f"**{drawing.title}**", "", _piped(names), "|" + "|".join(aligned) + "|"]
    lines += [
        _piped([*_heads(drawing, row, line), *(_markdown_cell(cell) for cell in line.cells)])
        for row in drawing.rows
        for line in row.lines
    ]
    notes = [f"\n- {note}" for note in (*drawing.notes, *drawing.remarks)]
    return "\n".join([*lines, "", _caption(drawing), *notes]) + "\n"


def to_csv(drawing: Drawing) -> str:
    """The values behind the table, at full precision: nothing is lost to rounding."""
    return sheet_to_csv(drawing.sheet)


def sheet_to_csv(sheet: Sheet) -> str:
    """Values as CSV; floating-point numbers with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(sheet.header)
    writer.writerows([_csv_field(value) for value in row] for row in sheet.rows)
    return buffer.getvalue()


def to_latex(drawing: Drawing) -> str:
    """A booktabs table that compiles as it is in a document with `\\usepackage{booktabs}`."""
    heads = 2 if drawing.has_line_names else 1
    alignment = "l" * heads + "".join("r" if column.numeric else "l" for column in drawing.columns)
    title = drawing.title if drawing.title.endswith(("?", "!", ".")) else f"{drawing.title}."
    caption = " ".join([title, _caption(drawing), *drawing.notes])
    names = [escape_latex(drawing.first), *[""] * (heads - 1)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in drawing.columns]
    large = len(alignment) > _WIDE or sum(len(row.lines) for row in drawing.rows) > _TALL
    small = [r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"] if large else []
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(caption)}}}",
            *small,
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            *_latex_groups(drawing, heads),
            " & ".join(names) + r" \\",
            r"\midrule",
            *_latex_rows(drawing),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            *(rf"\noindent{{\footnotesize {escape_latex(remark)}}}\par" for remark in drawing.remarks),
            "",
        ]
    )


def to_latex_document(drawing: Drawing) -> str:
    """A whole document with nothing but the table, on a sheet that is wide enough for the widest."""
    head = (
        r"\documentclass{article}",
        r"\usepackage[a4paper,landscape,margin=1cm]{geometry}",
        r"\usepackage{booktabs}",
    )
    return "\n".join([*head, r"\begin{document}", to_latex(drawing) + r"\end{document}", ""])


def to_html(drawing: Drawing) -> str:
    """A fragment: the table with its caption, headings with their scopes, and the notes below it."""
    notes = [f"<li>{escape_html(note)}</li>" for note in (*drawing.notes, *drawing.remarks)]
    return "\n".join(
        [
            '<div class="result-table">',
            "<table>",
            f"<caption><strong>{escape_html(drawing.title)}</strong> {escape_html(_caption(drawing))}</caption>",
            "<thead>",
            *_html_head(drawing),
            "</thead>",
            *(text for row in drawing.rows for text in _html_row(drawing, row)),
            "</table>",
            *(['<ul class="notes">', *notes, "</ul>"] if notes else []),
            "</div>",
            "",
        ]
    )


WRITERS: dict[str, Callable[[Drawing], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "latex-document": to_latex_document,
    "html": to_html,
}
"""By the names that the command line has for them."""


def escape_latex(text: str) -> str:
    """Text for LaTeX."""
    return text.translate(_LATEX)


def _caption(drawing: Drawing) -> str:
    return " ".join(part for part in (drawing.caption, drawing.legend) if part)


def _heads(drawing: Drawing, row: Row, line: Line) -> list[str]:
    """What stands before a line's cells; a row's head stands on its first line only."""
    head = row.head if line is row.lines[0] else ""
    return [head, line.name] if drawing.has_line_names else [head]


def _piped(fields: list[str]) -> str:
    return "| " + " | ".join(" ".join(field.split()).replace("|", r"\|") for field in fields) + " |"


def _markdown_cell(cell: Cell) -> str:
    signs: dict[Mark, tuple[str, str]] = {"best": ("**", "**"), "tied": ("*", "*"), "untested": ("", "?")}
    before, after = signs.get(cell.mark, ("", ""))
    return " ".join(part for part in (f"{before}{cell.text}{after}", cell.aside) if part)


def _csv_field(value: Value) -> str | int:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else value


def _latex_groups(drawing: Drawing, heads: int) -> list[str]:
    """The headings over groups of columns with a rule under each; nothing where no column has one."""
    if not any(column.group for column in drawing.columns):
        return []
    cells, rules, at = [""] * heads, [], heads + 1
    for group, width in drawing.groups:
        shown = escape_latex(group[:1].upper() + group[1:])
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{shown}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    return [" ".join(" & ".join(cells).split()) + r" \\", "".join(rules)]


def _latex_rows(drawing: Drawing) -> list[str]:
    texts = []
    for place, row in enumerate(drawing.rows):
        if place and max(len(row.lines), len(drawing.rows[place - 1].lines)) > 1:
            texts.append(r"\addlinespace")
        for line in row.lines:
            heads = [escape_latex(head) for head in _heads(drawing, row, line)]
            text = " & ".join([*heads, *(_latex_cell(cell) for cell in line.cells)]) + r" \\"
            # Behind the end of a row these would be read as its options.
            texts.append("{}" + text if text.startswith(("[", "*")) else text)
    return texts


def _latex_cell(cell: Cell) -> str:
    if not cell.text:
        return escape_latex(cell.aside)
    if cell.kind == "measured":
        fonts: dict[Mark, str] = {"best": r"\mathbf{%s}", "tied": r"\mathit{%s}", "untested": "%s?"}
        shown = cell.text.replace("±", r"\pm").replace(",", "{,}")
        text = "$" + fonts.get(cell.mark, "%s") % shown + "$"
    else:
        fonts = {"best": r"\textbf{%s}", "tied": r"\textit{%s}", "untested": "%s?"}
        text = fonts.get(cell.mark, "%s") % escape_latex(cell.text)
    return " ".join(part for part in (text, escape_latex(cell.aside)) if part)


def _html_head(drawing: Drawing) -> list[str]:
    grouped = any(column.group for column in drawing.columns)
    tall = ' rowspan="2"' if grouped else ""
    wide = ' colspan="2"' if drawing.has_line_names else ""
    upper, lower = [f'<th scope="col"{tall}{wide}>{escape_html(drawing.first)}</th>'], []
    columns = iter(drawing.columns)
    for group, width in drawing.groups:
        own = [next(columns) for _ in range(width)]
        if group:
            upper.append(f'<th scope="colgroup" colspan="{width}">{escape_html(group)}</th>')
            lower += [_html_column(column) for column in own]
        else:
            upper += [_html_column(column, tall) for column in own]
    return [f"<tr>{''.join(cells)}</tr>" for cells in (upper, lower) if cells]


def _html_column(column: Column, span: str = "") -> str:
    kind = ' class="number"' if column.numeric else ""
    return f'<th scope="col"{span}{kind}>{escape_html(column.name)}</th>'


def _html_row(drawing: Drawing, row: Row) -> list[str]:
    """A body of its own for every row, so that a head over several lines belongs to all of them."""
    texts = ["<tbody>"]
    for line in row.lines:
        cells = []
        if line is row.lines[0]:
            several = len(row.lines) > 1
            scope = f'scope="rowgroup" rowspan="{len(row.lines)}"' if several else 'scope="row"'
            cells.append(f"<th {scope}>{escape_html(row.head)}</th>")
        if drawing.has_line_names:
            cells.append(f'<th scope="row" class="line">{escape_html(line.name)}</th>')
        pairs = zip(line.cells, drawing.columns, strict=True)
        texts.append(f"<tr>{''.join([*cells, *(_html_cell(cell, column) for cell, column in pairs)])}</tr>")
    return [*texts, "</tbody>"]


def _html_cell(cell: Cell, column: Column) -> str:
    classes = [name for name in ("number" if column.numeric else "", cell.kind, cell.mark) if name]
    kind = f' class="{escape_html(" ".join(classes))}"' if classes else ""
    signs: dict[Mark, str] = {"best": "<strong>%s</strong>", "tied": "<em>%s</em>", "untested": "%s?"}
    text = signs.get(cell.mark, "%s") % escape_html(cell.text)
    aside = f' <span class="aside">{escape_html(cell.aside)}</span>' if cell.aside else ""
    return f"<td{kind}>{text}{aside}</td>"
