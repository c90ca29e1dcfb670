"""Scores against hyperparameters and settings."""

import math

import pytest

from reports.figures.style import FigureError
from reports.paper_figures.scores import ScoreSweep, Sweeps
from tests.support.drawn import HALF, RUNS, legend_texts
from tests.support.figure_material import sweep
from tests.support.page_material import material, values
from tests.support.published_world import MLRC, changed

ALPHA = Sweeps((ScoreSweep("loss.alpha", "alpha", "log2", line="loss.margin", line_label="delta ="),))
RATIO = Sweeps((ScoreSweep("loss.r", "r", "steps", published="proxy_gml_figure5"),))
BATCHES = Sweeps((ScoreSweep("training.batch_size", "batch size", "log2"),), "map_at_r", ("separated", "concatenated"))
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


def test_the_metric_of_the_figure_is_drawn():
    figure = Sweeps(ALPHA.sweeps, "map_at_r")
    assert figure.frame({"": sweep(GRID)})["mean"].iloc[0] == pytest.approx(0.55 / 4)
    assert figure.draw(figure.frame({"": sweep(GRID)})).axes[0].get_ylabel() == "MAP@R, %"


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


def test_a_hyperparameter_that_does_not_vary_in_a_panel_is_not_swept_there():
    both = Sweeps((ScoreSweep("loss.V", "V"), ScoreSweep("loss.memory_size", "T")))
    bound = sweep([({"loss.V": v, "loss.memory_size": 55000}, RUNS) for v in (10, 100)], of="proxy_isa")
    memory = sweep([({"loss.memory_size": t}, RUNS) for t in (100, 1000)], of="proxy_isa", name="other")
    frame = both.frame({"v": bound, "t": memory})
    assert list(zip(frame["parameter"], frame["x"], strict=True)) == [
        *(("loss.V", 10), ("loss.V", 100)),
        *(("loss.memory_size", 100), ("loss.memory_size", 1000)),
    ]
    assert [axes.get_xlabel() for axes in both.draw(frame).axes] == ["V", "T"]


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


def test_published_lines_belong_to_their_value():
    figure = Sweeps((ScoreSweep("loss.proxies_per_class", "N", "linear", "loss.r", "r =", "proxy_gml_figure4"),))
    points = [({"loss.proxies_per_class": n, "loss.r": r}, (0.8,)) for n in (12, 13) for r in (0.05, 1.0)]
    frame = figure.frame({"": sweep(points)}).set_index(["line", "x"])
    assert frame.loc[("r = 0.05", 12), "published"] == 0.855
    assert frame.loc[("r = 1", 12), "published"] == 0.81
    assert len(figure.draw(frame.reset_index()).axes) == 1


def test_the_note_tells_runs_and_choice_of_the_epoch():
    note = ALPHA.note(ALPHA.frame({"": sweep(GRID)}), {"": sweep(GRID)})
    assert note.startswith("Recall@1 on the test classes, mean and 95 % interval over n = 3 runs per point.")
    assert "chosen on validation classes" in note
    separated, materials = Sweeps(BATCHES.sweeps), {"16": batches(16), "64": batches(64)}
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
