"""Tables, page sentences and LaTeX of any experiment in a store agree on every mark and every verdict."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reports.headline import comparison_lines, headline, short_table
from reports.page.material import Material
from reports.page.page import build_page
from reports.tables.differences import differences
from reports.tables.formats import to_html, to_latex, to_markdown
from reports.tables.result_table import RESULT_COLUMNS, table_of
from results.answer import answer_question
from results.answer.compare import compare
from results.answer.question import ALPHA
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.published_world import MLRC
from tests.support.sample_records import put_experiment, some_plan, some_run

TITLES = ("Anna", "Bert", "Cora", "Dora", "Emil")
SCORES = st.sampled_from(
    [None, *({"metric": metric, "embeddings": kind} for kind, metric in RESULT_COLUMNS if metric != "r_precision")]
)
METHODS = st.lists(
    st.tuples(
        st.sampled_from([0.3, 0.31, 0.5, 0.502, 0.7]),
        st.lists(st.integers(-9, 9), min_size=3, max_size=3),
        st.sampled_from([3, 3, 3, 2, 1]),
    ),
    min_size=1,
    max_size=len(TITLES),
)
"""Mean, deviations of three searches (or runs) in tenths of a point, and how many of them are there."""
SEARCHES = st.sampled_from([{"trials": 0}, {"trials": 10, "searches": 3}, {"trials": 20}, {"trials": 5}])
COMPARE = st.sampled_from(["all", "best", TITLES[0].lower()])


def stored(folder, world, primary, search):
    """An experiment that was written to a store and read again."""
    repeated = search.get("searches", 1) > 1
    settings = {**MLRC, "dataset": {"name": "glyphs"}, "primary": primary, "search": search}
    titles = {title.lower(): title for title in TITLES[: len(world)]}
    settings |= {"reproductions": 1 if repeated else 3, "methods": list(titles)}
    store = Store(f"sqlite:///{folder}/store.db", Path(folder))
    runs = []
    for key, (mean, steps, there) in zip(titles, world, strict=True):
        for number, step in enumerate(steps[:there]):
            numbers = {"search": number} if repeated else {"run": number}
            value = mean + 0.001 * step
            runs.append(some_run(key, separated=value, fingerprint=f"{key}-{number}", **numbers))
    put_experiment(store, "f", "some", some_plan(settings, methods=titles), runs)
    return MeasuredExperiment.from_store(store, "f")


def bold_in(text, pattern):
    """The titles whose rows are bold."""
    rows = text.splitlines()
    starts = {title: re.compile(rf"(\| |<tbody><tr><th scope=.row.>)?{title}\b") for title in TITLES}
    return {title for title in TITLES for row in rows if starts[title].match(row) and re.search(pattern, row)}


def claims_of(pairs):
    """Better and worse titles of the table of differences."""
    found = set()
    for row, cell in zip(pairs.rows, pairs.column("verdict") if pairs.rows else (), strict=True):
        a, b = row.head.split(" − ")
        verdict = str(cell.value).partition("; another three searches")[0]
        if verdict.endswith(" better"):
            better = verdict.removesuffix(" better")
            found.add((better, b if better == a else a))
    return found


@settings(max_examples=25, deadline=None)
@given(METHODS, SCORES, COMPARE, SEARCHES)
def test_table_page_and_latex_agree_on_every_leader_and_every_claim(world, score, compare, search):
    primary = {"metric": "map_at_r", "embeddings": "concatenated", **(score or {}), "compare": compare}
    with tempfile.TemporaryDirectory() as folder:
        measured = stored(folder, world, primary, search)
    table, material = table_of(answer_of(measured)), Material("some", answer_of(measured))
    bold = {row.head for row in table.rows if any(cell.leads for cell in row.cells)}
    assert bold_in(to_markdown(table), r"\*\*[^*]+\*\*") == bold
    assert bold_in(to_latex(table), "mathbf") == bold
    assert bold_in(to_html(table), "<strong>") == bold

    pairs, comparison = differences(answer_of(measured)), answer_of(measured)
    claimed = claims_of(pairs)
    assert claimed == {(pair.better.title(), pair.worse.title()) for pair in comparison.pairs if pair.better}
    interim = any(there < 3 for *_, there in world)
    assert comparison.interim == interim
    if interim or compare not in ("all", "best") or search == {"trials": 5} or len(world) == 1:
        assert not bold
    elif compare == "all":
        worse = {lower for _, lower in claimed}
        assert bold == ({row.head for row in table.rows} - worse if worse else set())
    if search == {"trials": 5}:
        assert not claimed, "how far two searches differ is not known"
    if len(world) > 1:
        said = any(one.text.startswith("Not finished") for one in material.answer.findings)
        assert (said, "Interim" in table.caption, "Interim" in pairs.caption) == (interim,) * 3


def test_a_command_answers_each_score_once(monkeypatch):
    measured, asked = MeasuredExperiment.kept("reality_check_glyphs"), Counter()

    def counting(question, values):
        asked[question.score, question.embeddings, question.unit, question.alpha] += 1
        return compare(question, values)

    monkeypatch.setattr(answer_question, "compare", counting)
    found = answer_of(measured)
    build_page(Material("reality_check/glyphs", found))
    for draw in (table_of, differences, short_table, headline, comparison_lines):
        draw(found)
    assert set(asked.values()) == {1}
    assert asked["map_at_r", "concatenated", "search", ALPHA] == asked["map_at_r", "separated", "search", ALPHA] == 1
