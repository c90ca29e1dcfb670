"""Tables as LaTeX, for pdfLaTeX with the packages `fontenc` (T1) and `booktabs`."""

import re

from reports.tables.table import Cell, Table, cell_text

_SIGNS = {
    **{sign: "\\" + sign for sign in "&%_#${}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"},
    **{"±": r"$\pm$", "×": r"$\times$", "−": r"$-$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\to$", "√": r"$\surd$"},
    **{"“": "``", "”": "''", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}", "[": "{[}", "]": "{]}", "*": "{*}"},
}


def escape_latex(text: str) -> str:
    """Write plain text for LaTeX. Words in backticks are set in typewriter, words in quotation marks get LaTeX's own.

    Letters with accents stay as they are; fonts for other scripts are the business of the document.
    """
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    parts = [part if index % 2 else re.sub('"([^"]*)"', r"“\1”", part) for index, part in enumerate(parts)]
    escaped = ["".join(_SIGNS.get(sign, sign) for sign in part) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if index % 2 else part for index, part in enumerate(escaped))


def to_latex(table: Table) -> str:
    r"""Write a `table` environment: caption, `\label{tab:...}` from the title, a booktabs table, and notes below.

    Nothing is scaled or split. A table that is too wide or too long for a page takes fewer columns or rows (`chosen`).
    """
    title = table.title if table.title.endswith(("?", "!", ".")) else f"{table.title}."
    names = [escape_latex(table.first)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in table.columns]
    notes = [rf"{escape_latex(note)}\par" for note in (table.legend, *table.notes, *table.remarks) if note]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(' '.join([title, table.caption]))}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table.title.lower()).strip('-')}}}",
        rf"\begin{{tabular}}{{l{''.join('r' if column.numeric else 'l' for column in table.columns)}}}",
        r"\toprule",
        *_group_headings(table),
        " & ".join(names) + r" \\",
        r"\midrule",
        *_rows(table),
        r"\bottomrule",
        r"\end{tabular}",
        *([r"\par\medskip", r"{\footnotesize\raggedright", *notes, "}"] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


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
    spaced = any(row.below for row in table.rows)
    lines: list[str] = []
    for row in table.rows:
        lines += [r"\addlinespace"] if spaced and lines and not row.below else []
        head = (r"\quad " if row.below else "") + escape_latex(row.head + row.sign)
        lines.append(" & ".join([head, *map(_cell, row.cells)]) + r" \\")
    return lines


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
