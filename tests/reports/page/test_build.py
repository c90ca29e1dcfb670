"""From records to a page: what is missing is said, figures only where there are data."""

from dataclasses import replace

from reports.page.build import build_page
from reports.page.material import Material
from reports.page.render import figure_groups, render_page
from tests.support.measured_experiment import with_trainings
from tests.support.page_material import A, B, C, figure_data, material, search, values
from tests.support.published_world import MLRC, changed
from tests.support.sample_records import some_summary


def test_a_partial_experiment_says_what_is_missing_and_invents_nothing():
    half = material(values(a=A, b=B[:2]), titles={"a": "A", "b": "B", "never": "Never run"})
    content = build_page(half).content
    assert content.missing == ("B has 2 of 4 runs", "Never run has no finished run")
    rows = {row.head: row.lines[0].cells for row in content.tables[0].table.rows}
    assert {(cell.value, cell.kind) for cell in rows["Never run"][1:]} == {(None, "not run")}
    assert rows["B"][0].value == 2
    page = render_page(content)
    assert "Partial: this experiment is not finished" in page
    assert content.headline.startswith("Interim: 2 of 4 runs of B are complete, Never run has 0. Nothing is claimed")
    assert "2 of 3" in dict(content.highlights)["methods"]


def test_a_number_of_one_has_a_singular_name():
    names = [name for name, _ in build_page(material(values(a=A[:1]), reproductions=1)).content.highlights]
    assert names[:3] == ["method", "run", "trials per method"]
    names = [name for name, _ in build_page(material(values(a=A, b=B))).content.highlights]
    assert names[:3] == ["methods", "runs", "trials per method"]


def test_an_experiment_without_a_run_has_a_page_too():
    report = build_page(material({"a": [], "b": []}))
    assert report.figures == ()
    assert report.content.tables == ()
    assert report.content.missing == ("A has no finished run", "B has no finished run")
    assert "Not run." in render_page(report.content)


def test_hostile_titles_are_text():
    bad = '<script>alert(1)</script> & "x" {{ 7 * 7 }} $a$'
    page = render_page(build_page(material(values(a=A, b=B), titles={"a": bad, "b": bad}, name=bad)).content)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("(a)") >= 1, "equal titles are told apart by their keys"


def test_figures_are_drawn_where_there_are_data_and_nowhere_else():
    runs = values(a=A, b=B, c=C)
    bare = {one.name for one in build_page(material(runs)).figures}
    assert bare == {
        *("intervals_concatenated_map_at_r", "intervals_separated_map_at_r"),
        *("intervals_concatenated_p_at_1", "intervals_separated_p_at_1"),
    }
    whole = material(
        runs,
        figure_data={"a": figure_data(), "b": figure_data(False)},
        searches={"a": search("x", "y"), "b": search("x")},
    )
    report = build_page(whole)
    added = {one.name for one in report.figures} - bare
    assert added == {
        *("tsne_test_a", "tsne_test_b", "tsne_proxies_a", "similarity", "spectrum", "gallery_a"),
        *("search_a_history", "search_a_parallel", "search_a_contour", "search_b_history"),
    }
    assert all(one.svg.startswith("<?xml") and one.png.startswith(b"\x89PNG") for one in report.figures)
    folds = [fold for fold, _ in figure_groups(report.content.figures, "details")]
    assert folds[-2:] == ["Search of A", "Search of B"]
    assert [gallery.title for gallery in report.content.galleries] == ["A: hardest classes", "B: hardest classes"]
    page = render_page(report.content)
    assert "<b>x" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page


def test_recorded_test_scores_are_drawn_in_the_metric_of_the_papers_code():
    def figure(**settings):
        world = with_trainings()
        summary = some_summary(methods=world.summary.methods, settings={**MLRC, **settings})
        figures = build_page(Material("some", replace(world, summary=summary))).figures
        return next(one for one in figures if one.name == "test_curves").view

    assert figure().title == "Test MAP@R during the trainings"
    assert figure(peeking_metric="precision_at_1").title == "Test P@1 during the trainings"


def test_the_pages_scores_have_the_last_epoch_and_rows_of_absent_methods():
    runs = [run.model_copy(update={"last_epoch": run.separated}) for run in values(a=A)["a"]]
    page = render_page(build_page(material({"a": runs}, titles={"a": "A", "b": "B"})).content)
    assert "last epoch" in page
    assert "Last epoch: the same trainings at their end, without a choice of the epoch." in page


def test_panels_that_differ_in_batch_size_alone_are_drawn_together():
    def panel(size, **changes):
        settings = changed(MLRC, training={"batch_size": size}, **changes)
        return material(values(a=A, b=B), settings=settings).measured

    panels = {"16": panel(16), "32": panel(32), "other": panel(64, embedding_size=64)}
    whole = Material("file/16", panels["16"], panels=panels)
    (drawn,) = [one for one in build_page(whole).figures if one.name == "batch_size"]
    assert drawn.view is not None
    alone = Material("file/16", panels["16"], panels={"16": panels["16"], "other": panels["other"]})
    assert not [one for one in build_page(alone).figures if one.name == "batch_size"]
