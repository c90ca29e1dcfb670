"""The papers' figures of scores: sweeps over a number and curves over epochs, from one frame of what was measured.

A row of the frame is a point: panel, line, parameter, x, metric, mean, half_width (of the 95 % interval; empty for one
value), n, unit (run or search), values (of the runs, or means of the searches) and published (empty if not known or not
shown). Scores are fractions of 1.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.figures.dependence import AxisScale, dependence_plot, over
from reports.figures.style import FigureError
from reports.page.material import Material
from results.published.tables import figure_values
from results.records.records import RunRecord
from results.spec.conditions import Conditions
from results.spec.experiment_spec import Experiment
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.primary_comparison import method_intervals, unit_of, unit_values
from results.store.experiment_results import MeasuredExperiment
from results.store.frame import EmbeddingKind
from results.values import Record

Materials = Mapping[str, Material]
"""The experiments with runs by panel of their file; the key is empty for a file without panels."""

METRIC_NAMES = {"precision_at_1": "Recall@1", "map_at_r": "MAP@R"}
_CHOICES = {
    "standard": "The epoch of every run is chosen on validation classes, not on the test classes.",
    "mlrc": "The checkpoint of every fold is chosen on the validation classes of this fold.",
}
_MOST_CURVES = 7


class ScoreSweep(NamedTuple):
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


def _point(values: tuple[float, ...], interval: Interval, unit: str) -> dict[str, Any]:
    about = {"mean": interval.mean, "half_width": interval.half_width, "n": interval.n}
    return {**about, "unit": unit, "values": values}


_NO_RUNS: dict[str, Any] = {"mean": None, "half_width": None, "n": 0, "unit": None, "values": ()}


def _points(measured: MeasuredExperiment, metric: str, kind: EmbeddingKind) -> dict[str, dict[str, Any]]:
    """The score of each method with runs, or with a complete search where searches are repeated."""
    by_method = measured.values(metric, kind)
    values, intervals = unit_values(measured, by_method), method_intervals(measured, by_method)
    unit = "search" if unit_of(measured.summary.experiment) == "search" else "run"
    return {key: _point(values[key].units, intervals[key], unit) for key in by_method if values[key].units}


@dataclass(frozen=True)
class Sweeps:
    """A figure with one or more sweeps beside each other.

    Attributes:
        kinds: Kinds of embeddings. Runs with one model have one kind only.
    """

    sweeps: tuple[ScoreSweep, ...]
    metric: str = "precision_at_1"
    kinds: tuple[EmbeddingKind, ...] = ("separated",)

    def frame(self, materials: Materials) -> pd.DataFrame:
        """Return the points of all sweeps."""
        return pd.concat([self._frame_of(sweep, materials) for sweep in self.sweeps], ignore_index=True)

    def draw(self, frame: pd.DataFrame) -> Figure:
        """Draw the points."""
        looks = {sweep.parameter: (sweep.label, sweep.scale) for sweep in self.sweeps}
        return dependence_plot(frame, looks, METRIC_NAMES[self.metric])

    def note(self, frame: pd.DataFrame, materials: Materials) -> str:
        """Say what a point is, how many searches or runs it has, and how their epochs were chosen."""
        several = any(material.folds > 1 for material in materials.values()) and self.kinds == ("separated",)
        models = " A run has several folds; its score is the mean over their models." if several else ""
        protocols = dict.fromkeys(material.measured.summary.experiment.protocol for material in materials.values())
        choices = " ".join(_CHOICES[protocol] for protocol in protocols if protocol in _CHOICES)
        score = f"{METRIC_NAMES[self.metric]} on the test classes, mean and 95 % interval over {over(frame)} per point."
        return f"{score}{models} {choices}"

    def _frame_of(self, sweep: ScoreSweep, materials: Materials) -> pd.DataFrame:
        rows = [row for material in materials.values() for row in self._rows(sweep, material)]
        frame = pd.DataFrame(rows, columns=["dataset", "line", "line_number", "x", "point", "row"])
        if frame["x"].nunique() < 2:
            raise FigureError(f"no two rows with runs differ in {sweep.parameter}")
        place = ["dataset", "line", "x"]
        for (_, line, x), same in frame.groupby(place):
            if same["row"].nunique() > 1:
                one, other = same["row"].unique()[:2]
                also = f" and {line}" if sweep.line else ""
                raise FigureError(f"rows {one} and {other} have the same {sweep.parameter} {x:g}{also}")
        points: list[dict[str, Any]] = []
        for dataset, of_dataset in frame.groupby("dataset", sort=False):
            known = _published(sweep, materials, str(dataset))
            title = f"({sweep.panel}) {dataset}" if sweep.panel else str(dataset)
            for (_, line), own in of_dataset.groupby(["line_number", "line"], sort=bool(sweep.line)):
                measured = dict(zip(own["x"], own["point"], strict=True))
                printed = known.get(str(line), {}) if sweep.line else known.get("", {})
                for x in sorted({*measured, *printed}):
                    position = {"panel": title, "line": line, "parameter": sweep.parameter, "x": x}
                    scores = measured.get(x, _NO_RUNS)
                    points.append({**position, "metric": self.metric, **scores, "published": printed.get(x)})
        return pd.DataFrame(points)

    def _rows(self, sweep: ScoreSweep, material: Material) -> Iterator[tuple[object, ...]]:
        """Yield the rows of one experiment that belong to a sweep.

        A hyperparameter that all rows of the experiment have at one value is not swept there. A setting of the
        experiment may also change from panel to panel.
        """
        # A row that trains nothing, such as the untrained trunk, has no settings of training.
        trained = [key for key, runs in material.records.items() if runs[0].iterations != 0]
        numbers = {key: _number(row_setting(material, key, sweep.parameter)) for key in trained}
        settings = {*Experiment.model_fields, *Conditions.model_fields}
        is_hyperparameter = sweep.parameter.partition(".")[0] not in settings
        if is_hyperparameter and len({number for number in numbers.values() if number is not None}) < 2:
            return
        kinds = self.kinds if material.folds > 1 else self.kinds[:1]
        for kind in kinds:
            points = _points(material.measured, self.metric, kind)
            for key, number in numbers.items():
                # The title of a row of a sweep begins with the title of its card.
                line, line_number = material.titles[key].partition(f", {sweep.parameter} ")[0], 0.0
                if sweep.line:
                    found = _number(row_setting(material, key, sweep.line))
                    line, line_number = ("", 0.0) if found is None else (f"{sweep.line_label} {found:g}", found)
                if number is not None and key in points and line:
                    name = f"{line}, {kind}" if len(kinds) > 1 else line
                    dataset = material.measured.summary.dataset
                    yield dataset, name, line_number, number, points[key], f"{material.name}, {key}"


def _published(sweep: ScoreSweep, materials: Materials, dataset: str) -> dict[str, dict[float, float]]:
    """The published scores by line and number; the line is empty for a figure with one line."""
    known: dict[str, dict[float, float]] = {}
    if sweep.published and any(_may_show_published(material, dataset) for material in materials.values()):
        for value in figure_values(sweep.published):
            if value.dataset == dataset:
                line = f"{sweep.line_label} {float(value.series):g}" if sweep.line else ""
                known.setdefault(line, {})[value.x] = value.score
    return known


def _may_show_published(material: Material, dataset: str) -> bool:
    """Whether the runs are on the whole dataset and under the settings of the suite's own file."""
    experiment = material.measured.summary.experiment
    return not experiment.dataset.subset and experiment.dataset.name == dataset and not material.deviations


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
    row = experiment.for_row(key)
    value: object = row.conditions if target.partition(".")[0] in Conditions.model_fields else row
    for name in target.split("."):
        value = getattr(value, name, None) if isinstance(value, Record) else None
    return value


