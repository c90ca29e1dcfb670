"""pdfLaTeX where there is one, and what it would trip over: environments, braces, dollars, columns, bare signs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

needs_pdflatex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")


def compiled(document: str, folder: Path, times: int = 1) -> str:
    """What pdflatex says about a document, which it must set whole. A long table has its widths the second time."""
    (folder / "table.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    for _ in range(times):
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="latin-1", check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in done.stdout
    return done.stdout


def unescaped(sign: str, text: str) -> int:
    return len(re.findall(rf"(?<!\\){re.escape(sign)}", text))


def rows_of(latex: str) -> list[str]:
    """All rows of the only tabular or longtable, headings included."""
    inside = latex.split("\\toprule\n")[1]
    if r"\endfirsthead" in latex:
        body = latex.split("\\endlastfoot\n")[1]
        inside = inside.split("\\endfirsthead")[0] + re.split(r"\\noalign|\\end\{longtable\}", body)[0]
    else:
        inside = inside.split("\\bottomrule")[0]
    return [line for line in inside.splitlines() if not line.startswith((r"\midrule", r"\cmidrule", r"\addlinespace"))]


def width_of(row: str) -> int:
    """Columns that a row fills."""
    spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return unescaped("&", row) + 1 + sum(span - 1 for span in spans)


def check_latex(latex: str, around: tuple[str, ...] = ()) -> None:
    """Check a table as LaTeX.

    Args:
        latex: The table, or a document with only the table.
        around: Environments that the table stands in.
    """
    check_environments(latex, around)
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    columns = re.search(r"\\begin\{(?:tabular|longtable)\}\{((?:[lrc]|p\{\d+cm\})+)\}", latex).group(1)
    columns = re.sub(r"p\{\d+cm\}", "p", columns)
    rows = rows_of(latex)
    assert rows
    for row in rows:
        assert row.endswith((r" \\", r" \\*"))
        assert width_of(row) == len(columns), row
        # Behind the end of the row before, these would be read as its options.
        assert not row.startswith(("[", "*"))
    for start, end in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", latex):
        assert 1 < int(start) <= int(end) <= len(columns)
    check_signs(latex)


def check_environments(latex: str, around: tuple[str, ...] = ()) -> None:
    """Check that environments nest, and that the notes stand in the box of their table."""
    opened, named = [], []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", latex):
        if kind == "begin":
            opened.append(name)
            named.append("/".join(opened[len(around) :]))
        else:
            assert opened.pop() == name
    assert not opened
    assert list(around) == re.findall(r"\\begin\{(\w+)\}", latex)[: len(around)]
    assert [name for name in named if name and not name.endswith("minipage")] in (
        ["table", "table/tabular"],
        ["longtable"],
    )
    assert {name for name in named if name.endswith("minipage")} <= {"table/minipage", "longtable/minipage"}
    ending = latex.split(r"\end{table}" if "table" in named else r"\end{longtable}")[1]
    assert re.sub(r"\\endgroup|\\end\{document\}", "", ending).strip() == "", "nothing stands apart from the table"


def check_signs(latex: str) -> None:
    """Check that no special sign is bare."""
    assert unescaped("#", latex) == 0
    for line in latex.splitlines():
        assert unescaped("%", line.removesuffix("{%")) == 0
        assert unescaped("$", line) % 2 == 0
    # Outside math no underscore or accent sign may be left bare.
    text = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", latex)
    assert unescaped("_", text) == unescaped("^", text) == unescaped("~", text) == 0
    assert latex.isascii()
