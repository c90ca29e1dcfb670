"""What a LaTeX compiler would trip over, without one: environments, braces, dollars, columns, bare special signs."""

import re


def unescaped(sign: str, text: str) -> int:
    return len(re.findall(rf"(?<!\\){re.escape(sign)}", text))


def rows_of(latex: str) -> list[str]:
    """All rows of the only tabular, headings included."""
    inside = latex.split("\\toprule\n")[1].split("\\bottomrule")[0]
    return [line for line in inside.splitlines() if not line.startswith((r"\midrule", r"\cmidrule", r"\addlinespace"))]


def width_of(row: str) -> int:
    """Columns that a row fills."""
    spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return unescaped("&", row) + 1 + sum(span - 1 for span in spans)


def check_latex(latex: str, around: tuple[str, ...] = ()) -> None:
    """`around`: environments that the table stands in."""
    begun, ended = re.findall(r"\\begin\{(\w+)\}", latex), re.findall(r"\\end\{(\w+)\}", latex)
    assert begun == ended[::-1] == [*around, "table", "tabular"]
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    columns = re.search(r"\\begin\{tabular\}\{([lrc]+)\}", latex).group(1)
    rows = rows_of(latex)
    assert rows
    for row in rows:
        assert row.endswith(r" \\")
        assert width_of(row) == len(columns), row
        # Behind the end of the row before, these would be read as its options.
        assert not row.startswith(("[", "*"))
    for start, end in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", latex):
        assert 1 < int(start) <= int(end) <= len(columns)
    for sign in "%#":
        assert unescaped(sign, latex) == 0
    for line in latex.splitlines():
        assert unescaped("$", line) % 2 == 0
    # Outside math no underscore or accent sign may be left bare.
    text = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", latex)
    assert unescaped("_", text) == unescaped("^", text) == unescaped("~", text) == 0
    assert latex.isascii()
