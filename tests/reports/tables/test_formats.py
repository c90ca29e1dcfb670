"""One drawing in every format: Markdown, CSV, LaTeX and HTML say the same, whatever the texts are."""

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pandas as pd
import pytest

from reports.published.claims import answer_claims, claims_table
from reports.published.join import join, published_layout
from reports.tables.differences import differences
from reports.tables.formats import WRITERS, escape_latex, to_csv, to_html, to_json, to_latex, to_markdown
from reports.tables.holds import holds_table
from reports.tables.method_tables import costs, hyperparameters, peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Cell, Column, Row, Table, cell_text, chosen, with_notes
from results.findings.experiment import answer_of
from results.numbers import POINTS, NumberFormat
from results.published.claims import shipped_claims
from results.published.tables import published_table, published_tables
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import TITLES, measured, read, with_trainings
from tests.support.published_world import MLRC, NOT_FILLED, changed, experiment, runs_of
from tests.support.sample_records import some_plan

AWKWARD = r"50 % of_A & B #1 {x} $5 ~ a^2 \hline <b>|</b> × − – †"
NEAR = [0.59, 0.60, 0.605]


def filled():
    """Part of MLRC's table: one method with an interval, one with a single run, the others not run."""
    records = [*runs_of("contrastive", NEAR), *runs_of("triplet", [0.56]), *runs_of("cosface", [0.601, 0.59, 0.6])]
    other = experiment("lite", changed(MLRC, trunk={"name": "efficientnet_lite0"}), runs_of("triplet", NEAR))
    return join(published_table("mlrc_cub200"), [experiment("mlrc_cub200", MLRC, records), other])


def hostile() -> Table:
    number = Cell(1.0, 0.5, leads=True, note="(3)", form=NumberFormat(digits=2), kind="measured")
    rows = (Row(AWKWARD, [Cell(AWKWARD), number]), Row("*[2]", [Cell("[1]"), Cell()]))
    return Table(
        title=AWKWARD,
        caption=AWKWARD,
        columns=(Column(AWKWARD, AWKWARD, numeric=False), Column("n")),
        rows=rows,
        first=AWKWARD,
        notes=(AWKWARD,),
        remarks=(AWKWARD,),
    )


MADE = {"filled": lambda: published_layout(filled()), "hostile": hostile}


@cache
def layout(name: str) -> Table:
    return MADE[name]() if name in MADE else published_layout(join(published_table(name), []))


@pytest.fixture(params=[*published_tables(), *MADE])
def table(request):
    return layout(request.param)


