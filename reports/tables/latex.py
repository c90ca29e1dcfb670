"""Tables as LaTeX."""

from math import ceil

from reports.tables.latex_text import FALLBACK, escape_latex, printed
from reports.tables.table import Cell, Line, Mark, Table, cell_text

_MATHEMATICS: dict[Mark, str] = {"best": r"\mathbf{%s}", "tied": r"\mathit{%s}", "untested": "%s?"}
_TEXT: dict[Mark, str] = {"best": r"\textbf{%s}", "tied": r"\textit{%s}", "untested": "%s?"}
_WIDE, _VERY_WIDE, _TALL = 8, 13, 40
"""A table with more columns or more lines than this is set in small type, or in even smaller type."""

_SIZES = (("", 5.2, 6.0), (r"\scriptsize", 4.2, 3.0), (r"\tiny", 3.6, 3.0), (r"\tiny", 3.6, 2.0), (r"\tiny", 3.6, 1.0))
"""Types from large to small: command, width of a character, and half of the space between two columns, in points."""

_PAGE_WIDTH = 788.0
"""Width of the text of `to_latex_document` in points."""

_LONG_HEAD, _WRAPPED_HEAD, _POINTS_PER_CM = 40, 5, 28.45
"""Row heads of more characters than this wrap at this width in centimetres, or at that of their longest word."""

_LONG = 20
"""A table with more lines than this may not fit on a page with its notes. It can break between its rows."""

_NO_REASON = {"", "inside", "below", "above", "no interval"}
"""Texts of verdict cells that do not say why there is no number."""


def to_latex(table: Table) -> str:
    """Write a booktabs table with its notes in the same box, so that they stay together.

    Returns:
        A `table` environment, which needs `\\usepackage{booktabs}`. A table of more than 20 lines is a `longtable`,
        which also needs `\\usepackage{longtable}`.
    """
    heads = 2 if table.has_line_names else 1
    columns = heads + len(table.columns)
    command, character, space = _type(table, columns)
    small = [command, rf"\setlength{{\tabcolsep}}{{{space:g}pt}}"] if command else []
    wrapped = _wrapped_head(table, character)
    alignment = (f"p{{{wrapped}cm}}" if wrapped else "l") + "l" * (heads - 1)
    alignment += "".join("r" if column.numeric else "l" for column in table.columns)
    title = table.title if table.title.endswith(("?", "!", ".")) else f"{table.title}."
    caption = rf"\caption{{{escape_latex(' '.join([title, table.full_caption]).strip())}}}"
    names = [escape_latex(table.first), *[""] * (heads - 1)]
    names += ["$n$" if column.name == "n" else escape_latex(column.name) for column in table.columns]
    head = [r"\toprule", *_group_headings(table, heads), " & ".join(names) + r" \\", r"\midrule"]
    write = _on_pages if is_long(table) else _on_one_page
    latex = "\n".join([*write(columns, alignment, caption, small, head, _rows(table), _notes(table)), ""])
    return f"{FALLBACK}\n{latex}" if r"\unicodechar" in latex else latex


def to_latex_document(table: Table) -> str:
    """Write a whole document that holds only the table, on landscape pages with small margins."""
    head = (
        r"\documentclass{article}",
        r"\usepackage[a4paper,landscape,margin=1cm]{geometry}",
        r"\usepackage{booktabs}",
        *([r"\usepackage{longtable}"] if is_long(table) else []),
    )
    return "\n".join([*head, r"\begin{document}", to_latex(table) + r"\end{document}", ""])


def is_long(table: Table) -> bool:
    """Return whether the table has too many lines for one page."""
    return len(table.lines) > _LONG


def _type(table: Table, columns: int) -> tuple[str, float, float]:
    """Choose the type by the numbers of columns and lines; then take smaller type until the table fits on the page."""
    largest = 2 if columns > _VERY_WIDE else 1 if columns > _WIDE or len(table.lines) > _TALL else 0
    fitting = [size for size in _SIZES[largest:] if _width(table, size[1], size[2]) <= _PAGE_WIDTH]
    return fitting[0] if fitting else _SIZES[-1]


