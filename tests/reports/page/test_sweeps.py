"""Scores against hyperparameters, settings and epochs."""

import math

import pytest

from reports.figures.style import FigureError
from reports.page.material import Material
from reports.page.sweeps import Curves, ScoreSweep, own_sweeps
from results.store.experiment_results import MeasuredExperiment
from tests.support.drawn import HALF, RUNS, legend_texts
from tests.support.figure_material import sweep, with_curves
from tests.support.page_material import material, values
from tests.support.published_world import MLRC, changed

ALPHA = ScoreSweep("loss.alpha", "alpha", "log2", line="loss.margin", line_label="delta =")
RATIO = ScoreSweep("loss.r", "r", "steps", published="proxy_gml_figure5")
BOTH = ("separated", "concatenated")
BATCHES = ScoreSweep("training.batch_size", "batch size", "log2", metric="map_at_r", kinds=BOTH)
GRID = [({"loss.alpha": alpha, "loss.margin": margin}, RUNS) for alpha in (4, 16) for margin in (0.3, 0.1)]


def batches(size):
    """One panel of a file whose panels differ in batch size; runs have four folds."""
    settings = changed(MLRC, training={"batch_size": size})
    return material(values(c2=[0.4, 0.5], c2_ccp=[0.6, 0.7]), settings=settings, name=f"some/cub200_{size}")


def test_rows_become_points_on_lines_in_rising_order():
    frame = ALPHA.frame({"": sweep(GRID)})
    assert list(frame["line"]) == ["delta = 0.1"] * 2 + ["delta = 0.3"] * 2
    assert list(frame["x"]) == [4, 16] * 2
    first = frame.iloc[0]
    assert (first["panel"], first["parameter"], first["metric"]) == ("cars196", "loss.alpha", "precision_at_1")
    assert (first["mean"], first["n"]) == (pytest.approx(0.55), 3)
    assert first["half_width"] == pytest.approx(HALF)
    assert (first["unit"], first["values"]) == ("run", (0.5, 0.54, 0.61))
    figure = ALPHA.draw(frame)
    assert legend_texts(figure) == ["delta = 0.1", "delta = 0.3"]
    assert figure.axes[0].get_title(loc="left") == "cars196"


def test_a_setting_varies_over_the_panels_of_a_file():
    panels = {str(size): batches(size) for size in (16, 64)}
    frame = BATCHES.frame(panels)
    assert list(dict.fromkeys(frame["line"])) == [
        *("C2, separated", "C2_CCP, separated"),
        *("C2, concatenated", "C2_CCP, concatenated"),
    ]
    assert set(frame["x"]) == {16, 64}
    assert len(BATCHES.draw(frame).axes) == 1


def test_a_row_that_trained_nothing_is_no_point():
    with_untrained = batches(16)
    untrained = values(untrained=[0.1])["untrained"][0].model_copy(update={"iterations": 0})
    measured = with_untrained.measured
    records = (*measured.records, untrained)
    titles = {**measured.summary.methods, "untrained": "Untrained trunk"}
    summary = measured.summary.model_copy(update={"methods": titles, "runs": {**measured.summary.runs, "untrained": 1}})
    panel = type(with_untrained)("some/16", type(measured)(summary, records))
    assert "Untrained" not in " ".join(BATCHES.frame({"16": panel, "64": batches(64)})["line"])


def test_published_values_stand_beside_runs_under_the_papers_conditions():
    points = [({"loss.r": r}, RUNS) for r in (0.05, 0.07)]
    frame = RATIO.frame({"": sweep(points)}).set_index("x")
    assert frame.loc[0.05, "published"] == 0.855
    assert math.isnan(frame.loc[0.07, "published"])
    assert (frame.loc[1, "published"], frame.loc[1, "n"]) == (0.789, 0), "published, not run"
    others = {
        "other settings": sweep(points, deviations=("batch size 16 where the suite's file has 32",)),
        "other dataset": sweep(points, dataset="glyphs"),
        "a part of the dataset": sweep(points, settings={"dataset": {"name": "cars196", "subset": True}}),
    }
    for name, other in others.items():
        assert RATIO.frame({"": other})["published"].isna().all(), name


def test_the_note_tells_runs_and_choice_of_the_epoch():
    note = ALPHA.note(ALPHA.frame({"": sweep(GRID)}), {"": sweep(GRID)})
    assert note.startswith("P@1 on the test classes, mean and 95 % interval over n = 3 runs per point.")
    assert "chosen on validation classes" in note
    separated, materials = ScoreSweep("training.batch_size", "batch size"), {"16": batches(16), "64": batches(64)}
    several = separated.note(separated.frame(materials), materials)
    assert "mean over their models" in several
    assert "n = 2 runs" in several
    assert "validation classes of this fold" in several


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([({"loss.alpha": 4, "loss.margin": 0.1}, RUNS)], "no two rows with runs differ in loss.alpha"),
        ([({"loss.margin": m}, RUNS) for m in (0.1, 0.2)], "no two rows with runs differ in loss.alpha"),
        (
            [*GRID, ({"loss.alpha": 4, "loss.margin": 0.1, "loss.x": 1}, RUNS)],
            "have the same loss.alpha 4 and delta = 0.1",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(points, message):
    with pytest.raises(FigureError, match=message):
        ALPHA.frame({"": sweep(points)})


def test_the_sweeps_of_an_own_experiment_are_the_numbers_in_which_its_variants_differ():
    alphas = sweep([*GRID, ({"loss.alpha": 8, "loss.margin": 0.1}, RUNS)])
    assert [(one.parameter, one.line) for one in own_sweeps(alphas)] == [("loss.alpha", "loss.margin")]
    ratios = sweep([({"loss.r": r, "loss.k": 3}, RUNS) for r in (0.05, 0.07)])
    (ratio,) = own_sweeps(ratios)
    assert list(ratio.frame({"": ratios})["x"]) == [0.05, 0.07]
    assert list(own_sweeps(sweep([({"loss.r": 1, "loss.name": "x"}, RUNS)]))) == []


ALL = Curves()
PAIRS = Curves({"Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"), "ProxyNCA": ("proxy_nca",)})
SCORES = {"proxy_anchor": [(0.5, 0.6, 0.7), (0.7, 0.6, 0.5)], "nir_proxy_anchor": [(0.8, 0.9, 0.9)]}


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


def test_runs_without_test_curves_are_refused():
    recorded = with_curves(SCORES).measured
    without = Material("some", MeasuredExperiment(recorded.summary, recorded.records, recorded.trainings))
    with pytest.raises(FigureError, match="no run of any method has test curves"):
        ALL.frame({"": without})
    with pytest.raises(FigureError, match="no run of proxy_anchor, nir_proxy_anchor, proxy_nca has test curves"):
        PAIRS.frame({"": with_curves({"contrastive": [(0.5,)]})})
