"""From records to a page: sentences no stronger than the runs, what is missing said, figures only where data exist."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reports.figures.trials import Parameter, SearchHistory, TrialPoint
from reports.page.build import build_page
from reports.page.material import Material
from reports.page.render import figure_groups, render_page
from reports.page.sections.class_intervals import over_classes
from reports.page.sections.drawn_figure import file_name
from reports.page.sections.published_values import compared_tables, published_verdicts
from reports.page.sections.table_sections import tables_of
from reports.page.sections.verdicts import verdicts_of
from reports.page.sections.warnings import warnings_of
from results.artifacts import Exhibit
from results.experiment_results import MeasuredExperiment
from results.records import ClassScores
from results.statistics.comparisons import holm
from tests.support.printed_world import MLRC, changed, runs_of
from tests.support.sample_page import measured
from tests.support.sample_records import scores, some_provenance, some_run

A, B, C = [0.60, 0.61, 0.605, 0.602], [0.50, 0.512, 0.503, 0.5], [0.601, 0.607, 0.606, 0.603]


def material(runs, titles=None, name="some", settings=None, reproductions=4, **more):
    records = tuple(record for own in runs.values() for record in own)
    summary = {
        "title": "Some experiment",
        "methods": titles or {key: key.upper() for key in runs},
        "trials": 50,
        "reproductions": reproductions,
        "runs": dict.fromkeys(titles or runs, reproductions),
        "settings": settings or {**MLRC, "dataset": {"name": "glyphs"}},
    }
    return Material(name, MeasuredExperiment(summary, records), **more)


def values(**methods):
    return {key: [some_run(key, run, value) for run, value in enumerate(own)] for key, own in methods.items()}


def said(found, kind=None):
    return [f"{one.sentence} {one.detail}" for one in found if kind in (None, one.kind)]


def paired(a, b):
    return stats.ttest_rel([x / 4 + 0.025 for x in a], [x / 4 + 0.025 for x in b]).pvalue


def test_best_ties_and_pairs_are_those_of_independent_tests():
    found = verdicts_of(material(values(a=A, b=B, c=C)))
    (p_ab, p_ac, p_cb) = paired(A, B), paired(A, C), paired(C, B)
    against = dict(zip("bc", holm([p_ab, p_ac]), strict=True))
    assert against["b"] < 0.05 < against["c"]
    best = said(found, "best")[0]
    assert "Concatenated MAP@R: A has the highest mean, 17.61" in best
    assert "significantly above B; not told apart from C" in best
    ab, ac, cb = holm([p_ab, p_ac, p_cb])
    real, undecided = said(found, "real"), said(found, "open")
    assert (len(real), len(undecided)) == (2, 1)
    gap = 100 * (np.mean(A) - np.mean(B)) / 4
    assert f"A is {gap:.2f} points above B in concatenated MAP@R." in real[0]
    assert all("corrected for 3 pairs (Holm)" in sentence for sentence in (*real, *undecided))
    assert ("p < 0.001" if ab < 0.001 else f"p = {ab:.3f}") in real[0]
    assert ("p < 0.001" if cb < 0.001 else f"p = {cb:.3f}") in real[1]
    assert f"p = {ac:.3f}" in undecided[0]


def test_a_pair_is_said_with_the_higher_first_and_an_interval_of_that_sign():
    (sentence,) = said(verdicts_of(material(values(b=B, a=A))), "real")
    interval = stats.ttest_rel([x / 4 for x in A], [x / 4 for x in B]).confidence_interval()
    assert sentence.startswith("A is ")
    assert f"95 % interval {100 * interval.low:.2f} to {100 * interval.high:.2f}" in sentence


def test_single_runs_make_no_difference_real():
    one = material(values(a=A[:1], b=B[:1]), reproductions=1)
    found = verdicts_of(one)
    assert said(found, "real") == []
    assert any("cannot be tested" in sentence for sentence in said(found, "open"))
    assert "not tested against B, for want of runs" in said(found, "best")[0]
    assert any("single run" in sentence for sentence in said(warnings_of(one, partial=False)))


@pytest.mark.parametrize(("runs", "weak"), [(2, True), (3, True), (4, False)])
def test_few_runs_are_called_weak(runs, weak):
    found = said(warnings_of(material(values(a=A[:runs], b=B[:runs])), partial=False))
    assert any("which is weak" in sentence for sentence in found) == weak


def test_a_smaller_budget_and_flags_and_code_are_said_first():
    flagged = [replace_run(run, flags=("fold 2: training diverged (loss)",)) for run in values(a=A)["a"]]
    dirty = some_provenance().model_copy(update={"tree_dirty": True, "device": "cuda"})
    other = [replace_run(run, provenance=dirty) for run in values(b=B)["b"]]
    found = said(warnings_of(material({"a": flagged, "b": other}), partial=True))
    assert "not finished" in found[0]
    assert any("4 of 10 reproductions" in sentence and "trials" not in sentence for sentence in found)
    assert any("A: training diverged (loss) (4 runs)" in sentence and "run 3, fold 2" in sentence for sentence in found)
    assert any("no commit holds" in sentence for sentence in found)
    assert any("different devices (cpu and cuda)" in sentence for sentence in found)
    clean = material(values(a=A * 3, b=B * 3), reproductions=12)
    assert warnings_of(clean, partial=False) == ()


def replace_run(run, **changes):
    return run.model_copy(update=changes)


def test_a_method_below_the_untrained_trunk_is_named():
    found = said(warnings_of(material(values(untrained=A, b=B)), partial=False))
    assert any("B has no higher mean than the untrained trunk" in sentence for sentence in found)


def test_a_partial_experiment_says_what_is_missing_and_invents_nothing():
    half = material(values(a=A, b=B[:2]), titles={"a": "A", "b": "B", "never": "Never run"})
    content = build_page(half).content
    assert content.missing == ("B has 2 of 4 runs", "Never run was not run to the end")
    rows = {row.head: row.lines[0].cells for row in content.tables[0].table.rows}
    assert {(cell.value, cell.kind) for cell in rows["Never run"][1:]} == {(None, "not run")}
    assert rows["B"][0].value == 2
    page = render_page(content)
    assert "Partial: this experiment is not finished" in page
    assert not any("Never run" in one.sentence for one in content.verdicts)
    assert "2 of 3" in dict(content.highlights)["methods"]


def test_an_experiment_without_a_run_has_a_page_too():
    report = build_page(material({"a": [], "b": []}))
    assert report.figures == ()
    assert report.content.tables == ()
    assert report.content.missing == ("A was not run to the end", "B was not run to the end")
    assert "Not run." in render_page(report.content)


def test_one_method_alone_is_compared_with_nothing():
    found = verdicts_of(material(values(a=A)))
    assert {one.kind for one in found} == {"best"}
    assert "nothing to compare it with" in found[0].sentence


def test_hostile_titles_are_text():
    bad = '<script>alert(1)</script> & "x" {{ 7 * 7 }} $a$'
    page = render_page(build_page(material(values(a=A, b=B), titles={"a": bad, "b": bad}, name=bad)).content)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("(a)") >= 1, "equal titles are told apart by their keys"


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "..", "", "ä b", "tiny"])
def test_names_stay_in_their_folder(name):
    made = file_name(name)
    assert re.fullmatch(r"[\w-][\w.-]*", made)


def test_the_quickstarts_tables_agree_with_one_another():
    experiment = measured()
    known = Material("quickstart", experiment)
    tables = {section.table.title: section.table for section in tables_of(known, (), over_classes(known))}
    assert list(tables)[:2] == ["Test scores", "Is the difference real?"]
    pairs = tables["Is the difference real?"]
    yes = [row.head for row in pairs.rows if row.lines[0].cells[-1].value == "yes"]
    real = said(verdicts_of(known), "real")
    assert len(yes) == len(real)
    assert all(isinstance(line.cells[0].sort_key, float) for line in pairs.lines)
    assert "MLRC" not in [column.name for column in tables["Hyperparameters found"].columns], "an empty column"
    links = [row.key for row in tables["What the methods cost"].rows]
    assert links == list(experiment.summary["methods"])


def exhibit(proxies=True):
    noise = np.random.default_rng(0)
    embeddings = noise.normal(size=(40, 8)).astype(np.float32)
    pictures = noise.integers(0, 255, (2, 16, 16, 1), dtype=np.uint8)
    labels = np.repeat(np.arange(4), 10)
    return Exhibit(
        test_embeddings=embeddings,
        test_labels=labels,
        train_embeddings=embeddings,
        train_labels=labels,
        proxies=embeddings[:4] if proxies else np.empty((0, 8), np.float32),
        proxy_labels=np.arange(4) if proxies else np.empty(0, np.int64),
        spectrum=np.linspace(8, 1, 8).astype(np.float32),
        query_images=pictures,
        neighbour_images=np.stack([pictures, pictures]),
        correct=np.array([[True, False], [False, True]]),
        class_names=np.array(["<b>x</b>", "y"]),
        neighbour_names=np.array([["<b>x</b>", "y"], ["<b>x</b>", "y"]]),
        class_scores=np.array([0.1, 0.2], np.float32),
    )


def search(*names):
    parameters = tuple(Parameter(name) for name in names)
    trials = tuple(TrialPoint(n, dict.fromkeys(names, n * 0.1), 0.1 + 0.01 * n) for n in range(4))
    return SearchHistory(trials, parameters, startup=2)


def test_figures_are_drawn_where_there_are_data_and_nowhere_else():
    runs = values(a=A, b=B, c=C)
    bare = {one.name for one in build_page(material(runs)).figures}
    assert bare == {
        *("intervals_concatenated_map_at_r", "intervals_separated_map_at_r"),
        *("intervals_concatenated_p_at_1", "intervals_separated_p_at_1", "critical_difference"),
    }
    whole = material(
        runs, exhibits={"a": exhibit(), "b": exhibit(False)}, searches={"a": search("x", "y"), "b": search("x")}
    )
    report = build_page(whole)
    added = {one.name for one in report.figures} - bare
    assert added == {
        *("tsne_test_a", "tsne_test_b", "tsne_proxies_a", "similarity", "spectrum", "gallery_a"),
        *("search_a_history", "search_a_parallel", "search_a_contour", "search_b_history"),
    }
    assert all(one.svg.startswith("<?xml") and one.png.startswith(b"\x89PNG") for one in report.figures)
    folds = [fold for fold, _ in figure_groups(report.content.figures)]
    assert folds[-2:] == ["Search of A", "Search of B"]
    assert [gallery.title for gallery in report.content.galleries] == ["A: hardest classes", "B: hardest classes"]
    page = render_page(report.content)
    assert "<b>x" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page


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


def test_published_values_are_inside_or_outside_only_under_the_published_conditions():
    runs = {"contrastive": runs_of("contrastive", [0.59, 0.60, 0.605])}
    own = material(runs, titles={"contrastive": "Contrastive"}, settings=MLRC, name="mlrc_cub200")
    report = build_page(own)
    kinds = {one.kind for one in report.content.verdicts}
    assert kinds >= {"inside", "outside"}
    table = next(
        section.table for section in report.content.tables if "A Metric Learning Reality Check" in section.table.title
    )
    published = next(row for row in table.rows if row.head == "Contrastive, published")
    assert published.lines[0].cells[0].value == 68.13
    assert {row.head.partition(",")[0] for row in table.rows} == {"Contrastive"}
    assert {row.key for row in table.rows} == {"contrastive"}
    assert "published rows without a run are left out here" in table.caption
    results = report.content.tables[0].table
    place = [column.name for column in results.columns].index("P@1")
    assert results.rows[0].lines[0].cells[place].verdict == "inside"
    other = material(runs, settings=changed(MLRC, embedding_size=64, images={"crop": 96})).measured
    elsewhere = replace(own, measured=other)
    found = list(published_verdicts(compared_tables(elsewhere), elsewhere.titles))
    assert {one.kind for one in found} == {"warning"}
    assert "Not compared with A Metric Learning Reality Check" in found[0].sentence
    assert "96 pixels" in found[0].detail


def test_a_single_model_has_one_kind_of_score():
    runs = {
        key: [
            some_run(key, run, value, fold_fingerprints=("x",), fold_scores=(scores(value),))
            for run, value in enumerate(own)
        ]
        for key, own in (("a", A), ("b", B))
    }
    found = said(verdicts_of(material(runs)), "best")
    assert len(found) == 2
    assert found[0].startswith("MAP@R: A has the highest mean")


def with_classes(runs, shares):
    """The runs with four test classes, whose scores are the run's mean moved by `shares`."""
    kept = []
    for run in runs:
        mean = run.concatenated.map_at_r
        each = tuple(scores(4 * (mean + share)) for share in shares)
        kept.append(
            run.model_copy(update={"class_scores": ClassScores(queries=(5,) * 4, separated=each, concatenated=each)})
        )
    return kept


def test_a_difference_that_hangs_on_the_test_classes_says_so():
    runs = values(a=A, b=[x - 0.02 for x in A], c=B)
    steady, moved = [0, 0, 0, 0], [0.1, -0.1, 0.1, -0.1]
    whole = material(
        {"a": with_classes(runs["a"], moved), "b": with_classes(runs["b"], steady), "c": with_classes(runs["c"], moved)}
    )
    found = said(verdicts_of(whole, over_classes(whole)), "real")
    (small,) = [sentence for sentence in found if "above B" in sentence]
    (large,) = [sentence for sentence in found if "A is" in sentence and "above C" in sentence]
    assert "over drawn classes the interval of the difference holds 0" in small
    assert "over drawn classes" not in large
    assert set(over_classes(whole).gaps) == {"b", "c"}
    assert over_classes(material(runs)) is None
