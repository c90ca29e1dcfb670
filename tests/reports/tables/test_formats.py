"""One drawing in every format: Markdown, CSV, LaTeX and HTML say the same, whatever the texts are."""

import html
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pandas as pd
import pytest

from reports.published.join import join
from reports.published.layout import cells_of, draw
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.formats import WRITERS, to_csv, to_html, to_latex, to_latex_document, to_markdown
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.table import Cell, Column, Drawing, Line, Row, Sheet, plain_rows
from results.experiment_results import MeasuredExperiment
from results.published.tables import published_table, published_tables
from tests.support.measured_experiment import TITLES, measured, read, with_trainings
from tests.support.printed_world import MLRC, changed, experiment, runs_of
from tests.support.sample_records import some_summary
from tests.support.sound_latex import check_latex, rows_of

AWKWARD = r"50 % of_A & B #1 {x} $5 ~ a^2 \hline <b>|</b> × − – †"
NEAR = [0.59, 0.60, 0.605]


def filled():
    """Part of MLRC's table: one method with an interval, one with a single run, the others not run."""
    records = [*runs_of("contrastive", NEAR), *runs_of("triplet", [0.56]), *runs_of("cosface", [0.601, 0.59, 0.6])]
    other = experiment("lite", changed(MLRC, trunk={"name": "efficientnet_lite0"}), runs_of("triplet", NEAR))
    return join(published_table("mlrc_cub200"), [experiment("mlrc_cub200", MLRC, records), other])


def hostile() -> Drawing:
    cells = [[Cell(AWKWARD), Cell("1.00 ± 0.50", "best", "(3)", "measured")], [Cell("[1]", "tied"), Cell()]]
    return Drawing(
        title=AWKWARD,
        caption=AWKWARD,
        columns=(Column(AWKWARD, AWKWARD, numeric=False), Column("n")),
        rows=plain_rows([AWKWARD, "*[2]"], cells),
        sheet=Sheet((AWKWARD,), ((AWKWARD,), (0.1 + 0.2,), (None,))),
        first=AWKWARD,
        notes=(AWKWARD,),
        remarks=(AWKWARD,),
    )


DRAWINGS = {
    **{name: draw(join(published_table(name), [])) for name in published_tables()},
    "filled": draw(filled()),
    "hostile": hostile(),
}
each_drawing = pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)


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


@each_drawing
def test_html_is_whole(drawing):
    text = to_html(drawing)
    grid = Grid(text)
    assert grid.widths == {len(drawing.columns) + 1 + drawing.has_line_names}
    assert set(grid.scopes) <= {"col", "colgroup", "row", "rowgroup"}
    assert re.search(r"<caption>", text)
    shown = "".join(grid.texts)
    for row in drawing.rows:
        assert row.head in shown
        for line in row.lines:
            assert all(cell.text in shown for cell in line.cells)
    assert "<b>" not in text


def test_html_escapes_everything():
    text = to_html(hostile())
    assert text.count(html.escape(AWKWARD)) >= 7
    assert '<td class="number measured best"><strong>1.00 ± 0.50</strong> <span class="aside">(3)</span></td>' in text


@each_drawing
def test_latex_is_sound(drawing):
    check_latex(to_latex(drawing))
    document = to_latex_document(drawing)
    assert document.startswith(r"\documentclass{article}")
    assert r"\usepackage{booktabs}" in document
    check_latex(document, around=("document",))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
@each_drawing
def test_latex_documents_compile(drawing, tmp_path):
    (tmp_path / "table.tex").write_text(to_latex_document(drawing))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@each_drawing
def test_markdown_has_a_cell_for_every_column(drawing):
    lines = [line for line in to_markdown(drawing).splitlines() if line.startswith("|")]
    width = len(drawing.columns) + 1 + drawing.has_line_names
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {width + 1}
    assert len(lines) == 2 + sum(len(row.lines) for row in drawing.rows)


@pytest.mark.parametrize("name", published_tables())
def test_every_format_shows_what_is_printed_and_that_nothing_was_run(name):
    drawing, cells = DRAWINGS[name], published_table(name).cells
    texts = {form: write(drawing) for form, write in WRITERS.items()}
    for form, text in texts.items():
        assert text.count("not run") >= len(cells), form
        for cell in cells:
            assert cell.printed in text, form
    frame = pd.read_csv(io.StringIO(texts["csv"]), dtype=str, keep_default_na=False)
    assert list(frame["printed"]) == [cell.printed for cell in cells]
    assert set(frame["verdict"]) == {"not run"}
    assert (frame[["mean", "low", "high", "n", "mark"]] == "").all().all()
    assert len(frame.drop_duplicates(["row", "dataset", "metric", "kind"])) == len(cells)


