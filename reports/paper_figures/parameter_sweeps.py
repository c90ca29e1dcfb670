"""Figures of a score against a hyperparameter or a setting, from the rows of one or more experiments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from reports.figures.dependence import (
    AxisScale,
    Dependence,
    DependencePanel,
    Point,
    dependence_plot,
    number_of_values,
    points_of,
)
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.paper_figure import Materials, epoch_choice, may_show_published
from results.published.tables import FigureValue, figure_values
from results.spec.experiment_spec import Experiment
from results.statistics.run_values import EmbeddingKind
from results.values import Record

METRIC_NAMES = {"precision_at_1": "Recall@1", "map_at_r": "MAP@R"}


@dataclass(frozen=True)
class ParameterSweep:
    """One panel per dataset: a score against a number, with one line per value of a second number.

    Attributes:
        parameter: Target of the hyperparameter (such as `loss.alpha`) or dotted key of the experiment's setting
            (such as `training.batch_size`) on the horizontal axis.
        line: Hyperparameter that makes the lines; empty for lines by method.
        published: Name of the figure whose published values are shown; empty for none.
        panel: Letter of the panel in the paper, in front of the dataset's name.
    """

    parameter: str
    label: str
    scale: AxisScale = "linear"
    line: str = ""
    line_label: str = ""
    published: str = ""
    panel: str = ""


class _Place(NamedTuple):
    """A point with its place in the figure."""

    dataset: str
    line: str
    number: float
    key: str
    point: Point


@dataclass(frozen=True)
class SweepFigure:
    """A figure with one or more sweeps beside each other.

    Attributes:
        kinds: Kinds of embeddings. Runs with one model have one kind only.
    """

    sweeps: tuple[ParameterSweep, ...]
    metric: str = "precision_at_1"
    kinds: tuple[EmbeddingKind, ...] = ("separated",)

    def draw(self, materials: Materials) -> Figure:
        """Draw the figure."""
        return dependence_plot(self._panels(materials), METRIC_NAMES[self.metric])

    def values(self, materials: Materials) -> pd.DataFrame:
        """Return the drawn values, one row per point.

        Columns: panel, line, parameter, x, metric, mean, low, high (ends of the 95 % interval, empty for one value), n,
        unit (run or search), values (of runs, or means of searches; separated by spaces) and published (empty if not
        known or not shown). Scores are fractions of 1.
        """
        rows = []
        for sweep, panel in zip(self._drawn_sweeps(materials), self._panels(materials), strict=True):
            for line in panel.series:
                for number in sorted({*line.points, *line.published}):
                    point = line.points.get(number)
                    interval = point.interval if point else None
                    rows.append(
                        {
                            "panel": panel.title,
                            "line": line.name,
                            "parameter": sweep.parameter,
                            "x": number,
                            "metric": self.metric,
                            "mean": interval.mean if interval else None,
                            "low": interval.low if interval else None,
                            "high": interval.high if interval else None,
                            "n": interval.n if interval else 0,
                            "unit": point.unit if point else None,
                            "values": " ".join(map(repr, point.values)) if point else "",
                            "published": line.published.get(number),
                        }
                    )
        return pd.DataFrame(rows)

    def note(self, materials: Materials) -> str:
        """Say what a point is, how many searches or runs it has, and how their epochs were chosen."""
        over = number_of_values(place.point for sweep in self.sweeps for place in _points(sweep, materials, self))
        several = any(material.folds > 1 for material in materials.values())
        models = ""
        if several and self.kinds == ("separated",):
            models = " A run has several folds; its score is the mean over their models."
        return (
            f"{METRIC_NAMES[self.metric]} on the test classes, mean and 95 % interval over {over} per point.{models} "
            f"{epoch_choice(materials)}"
        )

    def _drawn_sweeps(self, materials: Materials) -> list[ParameterSweep]:
        return [
            sweep
            for sweep in self.sweeps
            for _ in dict.fromkeys(point.dataset for point in _points(sweep, materials, self))
        ]

    def _panels(self, materials: Materials) -> list[DependencePanel]:
        panels = []
        for sweep in self.sweeps:
            points = _points(sweep, materials, self)
            if not points:
                raise FigureError(f"no two rows with runs differ in {sweep.parameter}")
            for dataset in dict.fromkeys(point.dataset for point in points):
                lines = [point for point in points if point.dataset == dataset]
                shown = _published(sweep, materials, dataset)
                series = tuple(_dependence(name, lines, shown, sweep) for name in _ordered_lines(lines, sweep))
                title = f"({sweep.panel}) {dataset}" if sweep.panel else dataset
                panels.append(DependencePanel(title, sweep.label, series, sweep.scale))
        return panels


def _points(sweep: ParameterSweep, materials: Materials, figure: SweepFigure) -> list[_Place]:
    points = [point for material in materials.values() for point in _points_of(sweep, material, figure)]
    seen: dict[tuple[str, str, float], str] = {}
    for point in points:
        other = seen.setdefault((point.dataset, point.line, point.number), point.key)
        if other != point.key:
            line = f" and {point.line}" if sweep.line else ""
            raise FigureError(f"rows {other} and {point.key} have the same {sweep.parameter} {point.number:g}{line}")
    return points if len({point.number for point in points}) > 1 else []


def _points_of(sweep: ParameterSweep, material: Material, figure: SweepFigure) -> Iterator[_Place]:
    """Return the rows of one experiment that belong to a sweep.

    A hyperparameter that all rows of the experiment have at one value is not swept there. A setting of the experiment
    may also change from panel to panel.
    """
    # A row that trains nothing, such as the untrained trunk, has no settings of training.
    trained = [key for key, runs in material.records.items() if runs[0].iterations != 0]
    numbers = {key: _number(row_setting(material, key, sweep.parameter)) for key in trained}
    is_hyperparameter = sweep.parameter.partition(".")[0] not in Experiment.model_fields
    if is_hyperparameter and len({number for number in numbers.values() if number is not None}) < 2:
        return
    kinds = figure.kinds if material.folds > 1 else figure.kinds[:1]
    for kind in kinds:
        points = points_of(material.measured, figure.metric, kind)
        for key, number in numbers.items():
            if number is None or key not in points:
                continue
            line = _line_name(sweep, material, key)
            if line is not None:
                name = f"{line}, {kind}" if len(kinds) > 1 else line
                row = f"{material.name}, {key}"
                yield _Place(material.measured.summary.dataset, name, number, row, points[key])


def _line_name(sweep: ParameterSweep, material: Material, key: str) -> str | None:
    if not sweep.line:
        # The title of a row of a sweep begins with the title of its card.
        return material.titles[key].partition(f", {sweep.parameter} ")[0]
    number = _number(row_setting(material, key, sweep.line))
    return None if number is None else f"{sweep.line_label} {number:g}"


def _ordered_lines(points: list[_Place], sweep: ParameterSweep) -> list[str]:
    names = list(dict.fromkeys(point.line for point in points))
    if not sweep.line:
        return names
    return sorted(names, key=lambda name: float(name.removeprefix(f"{sweep.line_label} ").partition(",")[0]))


def _dependence(
    name: str, points: list[_Place], published: tuple[FigureValue, ...], sweep: ParameterSweep
) -> Dependence:
    drawn = {place.number: place.point for place in points if place.line == name}
    known = {
        value.x: value.score
        for value in published
        if not sweep.line or f"{sweep.line_label} {float(value.series):g}" == name
    }
    return Dependence(name, drawn, known)


def _published(sweep: ParameterSweep, materials: Materials, dataset: str) -> tuple[FigureValue, ...]:
    if not sweep.published or not any(may_show_published(material, dataset) for material in materials.values()):
        return ()
    return tuple(value for value in figure_values(sweep.published) if value.dataset == dataset)


def row_setting(material: Material, key: str, target: str) -> object:
    """Return the value of a hyperparameter or of an experiment's setting in one row with runs.

    Returns:
        The value; None if the row has no such hyperparameter or setting.
    """
    experiment = material.measured.summary.experiment
    if target in (given := material.records[key][0].hyperparameters):
        return given[target]
    for variant in experiment.variants:
        if variant.key == key and target in variant.set:
            return variant.set[target]
    value: object = experiment.for_row(key)
    for name in target.split("."):
        value = getattr(value, name, None) if isinstance(value, Record) else None
    return value


def _number(value: object) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
