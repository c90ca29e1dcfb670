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
        inside = inside.split("\\endfirsthead")[0] + latex.split("\\endfoot\n")[1].split("\\end{longtable}")[0]
    else:
        inside = inside.split("\\bottomrule")[0]
    return [line for line in inside.splitlines() if not line.startswith((r"\midrule", r"\cmidrule", r"\addlinespace"))]


def width_of(row: str) -> int:
    """Columns that a row fills."""
    spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return unescaped("&", row) + 1 + sum(span - 1 for span in spans)


def check_latex(latex: str) -> None:
    """Check a table as LaTeX: environments and braces nest, rows fill their columns, no special sign is bare."""
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", latex):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    columns = re.search(r"\\begin\{(?:tabular|longtable)\}\{((?:[lrc]|p\{6cm\})+)\}", latex)[1]
    rows = rows_of(latex)
    assert rows
    for row in rows:
        assert row.endswith((r" \\", r" \\*"))
        assert width_of(row) == len(columns.replace("p{6cm}", "p")), row
        # Behind the end of the row before, these would be read as its options.
        assert not row.startswith(("[", "*"))
    assert unescaped("#", latex) == 0
    for line in latex.splitlines():
        assert unescaped("%", line.removesuffix("{%")) == 0
        assert unescaped("$", line) % 2 == 0
    # Outside math no underscore or accent sign may be left bare.
    text = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", latex)
    assert unescaped("_", text) == unescaped("^", text) == unescaped("~", text) == 0
