"""Figures of test scores after every epoch, from the recorded test curves of runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.figures.convergence import Convergence, ConvergencePanel, convergence_plot
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.paper_figure import Materials, may_show_published
from results.published.tables import figure_values
from results.records.records import RunRecord
from results.store.experiment_results import MeasuredExperiment

METRIC = "precision_at_1"
_MOST_CURVES = 7


@dataclass(frozen=True)
class ConvergenceFigure:
    """Recall@1 on the test classes after every epoch, with one row of panels per experiment.

    Attributes:
        panels: Methods by title of the panel; empty for one panel with all methods, up to a number of curves that can
            be told apart. Methods that an experiment does not have are left out.
        published: Name of the figure whose published values are shown; empty for none.
        own: The paper's own method, whose curve is always drawn, as the first.
    """

    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    published: str = ""
    own: str = ""

    def draw(self, materials: Materials) -> Figure:
        """Draw the figure."""
        return convergence_plot(self._rows(materials), "Recall@1")

    def values(self, materials: Materials) -> pd.DataFrame:
        """Return the drawn values, one row per epoch.

        Columns: panel, method, epoch, metric, mean, deviation (sample standard deviation over runs), n, runs (separated
        by spaces) and published (empty if not known or not shown). Scores are fractions of 1.
        """
        rows = []
        for panel in (panel for row in self._rows(materials) for panel in row):
            for curve in panel.curves:
                runs_by_epoch = np.transpose(curve.runs).tolist()
                for epoch, runs, mean, spread in zip(
                    curve.epochs, runs_by_epoch, curve.mean, curve.deviation, strict=True
                ):
                    rows.append(
                        {
                            "panel": panel.title,
                            "method": curve.name,
                            "epoch": epoch,
                            "metric": METRIC,
                            "mean": mean,
                            "deviation": spread if len(runs) > 1 else None,
                            "n": len(runs),
                            "runs": " ".join(map(repr, runs)),
                            "published": curve.published.get(epoch),
                        }
                    )
        return pd.DataFrame(rows)

    def note(self, materials: Materials) -> str:
        """Say what a curve is, how many runs it has, and which methods have no curve for lack of room."""
        counts = sorted({len(curve.runs) for row in self._rows(materials) for panel in row for curve in panel.curves})
        runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        drawn_by_order = () if self.panels else materials.values()
        left_out = [m.titles[key] for m in drawn_by_order for key in self._all(m)[_MOST_CURVES:]]
        others = f" Not drawn, to keep the curves apart: {', '.join(dict.fromkeys(left_out))}." if left_out else ""
        return (
            f"Recall@1 on the test classes after every validated epoch, mean and standard deviation over n = {runs} "
            f"run{'s' if counts[-1] > 1 else ''}. No epoch is chosen. The curves were recorded to be shown; nothing is "
            f"selected by them.{others}"
        )

    def _all(self, material: Material) -> list[str]:
        """The methods with test curves, the paper's own first."""
        curved = (
            key for key, records in material.records.items() if any(_scores(material.measured, r) for r in records)
        )
        return sorted(curved, key=lambda key: key != self.own)

    def _rows(self, materials: Materials) -> list[list[ConvergencePanel]]:
        rows = [self._row(material) for material in materials.values()]
        if not any(rows):
            wanted = ", ".join(dict.fromkeys(key for keys in self.panels.values() for key in keys)) or "any method"
            raise FigureError(f"no run of {wanted} has test curves; the experiment needs `test_curves: true`")
        return [row for row in rows if row]

    def _row(self, material: Material) -> list[ConvergencePanel]:
        dataset = material.measured.summary.dataset
        panels = self.panels or {"": tuple(self._all(material)[:_MOST_CURVES])}
        row = []
        for title, keys in panels.items():
            curves = tuple(
                curve for key in keys if key in material.records and (curve := self._curve(material, key)) is not None
            )
            if curves:
                row.append(ConvergencePanel(f"{dataset}: {title}" if title else dataset, curves))
        return row

    def _curve(self, material: Material, key: str) -> Convergence | None:
        runs = [scores for record in material.records[key] if (scores := _scores(material.measured, record))]
        if not runs:
            return None
        epochs = tuple(sorted(set.intersection(*(set(scores) for scores in runs))))
        dataset = material.measured.summary.dataset
        published = {}
        if self.published and may_show_published(material, dataset):
            published = {
                round(value.x): value.score
                for value in figure_values(self.published)
                if (value.dataset, value.series) == (dataset, key)
            }
        values = tuple(tuple(scores[epoch] for epoch in epochs) for scores in runs)
        return Convergence(material.titles[key], epochs, values, published) if epochs else None


def _scores(measured: MeasuredExperiment, record: RunRecord) -> dict[int, float]:
    """Return a run's scores by epoch, as means over its folds. Epochs that a fold does not have are left out."""
    folds = [dict(_fold_scores(measured, fingerprint)) for fingerprint in record.fold_fingerprints]
    shared = sorted(set.intersection(*(set(fold) for fold in folds))) if folds else []
    return {epoch: float(np.mean([fold[epoch] for fold in folds])) for epoch in shared}


def _fold_scores(measured: MeasuredExperiment, fingerprint: str) -> Iterator[tuple[int, float]]:
    if fingerprint not in measured.trainings or fingerprint not in measured.test_curves:
        return
    spec, result = measured.trainings[fingerprint]
    settings = spec.training
    steps = settings.iterations_per_epoch
    if steps is None:
        # An epoch is a pass over the images. The first validation after the start shows its length.
        trained = [point.iteration for point in result.curve if point.iteration > 0]
        if not trained:
            return
        steps = trained[0] // min(settings.validate_every, settings.max_epochs)
    for point in measured.test_curves[fingerprint].points:
        if point.iteration > 0:
            yield round(point.iteration / steps), point.scores.precision_at_1