class Grid(HTMLParser):
    """Reads a table: the tags must nest, and its cells, spans counted, must fill every row to the same width."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.rows, self.scopes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        found = dict(attributes)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((int(found.get("rowspan", 1)), int(found.get("colspan", 1))))
        if tag == "th":
            self.scopes.append(found["scope"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def widths(self) -> set[int]:
        widths = [0] * len(self.rows)
        for place, row in enumerate(self.rows):
            for tall, wide in row:
                for below in range(tall):
                    widths[place + below] += wide
        return set(widths)


def test_html_is_whole(table):
    text = to_html(table)
    grid = Grid(text)
    assert grid.widths == {len(table.columns) + 1}
    assert set(grid.scopes) <= {"col", "colgroup", "row"}
    assert ("sortable" in text) == (not any(row.below for row in table.rows))
    shown = "".join(grid.texts)
    for row in table.rows:
        assert row.head in shown
        assert all(cell_text(cell) in shown for cell in row.cells)
    assert "<b>" not in text


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
%s\end{document}
"""


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine; CI has it")
def test_latex_documents_compile(tmp_path):
    """All tables in one document, with their labels referred to."""
    tables = [*map(layout, [*published_tables(), *MADE]), *(made() for made in ALL.values())]
    texts = list(map(to_latex, tables))
    labels = [re.search(r"\\label{(.*)}", text)[1] for text in texts]
    refers = " ".join(f"\\ref{{{label}}}" for label in labels)
    (tmp_path / "tables.tex").write_text(DOCUMENT % "\\clearpage\n".join([*texts, refers]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1", check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert not re.search("Missing character|undefined", done.stdout)


def test_a_label_is_given_or_made_of_the_title_and_the_packages_are_named():
    table = layout("filled")
    assert r"\label{tab:quickstart-1a2b-results}" in to_latex(replace(table, label="quickstart-1a2b results "))
    text = to_latex(table)
    assert text.startswith("% Needs ")
    needed = re.findall(r"\\usepackage(?:\[.*?\])?{(\w+)}", text.splitlines()[0])
    assert needed == re.findall(r"\\usepackage(?:\[.*?\])?{(\w+)}", DOCUMENT)


def test_a_latex_table_names_all_of_its_columns():
    for draw in (table_of, differences):
        table = draw(answer_of(MeasuredExperiment.kept("quickstart")))
        text = to_latex(table)
        wanted = re.search(r'All columns: --columns "(.+)"', text)[1].split(",")
        whole = chosen(table, wanted, ())
        assert whole.columns == table.columns
        assert "All columns" not in to_latex(whole)
        assert max(line.count(" & ") for line in text.splitlines()) < len(table.columns)


def test_latex_notes_explain_the_columns_that_are_there():
    table = with_notes(differences(answer_of(MeasuredExperiment.kept("quickstart"))), "short")
    explained = "Would have shown: the smallest true difference"
    assert explained not in to_latex(table)
    whole = chosen(table, [column.name for column in table.columns], ())
    assert explained in to_latex(whole)
    assert explained not in to_latex(with_notes(whole, "none"))
    said = differences(answer_of(MeasuredExperiment.kept("quickstart")))
    assert to_latex(chosen(said, [column.name for column in said.columns], ())).count(explained) == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine; CI has it")
def test_latex_tables_of_kept_records_fit_an_article(tmp_path):
    """Records of 3, 5 and 14 methods: no box is wider than the text."""
    kept = ("quickstart", "all_methods_glyphs_three_searches", "reality_check_glyphs")
    found = [answer_of(MeasuredExperiment.kept(name)) for name in kept]
    tables = [draw(one) for one in found for draw in (table_of, differences)]
    texts = [to_latex(replace(table, rows=table.rows[:40], notes=(), remarks=())) for table in tables]
    assert boxes(tmp_path, DOCUMENT, texts) == []


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine; CI has it")
def test_latex_tables_fit_the_page_of_two_columns_as_their_comment_says(tmp_path):
    """Results, differences and what holds of 3 and 9 methods, with short notes; longer ones say so."""
    names = ("quickstart", "reality_check_2026_birds_subset")
    found = [answer_of(MeasuredExperiment.kept(name)) for name in names]
    draws = (table_of, differences, lambda one: holds_table(one, every=True))
    drawn = [with_notes(draw(one), "short") for one in found for draw in draws]
    long = [table for table in drawn if "Longer than a page: take fewer rows." in to_latex(table)]
    assert long == [drawn[-1]], "each of 36 pairs under other conditions"
    texts = [to_latex(table) for table in drawn if table not in long]
    says = "write table* for table, at both ends"
    assert all(says in text for text in texts)
    document = DOCUMENT.replace("\\documentclass", "\\documentclass[twocolumn]")
    assert boxes(tmp_path, document, texts), "a column is too narrow"
    assert boxes(tmp_path, document, [text.replace("{table}", "{table*}") for text in texts]) == []


def boxes(folder, document, texts):
    """Return what LaTeX says of boxes that are too wide and tables that are too long."""
    (folder / "tables.tex").write_text(document % "\\clearpage\n".join(texts), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="latin-1", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return re.findall(r"Overfull .hbox.*|Float too large.*", done.stdout)


def test_latex_leaves_letters_as_they_are_and_sets_signs():
    text = "Größe λ `a_b` 5 % ± × − [1] ~ *"
    assert escape_latex(text) == (r"Größe λ \texttt{a\_b} 5 \% $\pm$ $\times$ $-$ {[}1{]} \textasciitilde{} {*}")
    quoted = r"``a b'' 5\textquotedbl{} \texttt{\textquotedbl{}c\textquotedbl{}}"
    assert escape_latex('"a b" 5" `"c"`') == quoted, "quotation marks of a sentence need no fontenc"
    assert escape_latex("a\n\nb  c") == "a b c"


def test_columns_and_rows_can_be_chosen_in_every_format():
    table = chosen(layout("filled"), ["CUB200, separated", "cub200, concatenated p@1"], ["CONTRASTIVE"])
    assert [column.name for column in table.columns] == ["P@1", "P@1", "RP", "MAP@R"]
    assert [row.head for row in table.rows] == ["Contrastive", "ours", "verdict"], "lines below stay with theirs"
    assert len(read(table)) == 3
    text = to_latex(table)
    assert r"& \multicolumn{1}{c}{CUB200, concatenated} & \multicolumn{3}{c}{CUB200, separated} \\" in text
    assert r"\label{tab:a-metric-learning-reality-check-results-on-cub200}" in text
    with pytest.raises(ValueError, match=r"no column 'r@7'; there are .*P@1"):
        chosen(table, ["R@7"], [])
    with pytest.raises(ValueError, match="no row 'nir'; there are Contrastive, contrastive"):
        chosen(table, [], ["nir"])


def test_markdown_has_a_cell_for_every_column(table):
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 2}
    assert len(lines) == 2 + len(table.rows)


def test_csv_of_a_filled_table_has_twelve_digits():
    joined = filled()
    frame = pd.read_csv(io.StringIO(to_csv(published_layout(joined))))
    assert len(frame) == len(joined.cells)
    for line, cell in zip(frame.itertuples(), joined.cells, strict=True):
        assert line.verdict == cell.verdict
        if cell.ours is None:
            assert pd.isna([line.mean, line.low, line.high, line.n]).all()
            continue
        # In the published unit, percent.
        assert line.mean == float(f"{100 * cell.ours.mean:.12g}")
        assert (line.n, line.origin) == (cell.ours.n, cell.origin)
        ends = [end if end is None else pytest.approx(100 * end) for end in (cell.ours.low, cell.ours.high)]
        assert [None if pd.isna(end) else end for end in (line.low, line.high)] == ends
    assert set(frame["verdict"]) == {"inside", "below", "above", "no interval", "not run"}


def test_leaders_are_bold_in_all_formats():
    rows = (Row("r", (Cell(1, leads=True), Cell(3))), Row("s", (Cell(0, 1, leads=True, kind="measured"), Cell(3))))
    table = Table("T", "", (Column("a"), Column("b")), rows)
    assert "| **1** | 3 |" in to_markdown(table)
    assert r"\textbf{1} & 3" in to_latex(table)
    assert r"$\mathbf{0 \pm 1}$ & 3" in to_latex(table)
    assert "<strong>1</strong>" in to_html(table)
    assert table.legend == "Bold: no other method is shown to be better."


ALL = {
    "claims": lambda: claims_table(answer_claims(shipped_claims(), []), "Main claims"),
    "differences": lambda: differences(answer_of(measured())),
    "peeking": lambda: peeking_table(answer_of(with_trainings())),
    "hyperparameters": lambda: hyperparameters(answer_of(with_trainings())),
    "costs": lambda: costs(answer_of(measured(steps=400))),
    "no peeking": lambda: peeking_table(answer_of(measured())),
    "no differences": lambda: differences(answer_of(MeasuredExperiment(some_plan(title="None", methods=TITLES), ()))),
}


@pytest.mark.parametrize("kind", ALL)
def test_every_table_is_written_in_every_format(kind):
    table = ALL[kind]()
    texts = {form: write(table) for form, write in WRITERS.items()}
    for form in ("markdown", "html", "latex"):
        for row in table.rows:
            name = row.head.split()[0].rstrip(":")
            assert (escape_latex(name) if form == "latex" else name) in texts[form]
    assert len(read(table)) == len(table.sheet.rows)


def test_csv_and_json_have_the_cells_in_the_units_of_the_table():
    share = Cell(0.1 + 0.2, 0.01, form=NumberFormat(digits=2, scale=100))
    table = Table(
        "t", "", (Column("P@1", "both"), Column("n")), (Row("A", (share, Cell(3))), Row("B", (Cell(), Cell())))
    )
    assert to_csv(table) == "Method,both P@1,both P@1 ±,n\nA,30.0,1.0,3\nB,,,\n"
    for formula in ("=1+1", "+1", "-1", "@SUM(A1)"):
        drawn = replace(table, rows=(replace(table.rows[0], head=formula), *table.rows[1:]))
        assert f"\n'{formula},30.0" in to_csv(drawn)
    assert json.loads(to_json(table))[1] == {"Method": "B", "both P@1": None, "both P@1 ±": None, "n": None}


@pytest.mark.parametrize("name", published_tables())
def test_every_format_shows_what_is_published_and_that_nothing_was_run(name):
    table, cells = layout(name), [cell for row in published_table(name).rows for cell in row.cells.values()]
    texts = {form: write(table) for form, write in WRITERS.items()}
    for form, text in texts.items():
        if form not in ("csv", "json"):
            assert text.lower().count("not run") == 1, form
        for cell in cells:
            assert cell.as_published in text, form
    assert all(cell["verdict"] in NOT_FILLED for cell in json.loads(texts["json"]))
    frame = pd.read_csv(io.StringIO(texts["csv"]), dtype=str, keep_default_na=False)
    assert list(frame["printed"]) == [cell.as_published for cell in cells]
    assert set(frame["verdict"]) <= NOT_FILLED
    assert (frame[["mean", "low", "high", "n"]] == "").all().all()
    assert len(frame.drop_duplicates(["row", "dataset", "metric", "kind"])) == len(cells)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(0.123456, 0.01, form=NumberFormat(digits=2, scale=100)), "12.35 ± 1.00"),
        (Cell(0.5, 0.25, form=NumberFormat(digits=2, scale=100, signed=True)), "+50.00 ± 25.00"),
        (Cell(-0.5, form=NumberFormat(digits=2, signed=True)), "-0.50"),
        (Cell(1234567.8, 1000.2, form=NumberFormat(thousands=True)), "1,234,568 ± 1,000"),
        (Cell(0.0001, form=NumberFormat(digits=3, smallest=0.001)), "< 0.001"),
        (Cell(0.001, form=NumberFormat(digits=3, smallest=0.001)), "0.001"),
        (Cell(12345.678, form=NumberFormat(digits=4, significant=True)), "12346"),
        (Cell(10**17 + 1), "100000000000000001"),
        (Cell(62000.0, written="62K"), "62K"),
        (Cell(63.6, 0.19, form=NumberFormat(digits=6, significant=True), written="63.60"), "63.60 ± 0.19"),
        (Cell(-1e-5, 0.001, form=POINTS), "+0.00 ± 0.10"),
        (Cell("yes"), "yes"),
        (Cell(), ""),
    ],
)
def test_a_cell_is_shown_as_its_format_says(cell, text):
    assert cell_text(cell) == text
    assert cell.sort_key == cell.value, "columns are sorted by values, not by texts"


