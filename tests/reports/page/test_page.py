"""The page as text: what it says, what it must not let through, what it weighs."""

import base64
import hashlib
import html
import io
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from reports.page.figures import PageFigure
from reports.page.material import Material
from reports.page.page import build_page, page_values
from reports.tables.formats import to_csv, to_html, to_latex, to_markdown
from reports.tables.result_table import table_of
from results.findings.experiment import answer_of
from results.spec.plan import Recipe
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, comparing, material, replace_run, searched, values
from tests.support.published_world import MLRC, changed, runs_of
from tests.support.sample_page import measured, sample_page
from tests.support.sample_records import changed_plan, some_provenance

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Reader(HTMLParser):
    """Every element with its attributes and direct text; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self._open and self._open[-1] not in ("style", "script"):
            self.texts.append(" ".join(data.split()))

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def quickstart():
    return sample_page()


def page_of(world):
    return build_page(world)[0]


def words_of(page):
    return " ".join(Reader(page).texts)


def test_the_page_is_sound_and_small(quickstart):
    reader = Reader(quickstart)
    assert len(quickstart.encode()) < 3_000_000
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, ids[0]) in ids
    anchors = [one["href"] for one in reader.of("a") if one["href"].startswith("#")]
    assert {anchor[1:] for anchor in anchors} <= set(ids)
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert all(len(reader.of(landmark)) == 1 for landmark in ("header", "nav", "main", "footer"))
    assert all("alt" in image for image in reader.of("img"))


LOADING = {"src", "srcset", "poster", "data", "background", "ping", "action", "formaction", "xlink:href"}
"""Attributes whose address a browser loads, or sends something to."""


def test_the_page_loads_nothing_from_outside(quickstart):
    """Links to papers are allowed: a browser opens them only when a reader follows them."""
    reader = Reader(quickstart)
    loaded = [value for _, a in reader.elements for key, value in a.items() if key in LOADING]
    assert loaded
    assert all(address.startswith("data:") for address in loaded)
    outside = {a["href"] for _, a in reader.elements if not (a.get("href") or "#").startswith(("data:", "#"))}
    assert outside == {"https://arxiv.org/abs/1234.56789"}
    assert not {tag for tag, _ in reader.elements} & {"link", "iframe", "object", "embed", "form", "base"}
    assert not any(a.get("http-equiv", "").lower() == "refresh" for a in reader.of("meta"))
    assert not re.search(r"url\(|@import", re.search(r"<style>(.*?)</style>", quickstart, re.S)[1])
    assert not any(re.search(r"url\(|@import", a.get("style") or "") for _, a in reader.elements)
    script = re.search(r"<script>(.*?)</script>", quickstart, re.S)[1]
    assert not re.search(r"fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import|location *=|\bopen\(", script)


def test_only_the_pages_own_script_may_run(quickstart):
    (policy,) = [one["content"] for one in Reader(quickstart).of("meta") if one.get("http-equiv")]
    script = re.search(r"<script>(.*?)</script>", quickstart, re.S)[1]
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{own}'" in policy
    assert "default-src 'none'" in policy


def test_hostile_titles_are_text():
    bad = '<script>alert(1)</script> & "x" {{ 7 * 7 }} $a$'
    page = page_of(material(values(a=A, b=B), titles={"a": bad, "b": bad}, name=bad))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("(a)") >= 1, "equal titles are told apart by their keys"


def test_the_answer_comes_before_everything_else():
    page = page_of(material(values(a=A, b=B)))
    assert page.index('class="headline"') < page.index('class="limits"') < page.index('class="ranking"')
    assert page.index("<table") == page.index('<table class="ranking"')
    assert html.escape("A beats B by 2.5 ± 0.2 points of MAP@R at the given settings.") in page


def test_a_partial_experiment_says_what_is_missing_and_invents_nothing():
    half = material(values(a=A, b=B[:2]), titles={"a": "A", "b": "B", "never": "Never run"})
    page = page_of(half)
    (limits,) = re.findall(r'<p class="limits">.*?</p>', page)
    assert "Not finished: B has 2 of 4 runs; Never run has 0 of 4 runs." in limits
    assert "Interim: A 17.6" in page
    assert '<span class="missing">not run</span>' in page
    assert [row.head for row in page_values(half)["scores"].table.rows] == ["A", "B"]


def test_an_experiment_without_a_run_has_a_page_too():
    page, figures = build_page(material({"a": [], "b": []}))
    assert figures == ()
    assert {"Not run.", "No run is complete yet.", "Nothing was run.", "No command was recorded."} <= set(
        Reader(page).texts
    )


def test_an_experiment_without_a_run_that_asks_for_the_best_has_a_page_too():
    page, _ = build_page(material({"a": [], "b": []}, settings=comparing("best")))
    assert "No run is complete yet." in Reader(page).texts


def test_every_finding_stands_on_the_page_once_with_its_detail():
    world = searched(a=(29.26, 28.01, 8.13), b=(40, 39, 38))
    page = html.unescape(page_of(world).split('<section id="reach"')[1])
    for finding in world.answer.findings:
        assert page.count(f"<li>{finding.text}") == 1
        assert finding.detail in page


def test_pairs_with_the_best_method_are_named_as_such():
    settings = {**MLRC, "dataset": {"name": "glyphs"}, "primary": {"compare": "best"}, "methods": ["a", "b"]}
    shown = page_of(material(values(a=A, b=B), settings=settings))
    assert "<summary>Each method with A, which has the highest mean as a list</summary>" in shown


def test_a_matrix_of_the_pairs_and_the_limits_come_before_the_list_which_is_one_click_away():
    page = page_of(material(values(a=A, b=B)))
    matrix, limits, pairs = (
        page.index(text) for text in ('class="matrix"', 'id="reach"', '<details class="fold" id="pairs"')
    )
    assert matrix < limits < pairs
    assert '<a href="#pairs">' in page[matrix:limits]
    assert 'class="matrix' not in page_of(
        material(values(a=A, b=B), settings=comparing("b", {**MLRC, "methods": ["a", "b"]}))
    )


def test_what_decides_a_fair_comparison_is_a_small_table_of_the_methods():
    def drawn(**recipes):
        world = material(values(a=A, b=B))
        plan = changed_plan(world.measured.plan, recipes=recipes)
        return page_values(replace(world, answer=answer_of(MeasuredExperiment(plan, world.measured.records))))

    table = drawn(a=Recipe(samples_per_class=4), b=Recipe(samples_per_class=1, parameters="proxies"))["recipes"].table
    assert [row.head for row in table.rows] == ["A", "B"]
    assert [cell.value for cell in table.column("images of a class in a batch")] == ["4", "1"]
    assert [cell.value for cell in table.column("trained beside the network")] == ["nothing", "proxies"]
    assert drawn()["recipes"] is None


def content_of(download):
    return base64.b64decode(download[1].split(",", 1)[1]).decode()


def test_every_run_is_traced_to_its_trainings(quickstart):
    for record in measured().records:
        for said in (record.fingerprint, record.provenance.commit, record.provenance.finished_at):
            assert said in quickstart
        for name in record.fold_fingerprints:
            assert name in quickstart
        for name, value in record.hyperparameters.items():
            assert name in quickstart
            assert str(value) in quickstart
    for package, version in measured().records[0].provenance.versions.items():
        assert f"<dt>{package}</dt><dd>{version}</dd>" in quickstart


def test_runs_of_two_environments_say_which_is_theirs():
    runs = values(a=A, b=B)
    other = some_provenance().model_copy(update={"device": "NVIDIA H200", "tree_dirty": True})
    runs["b"] = [replace_run(run, provenance=other) for run in runs["b"]]
    page = words_of(page_of(material(runs)))
    assert "Environment 1: cpu" in page
    assert "Environment 2: NVIDIA H200" in page
    assert (page.count(" environment 1"), page.count(" environment 2")) == (4, 4)


def test_the_settings_are_shown_one_by_one(quickstart):
    settings = page_values(material(values(a=A)))["settings"]
    assert settings["reproductions"] == "4"
    assert settings["training.optimizer.lr"] == "1e-06"
    assert "<dt>training.optimizer.lr</dt><dd>0.001</dd>" in quickstart


def test_the_scores_and_their_files_are_those_of_the_table():
    world = material(values(a=A, b=B))
    scores = page_values(world)["scores"]
    table = replace(table_of(world.answer), label="some results")
    assert [content_of(file) for file in scores.downloads] == [to_csv(table), to_markdown(table), to_latex(table)]
    assert to_html(scores.table) in page_of(world)
    link = next(one for one in Reader(page_of(world)).of("a") if one.get("download") == "table.csv")
    assert link["href"] == scores.downloads[0][1]


def test_published_values_stand_beside_runs_only_under_the_published_conditions():
    runs = {"contrastive": runs_of("contrastive", [0.59, 0.60, 0.605])}
    own = material(runs, titles={"contrastive": "Contrastive"}, settings=MLRC, name="mlrc_cub200")
    found = page_values(own)
    (table,) = [section.table for section in found["published"]]
    assert "A Metric Learning Reality Check" in table.title
    cells = table.row("contrastive")
    (printed,) = (cell.value for title, cell in cells.items() if title.endswith("oncatenated P@1"))
    assert printed == 68.13
    assert {row.key for row in table.rows} == {"contrastive"}
    other = material(runs, settings=changed(MLRC, embedding_size=64, images={"crop": 96})).measured
    elsewhere = replace(own, answer=answer_of(other))
    assert page_values(elsewhere)["published"] == []
    (said,) = re.findall(r"Not compared with A Metric Learning Reality Check.*", page_of(elsewhere))
    assert "96 pixels" in said


def test_the_paragraph_to_cite_has_the_numbers_of_the_experiment():
    world = searched(reproductions=2, a=(30, 31, 32), b=(20, 21, 22))
    page = words_of(page_of(world))
    run = world.records["a"][0]
    for said in (
        f"using metric-learning-reproductions at commit {run.provenance.commit[:7]}. The network is ",
        "searched 3 times, each time from seeds of its own and with 20 trials of each method on validation classes, "
        "and each "
        "setting found was trained 2 times with new seeds.",
        f"Scores are measured on {run.test_images:,} images of {run.test_classes} test classes. We compared the two "
        "methods in concatenated MAP@R with t-tests over means of complete searches: a method's variance is the larger "
        "of its own and that pooled over methods, times 1 + 1/(S − 1)² for S searches. The p values are "
        'multiplied by 4/3, since three quarters of the level is spent on "better". The probability of any wrong '
        'claim, "better" or "equal within 0.5 points", is meant to be at most 5 %; in simulations it was higher where ',
        "title = {A Metric Learning Reality Check}",
    ):
        assert said in page
    single = words_of(page_of(material(values(a=A, b=B), trials=10)))
    assert "if searches vary at most twice as much as in results/measured/all_methods_glyphs_three_searches" in single
    assert "Hyperparameters were not searched" in words_of(page_of(material(values(a=A, b=B))))


def test_a_page_counts_the_trials_that_searches_got_where_ends_were_probed():
    own = searched(a=(30, 31, 32), b=(20, 21, 22)).measured
    wider = replace(own, plan=changed_plan(own.plan, trials={"a": 30, "b": 30}))
    page = words_of(page_of(Material("some", answer_of(wider))))
    assert "30 trials in a search" in page
    assert "with 30 trials of each method on validation classes" in page
    assert "20 trials" not in page


@pytest.mark.parametrize(
    ("compare", "methods", "said"),
    [
        ("all", "a", "We tested 1 method (A) on glyphs "),
        ("all", "ab", "We compared the two methods in concatenated MAP@R "),
        ("all", "abc", "We compared all pairs of methods in concatenated MAP@R "),
        ("b", "ab", "We compared the two methods in concatenated MAP@R "),
        ("b", "abc", "We compared each other method with MASP (ours) in concatenated MAP@R "),
        ("best", "abc", "We compared each other method with A, which has the highest mean, in concatenated MAP@R "),
    ],
)
def test_the_paragraph_is_prose_with_any_number_of_methods(compare, methods, said):
    means = {"a": (30, 31, 32), "b": (20, 21, 22), "c": (10, 11, 12)}
    titles = {"a": "A", "b": "MASP (ours)", "c": "C"}
    world = searched(
        {key: titles[key] for key in methods},
        settings=comparing(compare, {**MLRC, "methods": [*methods]}),
        **{key: means[key] for key in methods},
    )
    page = words_of(page_of(world))
    assert said in page
    assert ("We compared" in page) == (len(methods) > 1)


def test_the_paragraph_names_network_racing_runs_and_cut_off_trainings():
    kept = MeasuredExperiment.kept("quickstart")
    written = words_of(page_of(Material("quickstart", answer_of(kept))))
    for said in (
        "We tested 3 methods (Untrained trunk, Triplet, Proxy-Anchor) on glyphs with the protocol of A Metric Learning "
        "Reality Check (Musgrave et al., 2020), "
        f"using metric-learning-reproductions at commit {kept.records[0].provenance.commit[:7]}. The network is "
        "small_conv, trained from a random start, with embeddings of 128 dimensions. Hyperparameters were searched 3 ",
        "with 8 trials of each method on validation classes, and each setting found was trained once more with a new "
        "seed. A trial that was clearly behind the best one on the same folds got no more folds. A run has 4 models, "
        "each trained for at most 48 epochs (trials for at most 4).",
        "as single models, in P@1, over other test classes",
        "Proxy-Anchor − Triplet",
        "after 200 steps",
        "difference ± over classes verdict",
    ):
        assert said in written


@pytest.mark.skipif(shutil.which("bibtex") is None, reason="no pdflatex and bibtex on this machine; CI has them")
def test_the_text_and_the_sources_to_cite_go_through_latex(tmp_path, quickstart):
    citing = quickstart.split('<details class="fold" id="citing">')[1].split("</details>")[0]
    plain, latex, sources = map(html.unescape, re.findall(r"<pre[^>]*>(.*?)</pre>", citing, re.S))
    assert "small_conv" in plain
    assert r"small\_conv" in latex
    assert all(rf"\cite{{{key}}}" in latex for key in re.findall(r"@\w+{(\w+),", sources))
    assert "CITE" not in plain + latex
    document = r"\documentclass{article}\begin{document}%s\bibliographystyle{plain}\bibliography{us}\end{document}"
    (tmp_path / "us.bib").write_text(sources, encoding="utf-8")
    (tmp_path / "us.tex").write_text(document % latex, encoding="utf-8")
    typeset = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "us.tex"]
    for command in (typeset, ["bibtex", "us"], typeset):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1", check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Warning--" not in done.stdout


def test_pictures_of_a_page_have_fewer_bytes():
    chance = np.random.default_rng(0)
    pixels = chance.integers(0, 256, (200, 3), dtype=np.uint8)[chance.integers(0, 200, (200, 240))]
    Image.fromarray(pixels).save(buffer := io.BytesIO(), "PNG", compress_level=3)
    embedded = base64.b64decode(PageFigure("name", "Title", {"png": buffer.getvalue()}).image.partition(",")[2])
    assert len(embedded) < len(buffer.getvalue())
    shown = np.asarray(Image.open(io.BytesIO(embedded)).convert("RGB")).astype(int)
    assert np.abs(shown - pixels).max() <= 4
