"""Scores against a number in which the rows of an experiment, or the panels of its file, differ, and their figure.

A row of the frame is a point: panel (the dataset), line, x, mean, half_width (of the 95 % interval; empty for one
value), n, unit (run or search), values (of the runs, or means of the searches) and published (empty if it is not
known). Scores are fractions of 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures.style import GREY, WIDTH, FigureError, Look, legend_keys, new_figure, sign, styled
from reports.page.material import Material
from results.answer.answer_question import answer_on
from results.published.tables import FigureValue, figure_values
from results.spec.conditions import Conditions
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.values import Record, flat
from results.wording import counted_span

_COLUMNS, _FEW_VALUES = 3, 5
_FEW_TICKS = 12


@styled
def dependence_plot(frame: pd.DataFrame, label: str, metric: str) -> Figure:
    """Draw mean and 95 % interval of each number, with a panel for each of the frame and a line for each of its lines.

    The numbers stand at equal distances, in their order. Lines are shifted a little sideways so that their intervals do
    not cover each other. The small points are single searches or runs; they are drawn for at most five. Hollow markers
    are published scores. Each panel has its own axes.

    Args:
        frame: A row for each point: panel, line, x, mean, half_width, n, unit, values, published.
        label: Name of the number on its axis.
    """
    panels = list(frame.groupby("panel", sort=False))
    if not panels or not all((own["n"] > 0).any() for _, own in panels):
        raise FigureError("the figure of a score against a number needs at least one run in every panel")
    columns = min(len(panels), _COLUMNS)
    rows, most = ceil(len(panels) / columns), max(own["x"].nunique() for _, own in panels)
    figure = new_figure(3.5 * rows, width=max(WIDTH if most > _FEW_TICKS else 4.8, 3.5 * columns))
    grid = list(figure.subplots(rows, columns, squeeze=False).ravel())
    names = list(dict.fromkeys(frame["line"]))
    for axes, (title, own) in zip(grid, panels, strict=False):
        _draw_panel(axes, own, names)
        axes.set_title(str(title), loc="left")
        axes.set_xlabel(label)
        axes.grid()
    for empty in grid[len(panels) :]:
        empty.set_axis_off()
    grid[0].set_ylabel(f"{metric}, %")
    single = (frame.loc[frame["n"] > 0, "n"] == 1).all()
    note = f"one {frame['unit'].dropna().iloc[0]} per point" if single else f"mean and 95 % interval, {over(frame)}"
    figure.supxlabel(note, fontsize=8.5)
    _legend(figure, grid, published=bool(frame["published"].notna().any()))
    return figure


def over(frame: pd.DataFrame) -> str:
    """Return what the intervals of some points are over, such as `n = 3 searches` or `n = 1 to 3 runs`."""
    measured = frame[frame["n"] > 0]
    return f"n = {counted_span(measured['values'].map(len), measured['unit'].iloc[-1])}"


def _draw_panel(axes: Axes, frame: pd.DataFrame, names: Sequence[str]) -> None:
    numbers = sorted(set(frame["x"]))
    lines = list(frame.groupby("line", sort=False))
    for place, (name, own) in enumerate(lines):
        shift = 0.06 * (place - (len(lines) - 1) / 2)
        placed = own.assign(at=[numbers.index(number) + shift for number in own["x"]]).sort_values("x")
        _draw_line(axes, str(name), placed, sign(names.index(str(name))))
    labels = [f"{number:g}" for number in numbers]
    axes.set_xticks(range(len(numbers)), labels, rotation=90 if sum(map(len, labels)) > 40 else 0)


def _draw_line(axes: Axes, name: str, frame: pd.DataFrame, look: Look) -> None:
    measured, printed = frame[frame["n"] > 0], frame[frame["published"].notna()]
    half, mean = measured["half_width"].astype(float), measured["mean"].astype(float)
    # Intervals of percentages end at 0 and 100.
    halves, means = 100 * np.array([np.minimum(half, mean), np.minimum(half, 1 - mean)]), 100 * mean
    axes.errorbar(measured["at"], means, yerr=halves, label=name, capsize=3, elinewidth=0.9, capthick=0.9, **look)
    dots: Look = {"color": look["color"], "marker": ".", "markersize": 4.5, "alpha": 0.7, "linestyle": ""}
    for at, values in zip(measured["at"], measured["values"], strict=True):
        if 1 < len(values) <= _FEW_VALUES:
            axes.plot([at] * len(values), 100 * np.asarray(values), **dots)
    if len(printed):
        hollow: Look = {**look, "linestyle": ":", "linewidth": 0.8, "markerfacecolor": "white", "alpha": 0.8}
        axes.plot(printed["at"], 100 * printed["published"].astype(float), label="_published", **hollow)


def _legend(figure: Figure, grid: Sequence[Axes], *, published: bool) -> None:
    handles, names = legend_keys(*grid)
    if published:
        handles.append(Line2D([], [], color=GREY, linestyle=":", marker="o", markerfacecolor="white"))
        names.append("published")
    if len(names) > 1:
        columns = max(1, min(4, len(names), int(figure.get_figwidth() * 13 / max(map(len, names)))))
        figure.legend(handles, names, loc="outside upper right", ncols=columns, handlelength=2.8)


_CHOICES = {
    "standard": "The epoch of every run is chosen on validation classes, not on the test classes.",
    "mlrc": "The checkpoint of every fold is chosen on the validation classes of this fold.",
}


@dataclass(frozen=True)
class ScoreSweep:
    """A score against a number, with a panel for each dataset and a line for each value of a second number.

    Published values of a paper's figure stand beside the runs of the suite's experiment of its name.

    Attributes:
        materials: The experiment, or those of the panels of its file.
        parameter: Target of the hyperparameter (such as `loss.alpha`) or dotted key of the experiment's setting
            (such as `training.batch_size`) on the horizontal axis.
        line: Hyperparameter that makes the lines; empty for lines by method.
    """

    materials: tuple[Material, ...]
    parameter: str
    line: str = ""

    @property
    def published(self) -> tuple[FigureValue, ...]:
        """The values of the paper's figure, which is made by the suite's experiment of its name."""
        material = self.materials[0]
        experiment = material.measured.plan.experiment
        as_published = not experiment.dataset.subset and not material.departures
        values = figure_values(material.name) if as_published else ()
        return tuple(value for value in values if value.dataset == experiment.dataset.name)

    @property
    def metric(self) -> str:
        """The primary score's metric, or precision@1, which published figures have."""
        return "precision_at_1" if self.published else self.materials[0].answer.question.score

    def frame(self) -> pd.DataFrame:
        """Return the points of all panels.

        Raises:
            FigureError: There are fewer than two, or two rows have the same numbers.
        """
        points: dict[tuple[str, str, float], dict[str, Any]] = {}
        for row in (row for material in self.materials for row in self._rows(material)):
            if (place := (row["panel"], row["line"], row["x"])) in points:
                raise FigureError(f"two rows have the same {self.parameter}")
            points[place] = {**row, "published": None}
        if len({x for _, _, x in points}) < 2:
            raise FigureError(f"no two rows with runs differ in {self.parameter}")
        first = next(line for _, line, _ in points)
        for value in self.published:
            line = f"{self.line} = {float(value.series):g}" if self.line else first
            place = (value.dataset, line, value.x)
            points.setdefault(place, {"panel": value.dataset, "line": line, "x": value.x, **_NO_RUNS})
            points[place]["published"] = value.score
        panels, lines = (list(dict.fromkeys(place[of] for place in points)) for of in (0, 1))
        if self.line:
            lines.sort(key=lambda line: float(str(line).rpartition(" ")[2]))
        ordered = sorted(points, key=lambda place: (panels.index(place[0]), lines.index(place[1]), place[2]))
        return pd.DataFrame([points[place] for place in ordered])

    def note(self, frame: pd.DataFrame) -> str:
        """Say what a point is, how many searches or runs it has, and how their epochs were chosen."""
        protocols = dict.fromkeys(one.measured.plan.experiment.protocol for one in self.materials)
        hollow = ["Hollow: as published, read off the authors' slides."] if self.published else []
        score = HEADLINE_METRICS[self.metric]
        point = f"{score} on the test classes, mean and 95 % interval over {over(frame)} per point."
        return " ".join((point, *(_CHOICES[protocol] for protocol in protocols), *hollow))

    def _rows(self, material: Material) -> Iterator[dict[str, Any]]:
        """Yield the points of one experiment that have the number, and lie on a line."""
        found = answer_on(material.answer, self.metric, material.answer.question.embeddings)
        for key in (key for key in material.titles if key in material.records):
            runs = material.records[key]
            # A row that trains nothing, such as the untrained trunk, has no settings of training.
            number = _number(_row_setting(material, key, self.parameter)) if runs[0].iterations != 0 else None
            # The title of a row of a sweep begins with the title of its card.
            line = material.titles[key].partition(f", {self.parameter} ")[0]
            if self.line:
                value = _number(_row_setting(material, key, self.line))
                line = "" if value is None else f"{self.line} = {value:g}"
            if number is not None and line and key in found.intervals and found.values[key].units:
                interval = found.intervals[key]
                scores = {"mean": interval.mean, "half_width": interval.half_width, "n": interval.n}
                place = {"panel": material.measured.plan.dataset, "line": line, "x": number}
                yield {**place, **scores, "unit": found.sample.value, "values": found.values[key].units}


