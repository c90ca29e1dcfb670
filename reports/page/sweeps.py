"""Figures of scores from what was measured: sweeps over a number, and curves over epochs.

A row of their frame is a point: panel, line, parameter, x, metric, mean, half_width (of the 95 % interval; empty for
one value), n, unit (run or search), values (of the runs, or means of the searches) and published (empty if not known or
not shown). Scores are fractions of 1.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.figures.dependence import AxisScale, dependence_plot, over
from reports.figures.style import FigureError
from reports.page.material import Material
from results.published.tables import figure_values
from results.records.records import RunRecord
from results.spec.conditions import Conditions
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.primary_comparison import method_intervals, unit_values
from results.store.experiment_results import MeasuredExperiment
from results.store.frame import EmbeddingKind
from results.values import Record

Materials = Mapping[str, Material]
"""Experiments with runs, by panel of their file; the key is empty for a file without panels."""

_CHOICES = {
    "standard": "The epoch of every run is chosen on validation classes, not on the test classes.",
    "mlrc": "The checkpoint of every fold is chosen on the validation classes of this fold.",
}
_MOST_CURVES = 7


@dataclass(frozen=True)
class ScoreSweep:
    """A score against a number, with a panel for each dataset and a line for each value of a second number.

    Attributes:
        parameter: Target of the hyperparameter (such as `loss.alpha`) or dotted key of the experiment's setting
            (such as `training.batch_size`) on the horizontal axis.
        line: Hyperparameter that makes the lines; empty for lines by method.
        published: Name of the figure whose published values are shown; empty for none.
        kinds: Kinds of embeddings. Runs with one model have one kind only.
    """

    parameter: str
    label: str
    scale: AxisScale = "linear"
    line: str = ""
    line_label: str = ""
    published: str = ""
    metric: str = "precision_at_1"
    kinds: tuple[EmbeddingKind, ...] = ("separated",)

    def frame(self, materials: Materials) -> pd.DataFrame:
        """Return the points of all panels."""
        rows = [row for material in materials.values() for row in self._rows(material)]
        frame = pd.DataFrame(rows, columns=["dataset", "line", "line_number", "x", "point", "row"])
        if frame["x"].nunique() < 2:
            raise FigureError(f"no two rows with runs differ in {self.parameter}")
        for (_, line, x), same in frame.groupby(["dataset", "line", "x"]):
            if same["row"].nunique() > 1:
                one, other = same["row"].unique()[:2]
                also = f" and {line}" if self.line else ""
                raise FigureError(f"rows {one} and {other} have the same {self.parameter} {x:g}{also}")
        points: list[dict[str, Any]] = []
        for dataset, of_dataset in frame.groupby("dataset", sort=False):
            known = self._published(materials, str(dataset))
            for (_, line), own in of_dataset.groupby(["line_number", "line"], sort=bool(self.line)):
                measured = dict(zip(own["x"], own["point"], strict=True))
                printed = known.get(str(line), {}) if self.line else known.get("", {})
                for x in sorted({*measured, *printed}):
                    position = {"panel": dataset, "line": line, "parameter": self.parameter, "x": x}
                    scores = measured.get(x, _NO_RUNS)
                    points.append({**position, "metric": self.metric, **scores, "published": printed.get(x)})
        return pd.DataFrame(points)

    def draw(self, frame: pd.DataFrame) -> Figure:
        """Draw the points."""
        return dependence_plot(frame, self.label, self.scale, HEADLINE_METRICS[self.metric])

    def note(self, frame: pd.DataFrame, materials: Materials) -> str:
        """Say what a point is, how many searches or runs it has, and how their epochs were chosen."""
        several = any(material.folds > 1 for material in materials.values()) and self.kinds == ("separated",)
        models = " A run has several folds; its score is the mean over their models." if several else ""
        protocols = dict.fromkeys(material.measured.summary.experiment.protocol for material in materials.values())
        choices = " ".join(_CHOICES[protocol] for protocol in protocols)
        score = HEADLINE_METRICS[self.metric]
        return f"{score} on the test classes, mean and 95 % interval over {over(frame)} per point.{models} {choices}"

    def _rows(self, material: Material) -> Iterator[tuple[object, ...]]:
        """Yield the rows of one experiment that have the number, and lie on a line."""
        # A row that trains nothing, such as the untrained trunk, has no settings of training.
        trained = [key for key, runs in material.records.items() if runs[0].iterations != 0]
        numbers = {key: _number(_row_setting(material, key, self.parameter)) for key in trained}
        kinds = self.kinds if material.folds > 1 else self.kinds[:1]
        for kind in kinds:
            points = _points(material, self.metric, kind)
            for key, number in numbers.items():
                # The title of a row of a sweep begins with the title of its card.
                line, line_number = material.titles[key].partition(f", {self.parameter} ")[0], 0.0
                if self.line:
                    found = _number(_row_setting(material, key, self.line))
                    line, line_number = ("", 0.0) if found is None else (f"{self.line_label} {found:g}", found)
                if number is not None and key in points and line:
                    name = f"{line}, {kind}" if len(kinds) > 1 else line
                    dataset = material.measured.summary.dataset
                    yield dataset, name, line_number, number, points[key], f"{material.name}, {key}"

    def _published(self, materials: Materials, dataset: str) -> dict[str, dict[float, float]]:
        """The published scores by line and number; the line is empty for a figure with one line."""
        known: dict[str, dict[float, float]] = {}
        if self.published and any(_may_show_published(material, dataset) for material in materials.values()):
            for value in figure_values(self.published):
                if value.dataset == dataset:
                    line = f"{self.line_label} {float(value.series):g}" if self.line else ""
                    known.setdefault(line, {})[value.x] = value.score
        return known


def own_sweeps(material: Material) -> Iterator[ScoreSweep]:
    """Yield a sweep for each of the one or two numbers in which variants of one card differ."""
    experiment, score = material.measured.summary.experiment, material.score
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
            x, line = varied[0], "".join(varied[1:])
            about: dict[str, Any] = {"metric": score.metric, "kinds": (score.embeddings,)}
            found.setdefault(x, ScoreSweep(x, x, "steps", line, f"{line} =" if line else "", **about))
    yield from found.values()


_NO_RUNS: dict[str, Any] = {"mean": None, "half_width": None, "n": 0, "unit": None, "values": ()}


def _point(values: tuple[float, ...], interval: Interval, unit: str) -> dict[str, Any]:
    about = {"mean": interval.mean, "half_width": interval.half_width, "n": interval.n}
    return {**about, "unit": unit, "values": values}


def _points(material: Material, metric: str, kind: EmbeddingKind) -> dict[str, dict[str, Any]]:
    """The score of each method with runs, or with a complete search where searches are repeated."""
    by_method = material.measured.values(metric, kind)
    values = unit_values(material.measured, by_method)
    intervals = method_intervals(material.measured, by_method)
    return {key: _point(values[key].units, intervals[key], material.unit) for key in by_method if values[key].units}


def _may_show_published(material: Material, dataset: str) -> bool:
    """Whether the runs are on the whole dataset and under the settings of the suite's own file."""
    experiment = material.measured.summary.experiment
    return not experiment.dataset.subset and experiment.dataset.name == dataset and not material.deviations


def _row_setting(material: Material, key: str, target: str) -> object:
    """Return the value of a hyperparameter or of an experiment's setting in one row with runs; None if it has none."""
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
    """Precision@1 on the test classes after every epoch.

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
        return dependence_plot(frame, "epochs", "linear", HEADLINE_METRICS["precision_at_1"])

    def note(self, frame: pd.DataFrame, materials: Materials) -> str:
        """Say what a curve is, how many runs it has, and which methods have no curve for lack of room."""
        drawn_by_order = () if self.panels else materials.values()
        left_out = [m.titles[key] for m in drawn_by_order for key in self._all(m)[_MOST_CURVES:]]
        others = f" Not drawn, to keep the curves apart: {', '.join(dict.fromkeys(left_out))}." if left_out else ""
        return (
            f"Precision@1 (Recall@1) on the test classes after every validated epoch, mean and 95 % interval over "
            f"{over(frame)}. No epoch is chosen by them.{others}"
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
