"""The figure of errors and power in simulated tables."""

import json

import pytest

from reports.figures.style import FigureError
from results.store.experiment_results import FOLDER
from tests.benchmarks.calibration_figure import calibration_figure, worst_share

RECORDED = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))


def test_every_size_of_table_is_a_point_with_its_worst_share():
    errors, power, once = calibration_figure(RECORDED).axes
    points = {line.get_label(): list(line.get_ydata()) for line in errors.lines}
    cells = RECORDED["repeated"]
    sizes = sorted({(cell["methods"], cell["searches"]) for cell in cells})
    for kind in RECORDED["kinds"]:
        worst = [
            max(100 * worst_share(c) for c in cells if (c["methods"], c["searches"], c["kind"]) == (*size, kind))
            for size in sizes
        ]
        assert points[kind] == worst
    assert [line.get_label() for line in power.lines] == [f"{count} methods" for count in (2, 5, 15, 31)]
    assert len(once.lines) == 5


def test_a_calibration_without_cells_cannot_be_drawn():
    with pytest.raises(FigureError, match="simulated cells"):
        calibration_figure({**RECORDED, "repeated": []})