def test_csv_of_a_filled_table_loses_no_digit():
    joined = filled()
    frame = pd.read_csv(io.StringIO(to_csv(draw(joined))))
    header = "table row dataset metric kind printed printed_interval mean low high n verdict mark"
    assert list(frame.columns) == header.split()
    assert len(frame) == len(joined.cells)
    for line, cell in zip(frame.itertuples(), joined.cells, strict=True):
        assert line.verdict == cell.verdict
        if cell.ours is None:
            assert pd.isna([line.mean, line.low, line.high, line.n, line.mark]).all()
            continue
        # In the printed unit, percent.
        assert (line.mean, line.n) == (100 * cell.ours.mean, cell.ours.n)
        ends = [end if end is None else pytest.approx(100 * end) for end in (cell.ours.low, cell.ours.high)]
        assert [None if pd.isna(end) else end for end in (line.low, line.high)] == ends
        assert (line.mark if isinstance(line.mark, str) else "") == cell.mark
    assert set(frame["verdict"]) == {"inside", "below", "above", "no interval", "not run"}


def test_json_cells_say_where_the_numbers_are_from():
    cells = json.loads(json.dumps(cells_of(filled())))
    (one,) = [each for each in cells if (each["row"], each["metric"], each["kind"]) == FOUND]
    assert one["mean"] == pytest.approx(100 * sum(NEAR) / 3)
    assert (one["method"], one["origin"], one["n"], one["verdict"]) == ("contrastive", "mlrc_cub200", 3, "inside")


FOUND = ("Contrastive", "precision_at_1", "separated")


def test_a_filled_row_has_what_is_printed_then_ours_then_the_verdicts():
    lines = to_markdown(draw(filled())).splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("| Contrastive"))
    printed, ours, verdicts = ([cell.strip() for cell in line.split("|")[2:-1]] for line in lines[at : at + 3])
    assert printed[:2] == ["printed", "68.13"]
    assert (ours[0], ours[4]) == ("ours", "**59.83 ± 1.90** (3)")
    assert (verdicts[0], verdicts[4]) == ("verdict", "inside")
    at = next(place for place, line in enumerate(lines) if line.startswith("| Triplet"))
    assert "| 56.00? (1) |" in lines[at + 1]
    assert "no interval" in lines[at + 2]
    at = next(place for place, line in enumerate(lines) if line.startswith("| Margin |"))
    assert lines[at + 1].startswith("|  | verdict | not run |"), "a row that was not run has no line of ours"


def test_runs_that_fill_nothing_are_told_below_the_table():
    for text in (to_markdown(draw(filled())), to_html(draw(filled())), to_latex(draw(filled()))):
        assert "There are runs of lite (triplet): not shown, trunk" in text


def test_marks_look_alike_in_all_formats():
    columns = (Column("a"), Column("b"), Column("c"))
    marks = (Cell("1", "best"), Cell("2", "tied"), Cell("3", "untested"))
    measured = tuple(Cell(f"{place} ± 1", cell.mark, kind="measured") for place, cell in enumerate(marks))
    rows = (Row("r", (Line(marks), Line(measured))),)
    drawing = Drawing("T", "", columns, rows, Sheet((), ()))
    assert "| **1** | *2* | 3? |" in to_markdown(drawing)
    assert r"\textbf{1} & \textit{2} & 3?" in to_latex(drawing)
    assert r"$\mathbf{0 \pm 1}$ & $\mathit{1 \pm 1}$ & $2 \pm 1?$" in to_latex(drawing)
    assert "<strong>1</strong>" in to_html(drawing)
    assert "<em>2</em>" in to_html(drawing)
    assert drawing.legend.count(":") == 3


def test_latex_rows_do_not_begin_with_what_reads_as_an_option():
    assert rows_of(to_latex(hostile()))[-1].startswith("{}*[2]")


def test_a_line_with_a_cell_too_few_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Drawing("T", "", (Column("a"), Column("b")), plain_rows(["r"], [[Cell("1")]]), Sheet((), ()))


ALL = {
    "differences": differences(measured()),
    "peeking": peeking_table(with_trainings()),
    "hyperparameters": hyperparameters(with_trainings()),
    "costs": costs(measured(steps=400)),
    "no peeking": peeking_table(measured()),
    "no differences": differences(MeasuredExperiment(some_summary(title="None", methods=TITLES), ())),
}


@pytest.mark.parametrize("drawing", ALL.values(), ids=ALL)
def test_every_table_is_written_in_every_format(drawing):
    texts = {form: write(drawing) for form, write in WRITERS.items()}
    check_latex(texts["latex"])
    for form in ("markdown", "html", "latex"):
        for row in drawing.rows:
            assert row.head.split()[0].rstrip(":") in texts[form]
    assert len(read(drawing)) == len(drawing.rows)
