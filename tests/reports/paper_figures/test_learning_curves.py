"""Recorded test curves as convergence plots."""

import pytest

from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.scores import Curves
from results.store.experiment_results import MeasuredExperiment
from tests.support.figure_material import with_curves

ALL = Curves()
PAIRS = Curves({"Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"), "ProxyNCA": ("proxy_nca",)})
SCORES = {"proxy_anchor": [(0.5, 0.6, 0.7), (0.7, 0.6, 0.5)], "nir_proxy_anchor": [(0.8, 0.9, 0.9)]}


def note_of(figure, materials):
    return figure.note(figure.frame(materials), materials)


def test_iterations_become_epochs_and_the_untrained_network_is_left_out():
    frame = ALL.frame({"": with_curves(SCORES)})
    anchor = frame[frame["line"] == "PROXY_ANCHOR"]
    assert list(anchor["x"]) == [1, 2, 3]
    assert list(anchor["mean"]) == pytest.approx([0.6, 0.6, 0.6])
    # t(0.975, 1) = 12.706 times the standard error 0.1
    assert list(anchor["half_width"]) == pytest.approx([1.2706, 0, 1.2706], rel=1e-4)
    assert list(anchor["values"]) == [(0.5, 0.7), (0.6, 0.6), (0.7, 0.5)]
    single = frame[frame["line"] == "NIR_PROXY_ANCHOR"]
    assert single["half_width"].isna().all(), "one run has no spread"


def test_a_curve_ends_with_the_shortest_run():
    frame = ALL.frame({"": with_curves({"proxy_anchor": [(0.5, 0.6), (0.7, 0.6, 0.5)]})})
    assert list(frame["x"]) == [1, 2]


def test_methods_stand_in_the_papers_panels():
    figure = PAIRS.draw(PAIRS.frame({"cub200": with_curves(SCORES, dataset="cub200"), "cars196": with_curves(SCORES)}))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["cub200: Proxy-Anchor", "cars196: Proxy-Anchor"], "methods without runs have no panel"


def test_published_values_belong_to_their_method():
    figure = Curves(published="proxy_gml_figure1")
    frame = figure.frame({"": with_curves({"proxy_gml": [(0.5, 0.6)], "soft_triple": [(0.5, 0.6)]})})
    known = frame[frame["published"].notna()]
    assert [(row.line, row.x, row.published) for row in known.itertuples()] == [("PROXY_GML", 1, 0.532)]
    changed = with_curves({"proxy_gml": [(0.5, 0.6)]}, deviations=("seed 1 where the suite's file has 0",))
    assert figure.frame({"": changed})["published"].isna().all()


def test_the_papers_own_method_is_the_first_curve_and_those_without_room_are_named():
    scores = {**{f"other_{n}": [(0.5, 0.6)] for n in range(8)}, "proxy_gml": [(0.7, 0.8)]}
    figure, materials = Curves(own="proxy_gml"), {"": with_curves(scores)}
    drawn = list(dict.fromkeys(figure.frame(materials)["line"]))
    assert drawn == ["PROXY_GML", *(f"OTHER_{n}" for n in range(6))]
    assert figure.note(figure.frame(materials), materials).endswith(
        "Not drawn, to keep the curves apart: OTHER_6, OTHER_7."
    )
    assert "Not drawn" not in note_of(ALL, {"": with_curves(SCORES)})


def test_the_note_says_that_no_epoch_is_chosen():
    assert "n = 1 to 2 runs. No epoch is chosen." in note_of(ALL, {"": with_curves(SCORES)})


def test_runs_without_test_curves_are_refused():
    recorded = with_curves(SCORES).measured
    without = Material("some", MeasuredExperiment(recorded.summary, recorded.records, recorded.trainings))
    with pytest.raises(FigureError, match="no run of any method has test curves"):
        ALL.frame({"": without})
    with pytest.raises(FigureError, match="no run of proxy_anchor, nir_proxy_anchor, proxy_nca has test curves"):
        PAIRS.frame({"": with_curves({"contrastive": [(0.5,)]})})
