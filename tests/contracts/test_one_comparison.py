"""Tables, page sentences and LaTeX of any experiment in a store agree on every mark and every verdict."""

import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reports.page.material import Material
from reports.page.sections.answer import verdicts_of
from reports.page.sections.pair_matrix import pair_matrix
from reports.page.sections.table_sections import tables_of
from reports.tables.differences import differences
from reports.tables.formats import to_html, to_latex, to_markdown
from reports.tables.result_table import RESULT_COLUMNS, table_of
from results.statistics.primary_comparison import primary_score
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.published_world import MLRC
from tests.support.sample_records import some_run, some_summary

TITLES = ("Anna", "Bert", "Cora", "Dora", "Emil")
SCORES = st.sampled_from(
    [None, *({"metric": metric, "embeddings": kind} for kind, metric in RESULT_COLUMNS if metric != "r_precision")]
)
WORLDS = st.lists(
    st.tuples(st.sampled_from([0.3, 0.31, 0.5, 0.502, 0.7]), st.lists(st.integers(-9, 9), min_size=1, max_size=5)),
    min_size=1,
    max_size=len(TITLES),
)


def stored(folder, world, primary):
    """An experiment that was written to a store and read again."""
    kept = {**MLRC, "dataset": {"name": "glyphs"}, **({"primary": primary} if primary else {})}
    titles = {title.lower(): title for title in TITLES[: len(world)]}
    store = Store(f"sqlite:///{folder}/store.db", Path(folder))
    store.put_experiment("f", "some", some_summary(methods=titles, settings=kept))
    for key, (mean, steps) in zip(titles, world, strict=True):
        for number, step in enumerate(steps):
            run = some_run(key, number, mean + 0.001 * step)
            store.put_run(run)
            store.enlist("f", run.method, run)
    return MeasuredExperiment.from_store(store, "f")


def marks_in(rows, patterns):
    """By title, the names of the patterns that its row shows."""
    return {
        title: {name for name, pattern in patterns.items() if re.search(pattern, row)}
        for title in TITLES
        for row in rows
        if re.match(rf"(\| |<tr><th scope=.row.>)?{title}\b", row)
    }


MARKDOWN = {"best": r"\*\*[^*]+\*\*", "tied": r"(?<!\*)\*[^*]+\*(?!\*)", "untested": r"\d\?"}
LATEX = {"best": r"mathbf", "tied": r"mathit", "untested": r"\d\?"}
HTML = {"best": r"<strong>", "tied": r"<em>", "untested": r"\d\?"}


@settings(max_examples=40, deadline=None)
@given(WORLDS, SCORES)
def test_table_page_and_latex_agree_on_every_mark(world, primary):
    with tempfile.TemporaryDirectory() as folder:
        measured = stored(folder, world, primary)
    score = primary_score(measured)
    assert primary is None or score.model_dump() == primary
    table, material = table_of(measured), Material("some", measured)
    marks = {row.head: {cell.mark for cell in row.lines[0].cells} - {""} for row in table.rows}
    assert marks_in(to_markdown(table).splitlines(), MARKDOWN) == marks
    assert marks_in(to_latex(table).splitlines(), LATEX) == marks
    page = tables_of(material, (), None)[0].table
    assert {row.head: {cell.mark for cell in row.lines[0].cells} - {""} for row in page.rows} == marks
    assert marks_in(to_html(table).splitlines(), HTML) == marks
    pairs = {row.head: str(row.lines[0].cells[-1].value) for row in differences(measured).rows}
    worse = {
        title
        for head, verdict in pairs.items()
        for title in head.split(" − ")
        if verdict.endswith(" better") and not verdict.startswith(title)
    }
    for title, mark in marks.items():
        assert (title in worse) == (not mark) or len(marks) == 1, (title, pairs)
    said, matrix = verdicts_of(material), pair_matrix(material)
    cells = [] if matrix is None else [cell for row in matrix.rows for cell in row]
    texts = [cell.text for cell in cells if cell.kind == "worse"]
    claimed = {re.match(r"(\w+) is better than (\w+)", text).groups() for text in texts}
    assert {lower for _, lower in claimed} == worse
    assert len(claimed) == sum(verdict.endswith(" better") for verdict in pairs.values())
    equal = sum(cell.kind == "equal" for cell in cells)
    assert equal == sum(verdict.startswith("equal") for verdict in pairs.values())
    if len(marks) > 1:
        (best,) = [title for title, mark in marks.items() if mark == {"best"}]
        assert f"{best} has the highest mean" in said[0].sentence