def test_a_filled_row_has_what_is_published_then_ours_then_the_verdicts():
    lines = to_markdown(published_layout(filled())).splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("| Contrastive"))
    published, ours, verdicts = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines[at : at + 3])
    assert published[:2] == ["Contrastive", "68.13"]
    assert (ours[0], ours[4]) == ("ours", "59.83 ± 1.90 (3)")
    assert (verdicts[0], verdicts[4]) == ("verdict", "inside")
    at = next(place for place, line in enumerate(lines) if line.startswith("| Triplet"))
    assert "| 56.00 (1) |" in lines[at + 1]
    assert "no interval" in lines[at + 2]
    at = next(place for place, line in enumerate(lines) if line.startswith("| Margin |"))
    assert not lines[at + 1].startswith(("| ours", "| verdict")), "a row that was not run has no line of ours"


def test_no_title_or_name_is_a_tag_in_markdown():
    row = Row("<img src=x>", [Cell("< 0.001")])
    text = to_markdown(Table("a <script>x</script>\nb", "<!-- c", (Column("<b>"),), (row,), notes=("</p>",)))
    assert "**a \\<script>x\\</script> b**" in text
    assert "\\<img src=x>" in text
    assert "| < 0.001 |" in text
    assert "\\<!-- c" in text
    assert "\\</p>" in text


def test_a_row_must_have_a_cell_for_every_column():
    with pytest.raises(ValueError, match=r"table 't', row 'Triplet': 1 cell for 2 columns"):
        Table("t", "", (Column("a"), Column("b")), (Row("Triplet", [Cell(1)]),))