def _number(value: object) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


@dataclass(frozen=True)
class Curves:
    """Recall@1 on the test classes after every epoch.

    Attributes:
        panels: Methods by title of the panel; empty for one panel with all methods, up to a number of curves that can
            be told apart. Methods that an experiment does not have are left out.
        published: Name of the figure whose published values are shown; empty for none.
        own: The paper's own method, whose curve is always drawn, as the first.
    """

    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    published: str = ""
    own: str = ""

    def frame(self, materials: Materials) -> pd.DataFrame:
        """Return the points of all curves; `x` is the epoch."""
        rows = [row for material in materials.values() for row in self._rows(material)]
        if not rows:
            wanted = ", ".join(dict.fromkeys(key for keys in self.panels.values() for key in keys)) or "any method"
            raise FigureError(f"no run of {wanted} has test curves; the experiment needs `test_curves: true`")
        return pd.DataFrame(rows)

    def draw(self, frame: pd.DataFrame) -> Figure:
        """Draw the curves."""
        return dependence_plot(frame, {"epoch": ("epochs", "linear")}, METRIC_NAMES["precision_at_1"])

    def note(self, frame: pd.DataFrame, materials: Materials) -> str:
        """Say what a curve is, how many runs it has, and which methods have no curve for lack of room."""
        drawn_by_order = () if self.panels else materials.values()
        left_out = [m.titles[key] for m in drawn_by_order for key in self._all(m)[_MOST_CURVES:]]
        others = f" Not drawn, to keep the curves apart: {', '.join(dict.fromkeys(left_out))}." if left_out else ""
        return (
            f"Recall@1 on the test classes after every validated epoch, mean and 95 % interval over {over(frame)}. No "
            f"epoch is chosen. The curves were recorded to be shown; nothing is selected by them.{others}"
        )

    def _all(self, material: Material) -> list[str]:
        """The methods with test curves, the paper's own first."""
        curved = (
            key for key, records in material.records.items() if any(_scores(material.measured, r) for r in records)
        )
        return sorted(curved, key=lambda key: key != self.own)

    def _rows(self, material: Material) -> Iterator[dict[str, Any]]:
        dataset, known = material.measured.summary.dataset, {}
        if self.published and _may_show_published(material, dataset):
            known = {
                (value.series, round(value.x)): value.score
                for value in figure_values(self.published)
                if value.dataset == dataset
            }
        for title, keys in (self.panels or {"": tuple(self._all(material)[:_MOST_CURVES])}).items():
            for key in keys:
                records = material.records.get(key, [])
                runs = [scores for record in records if (scores := _scores(material.measured, record))]
                for epoch in sorted(set.intersection(*map(set, runs))) if runs else ():
                    values = tuple(scores[epoch] for scores in runs)
                    yield {
                        "panel": f"{dataset}: {title}" if title else dataset,
                        "line": material.titles[key],
                        "parameter": "epoch",
                        "x": epoch,
                        "metric": "precision_at_1",
                        **_point(values, student_t_interval(values), "run"),
                        "published": known.get((key, epoch)),
                    }


def _scores(measured: MeasuredExperiment, record: RunRecord) -> dict[int, float]:
    """Return a run's scores by epoch, as means over its folds. Epochs that a fold does not have are left out."""
    folds = [dict(_fold_scores(measured, fingerprint)) for fingerprint in record.fold_fingerprints]
    shared = sorted(set.intersection(*map(set, folds))) if folds else []
    return {epoch: float(np.mean([fold[epoch] for fold in folds])) for epoch in shared}


def _fold_scores(measured: MeasuredExperiment, fingerprint: str) -> Iterable[tuple[int, float]]:
    if fingerprint not in measured.trainings or fingerprint not in measured.test_curves:
        return
    spec, result = measured.trainings[fingerprint]
    steps = spec.conditions.training.iterations_per_epoch
    if steps is None:
        # An epoch is a pass over the images. The first validation after the start shows its length.
        trained = [point.iteration for point in result.curve if point.iteration > 0]
        if not trained:
            return
        steps = trained[0] // min(spec.conditions.training.validate_every, spec.conditions.training.max_epochs)
    for point in measured.test_curves[fingerprint].points:
        if point.iteration > 0:
            yield round(point.iteration / steps), point.scores.precision_at_1
