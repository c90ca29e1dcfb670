"""Tables as LaTeX, for pdfLaTeX with the packages `fontenc` (T1), `booktabs`, `graphicx` and `longtable`."""

import re
from itertools import zip_longest

from reports.tables.table import Cell, Row, Table, cell_text

_LONG, _WIDE = 20, 8
"""A table of more lines than this can break between its rows; one of more columns is then set in smaller type."""

_LONG_HEAD = 40
"""Row heads of more characters than this wrap."""

_HEAD_WIDTH = "6cm"

_NO_REASON = {"", "inside", "below", "above", "no interval"}
"""Texts of verdict cells that do not say why there is no number."""

_SIGNS = {
    **{sign: "\\" + sign for sign in "&%_#${}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"},
    **{"±": r"$\pm$", "×": r"$\times$", "−": r"$-$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\to$", "√": r"$\surd$"},
    **{"†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}", "[": "{[}", "]": "{]}", "*": "{*}"},
}


def escape_latex(text: str) -> str:
    """Write plain text for LaTeX. Words in backticks are set in typewriter.

    Letters with accents stay as they are; fonts for other scripts are the business of the document.
    """
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    escaped = ["".join(_SIGNS.get(sign, sign) for sign in part) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if index % 2 else part for index, part in enumerate(escaped))


def to_latex(table: Table) -> str:
    """Write a booktabs table, scaled down if it is wider than the page, with a caption of one paragraph, notes below.

    A table of more than 20 lines is a `longtable`, others are a `table` environment.
    """
    wrapped = max((len(row.head) for row in table.rows), default=0) > _LONG_HEAD
    alignment = f"p{{{_HEAD_WIDTH}}}" if wrapped else "l"
    alignment += "".join("r" if column.numeric else "l" for column in table.columns)
    title = table.title if table.title.endswith(("?", "!", ".")) else f"{table.title}."
    caption = rf"\caption{{{escape_latex(' '.join([title, table.caption]))}}}"
    names = [escape_latex(table.first)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in table.columns]
    head = [r"\toprule", *_group_headings(table), " & ".join(names) + r" \\", r"\midrule"]
    write = _on_pages if is_long(table) else _on_one_page
    return "\n".join([*write(alignment, caption, head, _rows(table)), *_notes(table), _end(table), ""])


def is_long(table: Table) -> bool:
    """Return whether the table has too many lines for one page."""
    return len(table.rows) > _LONG


def _end(table: Table) -> str:
    return r"\endgroup" if is_long(table) else r"\end{table}"


def _on_one_page(alignment: str, caption: str, head: list[str], rows: list[str]) -> list[str]:
    scaled = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    tabular = [rf"\begin{{tabular}}{{{alignment}}}", *head, *rows, r"\bottomrule", r"\end{tabular}}"]
    return [r"\begin{table}", r"\centering", caption, scaled, *tabular]


def _on_pages(alignment: str, caption: str, head: list[str], rows: list[str]) -> list[str]:
    """Repeat the head on every page."""
    small = [r"\tiny", r"\setlength{\tabcolsep}{2pt}"] if len(alignment) > _WIDE else [r"\footnotesize"]
    return [
        r"\begingroup",
        *small,
        r"\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{alignment}}}",
        caption + r" \\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *rows,
        r"\end{longtable}",
    ]


def _notes(table: Table) -> list[str]:
    notes = [rf"{escape_latex(note)}\par" for note in (table.legend, *table.notes, *table.remarks) if note]
    return [r"\par\medskip", r"{\footnotesize\raggedright", *notes, "}"] if notes else []


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


def _rows(table: Table) -> list[str]:
    """Write the rows. On the pages of a long table, a row stays with those that belong to it (the star)."""
    texts: list[str] = []
    for row, below in zip_longest(table.rows, table.rows[1:]):
        continued = below is not None and below.below
        if texts and continued and not row.below:
            texts.append(r"\addlinespace")
        head = (r"\quad " if row.below else "") + escape_latex(row.head + row.sign)
        text = " & ".join([head, *_cells(row)])
        texts.append(text + (r" \\*" if continued and is_long(table) else r" \\"))
    return texts


def _cells(row: Row) -> list[str]:
    """Write the cells of a row. A row of verdicts that are all one reason says it once, across all columns."""
    texts = {cell_text(cell) if cell.kind == "verdict" else "" for cell in row.cells}
    if len(row.cells) > 1 and len(texts) == 1 and not texts & _NO_REASON:
        return [rf"\multicolumn{{{len(row.cells)}}}{{c}}{{{escape_latex(texts.pop())}}}"]
    return [_cell(cell) for cell in row.cells]


def _cell(cell: Cell) -> str:
    text = cell_text(cell)
    if not text:
        return escape_latex(cell.note)
    if cell.kind == "measured":
        number = text.replace("±", r"\pm").replace(",", "{,}")
        text = rf"$\mathbf{{{number}}}$" if cell.leads else f"${number}$"
    else:
        text = rf"\textbf{{{escape_latex(text)}}}" if cell.leads else escape_latex(text)
    return " ".join(part for part in (text, escape_latex(cell.note)) if part)
