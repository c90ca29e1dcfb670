"""Scores against the numbers in which rows or panels differ."""

import math

import numpy as np
import pytest
from scipy import stats

from reports.figures.style import FigureError
from reports.page.sweeps import ScoreSweep, dependence_plot, sweeps_of
from tests.support.drawn import RUNS, legend_texts
from tests.support.figure_material import sweep
from tests.support.page_material import material, values
from tests.support.published_world import MLRC, changed

GRID = [({"loss.alpha": alpha, "loss.margin": margin}, RUNS) for alpha in (4, 8, 16) for margin in (0.3, 0.1)]


def batches(size, **changes):
    """One panel of a file whose panels differ in batch size; runs have four folds."""
    settings = changed(MLRC, training={"batch_size": size}, **changes)
    untrained = values(untrained=[0.1])["untrained"][0].model_copy(update={"iterations": 0})
    runs = {**values(c2=[0.4, 0.5], c2_ccp=[0.6, 0.7]), "untrained": [untrained]}
    return material(runs, settings=settings, name=f"some/cub200_{size}")


def test_rows_become_points_on_lines_in_rising_order():
    (alpha,) = sweeps_of([sweep(GRID)])
    assert (alpha.parameter, alpha.line) == ("loss.alpha", "loss.margin")
    frame = alpha.frame()
    assert list(frame["line"]) == ["loss.margin = 0.1"] * 3 + ["loss.margin = 0.3"] * 3
    assert list(frame["x"]) == [4, 8, 16] * 2
    first = frame.iloc[0]
    assert (first["panel"], first["n"], first["unit"], first["values"]) == (
        "cars196",
        3,
        "run",
        pytest.approx((0.125, 0.135, 0.1525)),
    )
    # The variances of the six rows are equal, and pooled.
    half_width = stats.t.ppf(0.975, 12) * math.sqrt(1.25 * np.var(RUNS, ddof=1) / 3)
    assert (first["mean"], first["half_width"]) == (pytest.approx(0.55 / 4), pytest.approx(half_width / 4))
    figure = dependence_plot(frame, alpha.parameter, "MAP@R")
    assert legend_texts(figure) == ["loss.margin = 0.1", "loss.margin = 0.3"]
    assert alpha.note(frame).startswith("MAP@R on the test classes, mean and 95 % interval over n = 3 runs per point.")
    assert "chosen on validation classes" in alpha.note(frame)


def test_a_setting_varies_over_the_panels_of_a_file():
    (size,) = sweeps_of([batches(16), batches(64)])
    frame = size.frame()
    assert size.parameter == "training.batch_size"
    assert set(zip(frame["line"], frame["x"], strict=True)) == {
        *(("C2", 16), ("C2", 64), ("C2_CCP", 16), ("C2_CCP", 64)),
    }, "a row that trained nothing is no point"
    assert list(sweeps_of([batches(16), batches(64, embedding_size=64)])) == [], "two settings differ"


def test_published_values_stand_beside_runs_under_the_papers_conditions():
    points, figure = [({"loss.r": r}, RUNS) for r in (0.05, 0.07)], "proxy_gml_figure5"
    (ratio,) = sweeps_of([sweep(points, name=figure)])
    frame = ratio.frame().set_index("x")
    assert frame.loc[0.05, "published"] == 0.855
    assert math.isnan(frame.loc[0.07, "published"])
    assert (frame.loc[1, "published"], frame.loc[1, "n"]) == (0.789, 0), "published, not run"
    assert (ratio.metric, frame.loc[0.05, "mean"]) == ("precision_at_1", pytest.approx(0.55))
    others = {
        "other settings": sweep(points, name=figure, departures=("batch size 16 where the suite's file has 32",)),
        "other dataset": sweep(points, name=figure, dataset="glyphs"),
        "a part of the dataset": sweep(points, name=figure, settings={"dataset": {"name": "cars196", "subset": True}}),
        "own experiment": sweep(points),
    }
    for name, other in others.items():
        (own,) = sweeps_of([other])
        assert own.frame()["published"].isna().all(), name


def test_published_lines_belong_to_their_value():
    points = [({"loss.proxies_per_class": n, "loss.r": r}, (0.8,)) for n in (11, 12, 13) for r in (0.05, 1.0)]
    (count,) = sweeps_of([sweep(points, name="proxy_gml_figure4")])
    frame = count.frame().set_index(["line", "x"])
    assert frame.loc[("loss.r = 0.05", 12), "published"] == 0.855
    assert frame.loc[("loss.r = 1", 12), "published"] == 0.81


def test_what_varies_nothing_is_no_sweep_and_what_cannot_be_drawn_is_refused():
    assert list(sweeps_of([sweep([({"loss.r": 1, "loss.name": "x"}, RUNS)])])) == []
    with pytest.raises(FigureError, match=r"no two rows with runs differ in loss\.beta"):
        ScoreSweep((sweep(GRID),), "loss.beta").frame()
    again = sweep([*GRID, ({"loss.alpha": 4, "loss.margin": 0.1, "loss.x": 1}, RUNS)])
    with pytest.raises(FigureError, match=r"two rows have the same loss\.alpha"):
        ScoreSweep((again,), "loss.alpha", "loss.margin").frame()