def _wrapped_head(table: Table, character: float) -> int:
    """Width in centimetres at which long row heads wrap; 0 if none is long."""
    heads = [printed(row.head) for row in table.rows]
    if max(map(len, heads), default=0) <= _LONG_HEAD:
        return 0
    longest = max(len(word) for head in heads for word in (*head.split(), ""))
    return max(_WRAPPED_HEAD, ceil(longest * character / _POINTS_PER_CM))


def _width(table: Table, character: float, space: float) -> float:
    wrapped = _wrapped_head(table, character)
    head = max((len(printed(row.heads(line))) for row in table.rows for line in row.lines), default=0)
    names = max((len(printed(line.name)) for line in table.lines), default=0)
    widths = []
    for index, column in enumerate(table.columns):
        cells = [line.cells[index] for line in table.lines if not _reason(line)]
        texts = [" ".join(part for part in (cell_text(cell), cell.note) if part) for cell in cells]
        widths.append(max(len(printed(text)) for text in (column.name, *texts)) * character)
    head_width = wrapped * _POINTS_PER_CM if wrapped else head * character
    columns = len(widths) + (2 if table.has_line_names else 1)
    return head_width + names * character + sum(widths) + 2 * space * columns


def _on_one_page(
    columns: int, alignment: str, caption: str, small: list[str], head: list[str], rows: list[str], notes: list[str]
) -> list[str]:
    tabular = [rf"\begin{{tabular}}{{{alignment}}}", *head, *rows, r"\bottomrule", r"\end{tabular}"]
    below = [r"\par\medskip", *notes] if notes else []
    return [r"\begin{table}", r"\centering", caption, *small, *tabular, *below, r"\end{table}"]


def _on_pages(
    columns: int, alignment: str, caption: str, small: list[str], head: list[str], rows: list[str], notes: list[str]
) -> list[str]:
    """Repeat the head on every page. The notes are the last row; a box of width 0 widens no column."""
    foot, ending = [r"\bottomrule"], rows[-1:]
    if notes:
        # A bottom rule of booktabs would let the page end between the last row and the notes.
        rule = r"\noalign{\nobreak\vskip\aboverulesep\nobreak\hrule height\heavyrulewidth\nobreak\vskip\medskipamount}"
        box = [rf"\multicolumn{{{columns}}}{{c}}{{\makebox[0pt]{{%", *notes, r"}} \\"]
        foot, ending = [], [*(f"{row}*" for row in ending), rule, *box]
    return [
        r"\begingroup",
        r"\setlength{\LTcapwidth}{\linewidth}",
        *small,
        rf"\begin{{longtable}}{{{alignment}}}",
        caption + r" \\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *foot,
        r"\endlastfoot",
        *rows[:-1],
        *ending,
        r"\end{longtable}",
        r"\endgroup",
    ]


def _notes(table: Table) -> list[str]:
    notes = [rf"{escape_latex(note)}\par" for note in (*table.notes, *table.remarks)]
    box = [r"\begin{minipage}[t]{\linewidth}", r"\footnotesize\raggedright", *notes, r"\end{minipage}"]
    return box if notes else []


def _group_headings(table: Table, heads: int) -> list[str]:
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
            text = " & ".join([*map(escape_latex, heads), *_cells(line)]) + r" \\"
            if line.cells and len(printed(heads[0])) > _LONG_HEAD:
                # Justified, a long name could stand out of its narrow column.
                text = rf"\raggedright {text}"
            # LaTeX reads `[` and `*` after the end of a row as options of `\\`.
            if is_long(table) and line is not row.lines[-1]:
                # The star keeps the lines of a row on one page.
                text += "*"
            texts.append("{}" + text if text.startswith(("[", "*")) else text)
    return texts


def _cells(line: Line) -> list[str]:
    """Write the cells of a line. A line that says only why there are no numbers says it once, across all columns."""
    if reason := _reason(line):
        return [rf"\multicolumn{{{len(line.cells)}}}{{c}}{{{escape_latex(reason)}}}"]
    return [_cell(cell) for cell in line.cells]


def _reason(line: Line) -> str:
    verdicts = {cell_text(cell) if cell.kind == "verdict" else "" for cell in line.cells}
    if len(line.cells) > 1 and len(verdicts) == 1 and not verdicts & _NO_REASON:
        return verdicts.pop()
    return ""


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