_NO_RUNS: dict[str, Any] = {"mean": None, "half_width": None, "n": 0, "unit": None, "values": ()}


def sweeps_of(materials: Sequence[Material]) -> Iterator[ScoreSweep]:
    """Yield a sweep for each number in which variants of one card differ, one or two at a time.

    Of several panels of a file, yield the one setting in which those on the same dataset differ.
    """
    if len(materials) > 1:
        yield from _over_panels(materials)
        return
    experiment = materials[0].measured.plan.experiment
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for variant in experiment.variants:
        given = {**variant.set, **experiment.changes.get(variant.key, {})}
        numbers = {target: number for target, value in given.items() if (number := _number(value)) is not None}
        groups.setdefault((variant.of, *numbers), []).append(numbers)
    found: dict[str, ScoreSweep] = {}
    for (_, *targets), rows in groups.items():
        values = {target: {row[target] for row in rows} for target in targets}
        varied = sorted((target for target in targets if len(values[target]) > 1), key=lambda one: -len(values[one]))
        if 1 <= len(varied) <= 2:
            found.setdefault(varied[0], ScoreSweep(tuple(materials), varied[0], "".join(varied[1:])))
    yield from found.values()


def _over_panels(materials: Sequence[Material]) -> Iterator[ScoreSweep]:
    by_dataset: dict[str, list[dict[str, float]]] = {}
    for material in materials:
        experiment = material.measured.plan.experiment
        settings = flat(experiment.without_folder())
        numbers = {key: number for key, value in settings if (number := _number(value)) is not None}
        by_dataset.setdefault(experiment.dataset.name, []).append(numbers)
    differing = {
        key
        for panels in by_dataset.values()
        for key in set.intersection(*map(set, panels))
        if len({panel[key] for panel in panels}) > 1
    }
    if len(differing) == 1:
        yield ScoreSweep(tuple(materials), *differing)


def _row_setting(material: Material, key: str, target: str) -> object:
    """Return the value of a hyperparameter or of an experiment's setting in one row with runs; None if it has none."""
    experiment = material.measured.plan.experiment
    if target in (given := material.records[key][0].hyperparameters):
        return given[target]
    for variant in experiment.variants:
        if variant.key == key and target in variant.set:
            return variant.set[target]
    row = experiment.for_row(key)
    value: object = row.conditions if target.partition(".")[0] in Conditions.model_fields else row
    for name in target.split("."):
        value = getattr(value, name, None) if isinstance(value, Record) else None
    return value


def _number(value: object) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
