"""The page as text: what it says, what it must not let through, what it weighs."""

import base64
import dataclasses
import hashlib
import html
import io
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from reports.figures.intervals import interval_plot
from reports.figures.style import png_of, svg_of
from reports.page.content import Command, Download, MethodSource, PageContent, TableSection, Verdict
from reports.page.material import Material
from reports.page.render import SHOWN, compact_svg, duration, embedded, environments_of, render_page, thumbnail_uri
from reports.page.sections.origins import origins_of, protocol_facts
from reports.page.sections.published_values import PublishedValue
from reports.page.sections.table_sections import scores_table, tables_of
from reports.tables.formats import to_csv, to_markdown
from reports.tables.latex import to_latex
from reports.tables.result_table import result_cells, table_of
from reports.tables.table import PERCENT, Cell, Column, NumberFormat, Row, Table
from results.statistics.published_verdict import PublishedMean
from results.store.experiment_results import MeasuredExperiment
from tests.support.drawn import method_runs
from tests.support.sample_page import measured, sample_content
from tests.support.sample_records import some_provenance, some_run, some_summary

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Reader(HTMLParser):
    """Every element with its attributes and direct text; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
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
            self.texts.append((self._open[-1], " ".join(data.split())))

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def quickstart():
    return render_page(sample_content())


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


LOADING = {"src", "srcset", "poster", "data", "background", "ping", "action", "formaction", "xlink:href"}
"""Attributes whose address a browser loads, or sends something to."""


def test_the_page_loads_nothing_from_outside():
    """Links to papers and to the code are allowed: a browser opens them only when a reader follows them."""
    source = MethodSource("A paper.", ("https://arxiv.org/abs/1234.56789",))
    link = Command("https://github.com/somebody/suite/commit/0", "Permanent link:")
    text = render_page(sample_content(sources=(("A", source),), citing=(link,)))
    reader = Reader(text)
    loaded = [value for _, a in reader.elements for key, value in a.items() if key in LOADING]
    assert loaded
    assert all(address.startswith("data:") for address in loaded)
    linked = [(tag, a["href"]) for tag, a in reader.elements if "href" in a]
    assert {tag for tag, _ in linked} == {"a"}
    outside = [address for _, address in linked if not address.startswith(("data:", "#"))]
    assert outside == ["https://arxiv.org/abs/1234.56789", "https://github.com/somebody/suite/commit/0"]
    assert not {tag for tag, _ in reader.elements} & {"link", "iframe", "object", "embed", "form", "base"}
    assert not any(a.get("http-equiv", "").lower() == "refresh" for a in reader.of("meta"))
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    assert "url(" not in style
    assert "@import" not in style
    assert not any(re.search(r"url\(|@import", a.get("style") or "") for _, a in reader.elements)
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    assert not re.search(r"fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import|location *=|\bopen\(", script)


def test_only_the_pages_own_script_may_run(quickstart):
    (policy,) = [one["content"] for one in Reader(quickstart).of("meta") if one.get("http-equiv")]
    script = re.search(r"<script>(.*?)</script>", quickstart, re.S).group(1)
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{own}'" in policy
    assert "default-src 'none'" in policy


def test_headings_go_down_one_step_at_a_time(quickstart):
    levels = [int(tag[1]) for tag, _ in Reader(quickstart).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))


def test_landmarks_and_names_of_images(quickstart):
    reader = Reader(quickstart)
    for landmark in ("header", "nav", "main", "footer"):
        assert len(reader.of(landmark)) == 1
    assert reader.of("html")[0]["lang"] == "en"
    assert all("alt" in image for image in reader.of("img"))


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}</style>"


def hostile(value):
    """The same content with a hostile text wherever a text stands; what the page reads by name stays."""
    if isinstance(value, str) and not value.startswith("data:"):
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(hostile(item) for item in value)
    if dataclasses.is_dataclass(value):
        kept = {"kind", "mark", "verdict", "media_type", "form", "part"}
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return type(value)(**{name: one if name in kept else hostile(one) for name, one in fields.items()})
    if isinstance(value, dict):
        return {hostile(name): hostile(one) for name, one in value.items()}
    return value


def test_hostile_names_stay_text_everywhere():
    content = sample_content(missing=("x",))
    text = render_page(hostile(content))
    reader, plain = Reader(text), Reader(render_page(content))
    for tag in ("script", "style", "img"):
        assert len(reader.of(tag)) == len(plain.of(tag))
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    assert HOSTILE.replace("&amp;", "&") not in text
    shown = [words for _, words in reader.texts]
    assert sum(html.unescape(HOSTILE) in words or HOSTILE in words for words in shown) > 50
    assert "49" not in " ".join(words for tag, words in reader.texts if tag == "h1")


def page_with(*cells, downloads=()):
    """A page with a table of one row."""
    columns = tuple(Column(f"c{at}") for at in range(len(cells)))
    table = Table("t", "", columns, (Row.single("Triplet", cells),))
    return render_page(PageContent("p", tables=(TableSection(table, downloads),)))


def cells_of(text):
    return re.findall(r"<td[^>]*data-sort=\"([^\"]*)\"[^>]*>(.*?)</td>", text, re.S)


def test_a_missing_number_is_said_to_be_not_run():
    text = page_with(Cell(kind="not run"), Cell(0.0, form=PERCENT), Cell())
    (empty, missing), (zero, number), (nothing, dash) = cells_of(text)
    assert (empty, zero, nothing) == ("", "0.0", "")
    assert "not run" in missing
    assert ">0.00<" in number
    assert "not run" not in number + dash
    assert "–" in dash


def test_sorting_reads_full_precision_not_what_is_shown():
    (key, shown), (word, _) = cells_of(page_with(Cell(1 / 8.1, form=PERCENT), Cell("Triplet")))
    assert float(key) == 1 / 8.1
    assert ">12.35<" in shown
    assert word == "Triplet"


def test_what_stands_behind_a_value_is_set_apart():
    form = NumberFormat(digits=1)
    cells = (Cell(2.0, 0.5, note="(3)", form=form), Cell(2.0, interval=(1.0, 3.0), form=form), Cell(2.0, form=form))
    spreads = [re.findall(r'<span class="spread">(.*?)</span>', body) for _, body in cells_of(page_with(*cells))]
    assert spreads == [["± 0.5 (3)"], ["[1.0, 3.0]"], []]


def test_marks_and_verdicts_are_said_in_words_too():
    cells = (Cell(1, mark="best"), Cell(2, mark="tied"), Cell(3, verdict="inside"), Cell(4, verdict="above"))
    text = page_with(*cells, Cell(5, verdict="below"), Cell(6, verdict="no interval"), Cell(7, mark="untested"))
    shown = [re.sub(r"<[^>]+>", "", body) for _, body in cells_of(text)]
    assert "(highest mean)" in shown[0]
    assert "(not significantly below the highest mean)" in shown[1]
    assert "published value inside" in shown[2]
    assert "published value outside" in shown[3]
    assert "published value outside" in shown[4]
    assert shown[5:] == ["6", "7"]
    legend = re.search(r'<p class="legend">(.*?)</p>', text, re.S).group(1)
    for words in (
        "highest mean of the column",
        "not significantly below",
        "value inside our prediction interval",
        "value outside",
    ):
        assert words in legend
    assert 'class="legend"' not in page_with(Cell(1))


def test_a_row_must_have_a_cell_for_every_column():
    with pytest.raises(ValueError, match=r"table 't', row 'Triplet': 1 cells for 2 columns"):
        Table("t", "", (Column("a"), Column("b")), (Row.single("Triplet", [Cell(1)]),))


def test_neighbouring_columns_share_a_heading():
    columns = (Column("n"), Column("P@1", "separated"), Column("RP", "separated"), Column("P@1", "concatenated"))
    assert Table("t", "", columns, ()).groups == [("", 1), ("separated", 2), ("concatenated", 1)]


def test_a_partial_experiment_is_marked_before_anything_else():
    partial = render_page(sample_content(missing=("CosFace has no finished run",)))
    assert partial.index("Partial: this experiment is not finished") < partial.index('id="reach-title"')
    assert "CosFace has no finished run" in partial
    assert "Partial:" not in render_page(sample_content())


def test_an_empty_page_says_what_is_not_there():
    words = " ".join(text for _, text in Reader(render_page(PageContent("Empty"))).texts)
    for said in ("No comparison was made.", "Not run.", "Not recorded.", "Nothing was run."):
        assert said in words
    assert "Figures" not in words


def test_verdicts_stand_under_their_kind_and_many_are_folded():
    verdicts = [Verdict("warning", f"Warning {i}.") for i in range(SHOWN + 3)]
    best = [Verdict("best", f"Score {i} is highest.") for i in range(3)]
    text = render_page(PageContent("p", verdicts=(*best, *verdicts)))
    assert (
        text.index("Read this first") < text.index("Warning 0.") < text.index("Highest means") < text.index("Score 0")
    )
    folded = re.search(r"<details>\s*<summary>3 more</summary>(.*?)</details>", text, re.S).group(1)
    assert [i for i in range(SHOWN + 3) if f"Warning {i}." in folded] == [SHOWN, SHOWN + 1, SHOWN + 2]
    summary = "<summary>2 more: secondary scores, not tested</summary>"
    secondary = re.search(rf"{summary}(.*?)</details>", text, re.S).group(1)
    assert [i for i in range(3) if f"Score {i} is highest." in secondary] == [1, 2]
    assert "What this experiment can show" not in text


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
        assert package in quickstart
        assert version in quickstart


def test_runs_of_two_environments_say_which_is_theirs():
    other = some_provenance().model_copy(update={"device": "NVIDIA H200", "tree_dirty": True})
    records = (some_run("triplet", 0), some_run("triplet", 1, provenance=other))
    origins = origins_of(MeasuredExperiment(some_summary(), records), {"triplet": "Triplet", "never": "Never run"})
    assert [origin.key for origin in origins] == ["triplet"]
    assert [one.device for one in environments_of(origins)] == ["cpu", "NVIDIA H200"]
    text = render_page(PageContent("p", origins=origins))
    assert "in 2 environments" in text
    assert text.count("with uncommitted changes") == 1
    assert text.index("environment 1<") < text.index("environment 2<")


def test_the_table_of_scores_shows_the_numbers_of_the_results():
    experiment = measured()
    results = table_of(experiment)
    section = tables_of(Material("quickstart", experiment), (), None)[0]
    assert [(row.key, row.head) for row in section.table.rows] == [(row.key, row.head) for row in results.rows]
    shown = cells_of(render_page(PageContent("p", tables=(section,))))
    for row in results.rows:
        key, count = shown.pop(0)
        assert key == re.sub("<[^>]+>", "", count) == str(row.lines[0].cells[0].value)
        for cell in result_cells(row).values():
            key, body = shown.pop(0)
            assert float(key) == cell.value
            assert float(re.search(r'class="value[^"]*">([^<]*)<', body)[1]) == pytest.approx(
                100 * cell.value, abs=0.00501
            )
            spread = re.search(r'class="spread">± ([^<]*)<', body)[1]
            assert float(spread) == pytest.approx(100 * cell.half_width, abs=0.00501)
    assert shown == []
    assert [file.text for file in section.downloads] == [to_csv(results), to_markdown(results), to_latex(results)]


P1 = ("separated", "precision_at_1")


def few_runs():
    records = [some_run("triplet", run, value) for run, value in enumerate((0.50, 0.54, 0.61))]
    records.append(some_run("margin", 0, 0.4))
    titles = {"triplet": "Triplet", "margin": "Margin"}
    experiment = MeasuredExperiment(some_summary(methods=titles), tuple(records))
    return experiment, table_of(experiment)


@pytest.mark.parametrize(("published", "verdict"), [(0.28, "inside"), (0.27, "above"), (0.83, "below"), (None, None)])
def test_a_published_value_is_held_against_the_interval(published, verdict):
    experiment, table = few_runs()
    # 0.55 ± 0.1383, see test_result_table; for a published value of one run, 0.1383 sqrt(3 + 1)
    values = {} if published is None else {("triplet", P1): PublishedValue(PublishedMean(published), "MLRC, Table 4")}
    cell = result_cells(scores_table(table, experiment, values).rows[0])[P1]
    assert cell.verdict == verdict
    assert "runs: 50.00, 54.00, 61.00" in cell.tooltip
    assert "41.17 to 68.83, over 3 runs" in cell.tooltip
    assert ("(MLRC, Table 4)" in cell.tooltip) == (published is not None)


def test_one_run_is_not_held_against_anything():
    experiment, table = few_runs()
    cell = result_cells(scores_table(table, experiment, {("margin", P1): PublishedValue(PublishedMean(0.4))}).rows[1])[
        P1
    ]
    assert (cell.half_width, cell.verdict) == (None, "no interval")
    assert "1 run: no interval" in cell.tooltip


def test_methods_without_a_run_have_a_row_that_says_so():
    experiment, table = few_runs()
    last = scores_table(table, experiment, absent={"cosface": "CosFace"}).rows[-1]
    count, *cells = last.lines[0].cells
    assert (last.head, count.value) == ("CosFace", 0)
    assert [(cell.value, cell.kind) for cell in cells] == [(None, "not run")] * 6


def test_the_protocol_is_shown_setting_by_setting():
    settings = measured().summary.experiment.without_folder()
    facts = {group.title: dict(group.items) for group in protocol_facts(settings)}
    assert facts["Training"]["optimizer lr"] == "0.001"
    assert facts["Search"]["sampler startup"] == "scrambled_sobol"
    assert facts["Images"]["resize"] == "none"
    assert facts["Images"]["flip"] == "no"
    assert facts["Experiment"]["reproductions"] == "3"
    assert "variants" not in facts["Experiment"]
    assert dict(protocol_facts({"variants": [{"name": "a", "bias": True}]})[0].items) == {
        "variants": "name: a; bias: yes"
    }


def test_downloads_carry_their_text():
    text = page_with(Cell(1), downloads=(Download("t.csv", "text/csv", "a,b\n±1,2\n"),))
    (link,) = [one for one in Reader(text).of("a") if "download" in one]
    assert link["download"] == "t.csv"
    head, content = link["href"].split(",", 1)
    assert head == "data:text/csv;base64"
    assert base64.b64decode(content).decode() == "a,b\n±1,2\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(14.436, "14.4 s"), (59.96, "60.0 s"), (185, "3 min 5 s"), (3599.7, "1 h 0 min"), (7810, "2 h 10 min")],
)
def test_durations_are_said_as_people_do(seconds, said):
    assert duration(seconds) == said


def decoded(uri):
    head, content = uri.split(",", 1)
    return head, base64.b64decode(content)


def test_thumbnails_average_blocks_of_pixels():
    image = np.arange(8 * 4, dtype=np.uint8).reshape(8, 4)
    head, content = decoded(thumbnail_uri(image, side=4))
    assert head == "data:image/png;base64"
    pixels = np.rint(255 * imread(io.BytesIO(content))[..., :3]).astype(int)
    expected = image.reshape(4, 2, 2, 2).mean(axis=(1, 3)).round()
    assert pixels.shape == (4, 2, 3)
    assert (pixels == expected[..., None]).all()


def test_small_and_thin_images_stay_as_they_are():
    for shape in ((32, 32, 3), (400, 1, 3)):
        image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        pixels = np.rint(255 * imread(io.BytesIO(decoded(thumbnail_uri(image, side=112))[1]))[..., :3]).astype(int)
        assert (pixels == image).all()
    with pytest.raises(ValueError, match="not float64 of shape"):
        thumbnail_uri(np.zeros((4, 4)))


def test_figures_come_as_svg_until_they_have_too_many_points():
    small = interval_plot([method_runs("A", (0.5, 0.6))], "x")
    assert decoded(embedded(svg_of(small), png_of(small)))[0] == "data:image/svg+xml;base64"
    crowded = Figure()
    crowded.add_subplot().plot(np.random.default_rng(0).normal(size=10_000), "o")
    assert decoded(embedded(svg_of(crowded), png_of(crowded)))[0] == "data:image/png;base64"


def test_a_shortened_svg_draws_the_same_text_and_lines():
    short = compact_svg(
        '<?xml version="1.0"?>\n<svg>\n <!-- 5 -->\n <g transform="translate(12.3456 7.891234) scale(0.015625)">\n'
        '  <path d="M 691 4666 \nL 3169.98765 -41 \nz\n" style="fill: none"/>\n </g>\n</svg>\n'
    )
    assert short == (
        '<svg><g transform="translate(12.34 7.891234) scale(0.015625)">'
        '<path d="M691 4666L3169.98 -41z" style="fill: none"/></g></svg>'
    )
