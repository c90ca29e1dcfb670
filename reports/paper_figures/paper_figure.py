"""A result figure of a paper: what it shows, which experiment has its runs, and how it is drawn."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
from matplotlib.figure import Figure

from reports.page.material import Material

Materials = Mapping[str, Material]
"""The experiments with runs by panel of their file; the key is empty for a file without panels."""

_CHOICES = {
    "standard": "The epoch of every run is chosen on validation classes, not on the test classes.",
    "mlrc": "The checkpoint of every fold is chosen on the validation classes of this fold.",
}


def epoch_choice(materials: Materials) -> str:
    """Say how the epochs of the runs were chosen."""
    protocols = dict.fromkeys(material.measured.summary.experiment.protocol for material in materials.values())
    return " ".join(_CHOICES[protocol] for protocol in protocols if protocol in _CHOICES)


def may_show_published(material: Material, dataset: str) -> bool:
    """Whether values that a paper published on `dataset` may stand beside the runs.

    They may if the runs are on the whole dataset and under the settings of the suite's own file.
    """
    experiment = material.measured.summary.experiment
    if experiment.dataset.subset or experiment.dataset.name != dataset:
        return False
    return not material.deviations


class DrawnScores(Protocol):
    """The scores in a figure of sweeps or curves."""

    def draw(self, materials: Materials) -> Figure:
        """Draw the figure."""

    def values(self, materials: Materials) -> pd.DataFrame:
        """Return the drawn values, one row per point."""

    def note(self, materials: Materials) -> str:
        """Say what the points are, how many runs they have, and how the epochs of these runs were chosen."""


@dataclass(frozen=True)
class PaperFigure:
    """A result figure of a paper. It has either a drawing or scores.

    Attributes:
        name: Name on the command line.
        number: Number of the figure in the paper (`Figure 9`), or a phrase for a figure without a number.
        experiment: Experiment file of the suite that makes the runs; FILE/PANEL for one panel.
        drawing: Draws a figure of embeddings.
        scores: The drawn scores of a figure of sweeps or curves.
        panels: Panels of the file that the paper's figure shows; empty for all.
    """

    name: str
    paper: str
    number: str
    title: str
    experiment: str
    caption: str
    drawing: Callable[[Materials], Figure] | None = None
    scores: DrawnScores | None = None
    panels: tuple[str, ...] = ()

    def draw(self, materials: Materials) -> Figure:
        """Draw the figure; raise `FigureError` with a one-line reason if there is nothing to draw."""
        draw = self.drawing if self.scores is None else self.scores.draw
        assert draw is not None
        return draw(materials)

    @property
    def experiments(self) -> tuple[str, ...]:
        """Names of the experiments that make the figure's runs, as `reproduce run` takes them."""
        if not self.panels:
            return (self.experiment,)
        return tuple(f"{self.experiment}/{panel}" for panel in self.panels)

    def own_of(self, stored: Iterable[str]) -> list[str]:
        """Select the figure's own experiments among the names NAME or NAME/PANEL, in the order of its panels."""
        names = sorted(stored)
        return [name for own in self.experiments for name in names if f"{name}/".startswith(f"{own}/")]
