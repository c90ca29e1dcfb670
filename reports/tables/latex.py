"""Tables as LaTeX."""

from reports.tables.cell_text import cell_text
from reports.tables.table import Cell, Mark, Table

_ESCAPED = str.maketrans(
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
_MATHEMATICS: dict[Mark, str] = {"best": r"\mathbf{%s}", "tied": r"\mathit{%s}", "untested": "%s?"}
_TEXT: dict[Mark, str] = {"best": r"\textbf{%s}", "tied": r"\textit{%s}", "untested": "%s?"}
_WIDE, _TALL = 8, 40
"""A table with more columns or more lines than this is set in small type."""


def to_latex(table: Table) -> str:
    """Write a booktabs table. It compiles in any document with `\\usepackage{booktabs}`."""
    heads = 2 if table.has_line_names else 1
    alignment = "l" * heads + "".join("r" if column.numeric else "l" for column in table.columns)
    title = table.title if table.title.endswith(("?", "!", ".")) else f"{table.title}."
    caption = " ".join([title, table.full_caption, *table.notes])
    names = [escape_latex(table.first), *[""] * (heads - 1)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in table.columns]
    large = len(alignment) > _WIDE or len(table.lines) > _TALL
    small = [r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"] if large else []
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(caption)}}}",
            *small,
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            *_group_headings(table, heads),
            " & ".join(names) + r" \\",
            r"\midrule",
            *_rows(table),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            *(rf"\noindent{{\footnotesize {escape_latex(remark)}}}\par" for remark in table.remarks),
            "",
        ]
    )


def to_latex_document(table: Table) -> str:
    """Write a whole document that holds only the table, on a landscape page with small margins."""
    head = (
        r"\documentclass{article}",
        r"\usepackage[a4paper,landscape,margin=1cm]{geometry}",
        r"\usepackage{booktabs}",
    )
    return "\n".join([*head, r"\begin{document}", to_latex(table) + r"\end{document}", ""])


def escape_latex(text: str) -> str:
    """Escape plain text for LaTeX."""
    return text.translate(_ESCAPED)


def _group_headings(table: Table, heads: int) -> list[str]:
    """Write the headings over groups of columns, with a rule under each; nothing if there are no groups."""
    if not any(column.group for column in table.columns):
        return []
    cells, rules, start = [""] * heads, [], heads + 1
    for group, width in table.groups:
        shown = escape_latex(group[:1].upper() + group[1:])
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{shown}}}" if group else "")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" ".join(" & ".join(cells).split()) + r" \\", "".join(rules)]


def _rows(table: Table) -> list[str]:
    texts = []
    for index, row in enumerate(table.rows):
        if index and max(len(row.lines), len(table.rows[index - 1].lines)) > 1:
            texts.append(r"\addlinespace")
        for line in row.lines:
            heads = [row.heads(line), *([line.name] if table.has_line_names else [])]
            text = " & ".join([*map(escape_latex, heads), *map(_cell, line.cells)]) + r" \\"
            # LaTeX reads `[` and `*` after the end of a row as options of `\\`.
            texts.append("{}" + text if text.startswith(("[", "*")) else text)
    return texts


def _cell(cell: Cell) -> str:
    text = cell_text(cell)
    if not text:
        return escape_latex(cell.note)
    if cell.kind == "measured":
        number = text.replace("±", r"\pm").replace(",", "{,}")
        text = "$" + _MATHEMATICS.get(cell.mark, "%s") % number + "$"
    else:
        text = _TEXT.get(cell.mark, "%s") % escape_latex(text)
    return " ".join(part for part in (text, escape_latex(cell.note)) if part)
