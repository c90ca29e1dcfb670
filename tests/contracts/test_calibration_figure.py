"""The figure of errors and power in simulated tables."""

import json

import pytest

from reports.figures.style import FigureError
from results.store.experiment_results import FOLDER
from tests.benchmarks.calibration_figure import calibration_figure, wrong_share

RECORDED = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))


def test_every_independent_setting_is_a_point():
    figure = calibration_figure(RECORDED["settings"], 0.05)
    errors, *panels = figure.axes
    shown = [setting for setting in RECORDED["settings"] if setting["correlation"] == 0]
    points = {line.get_label(): list(line.get_ydata()) for line in errors.lines}
    for kind in RECORDED["kinds"]:
        assert points[kind] == [100 * wrong_share(setting) for setting in shown if setting["kind"] == kind]
    assert [axes.get_title() for axes in panels] == ["5 methods", "15 methods", "31 methods"]
    assert all(len(axes.lines) == 3 for axes in panels)


def test_a_calibration_without_independent_runs_cannot_be_drawn():
    with pytest.raises(FigureError, match="independent runs"):
        calibration_figure([{"correlation": 0.3}], 0.05)
