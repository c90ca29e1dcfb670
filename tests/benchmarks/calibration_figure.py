"""How often simulated tables hold a wrong claim, and how often the tests see a true difference."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import FigureError, new_figure, sign, styled

_DIFFERENCE = "4.0"
_METHODS = (5, 15, 31)


@styled
def calibration_figure(settings: Sequence[Mapping[str, Any]], alpha: float) -> Figure:
    """Draw the errors and the power of a calibration.

    Args:
        settings: The simulated settings, as in `results/measured/calibration.json`. Correlated runs are left out.

    Returns:
        Above, the shares of tables with a wrong claim, by number of methods and of runs. Below, the power of each test
        for a difference of four run-to-run deviations between runs with equal deviations.
    """
    independent = [setting for setting in settings if setting["correlation"] == 0]
    if not independent:
        raise FigureError("a calibration needs settings with independent runs")
    figure = new_figure(6.4)
    grid = figure.add_gridspec(2, len(_METHODS), height_ratios=[1.15, 1])
    _errors(figure.add_subplot(grid[0, :]), independent, alpha)
    equal = [setting for setting in independent if setting["kind"] == "equal"]
    panels = [figure.add_subplot(grid[1, number]) for number in range(len(_METHODS))]
    for axes, methods in zip(panels, _METHODS, strict=True):
        _power(axes, [setting for setting in equal if setting["methods"] == methods], methods)
    panels[-1].legend(loc="upper left")
    return figure


def _errors(axes: Axes, settings: Sequence[Mapping[str, Any]], alpha: float) -> None:
    sizes = sorted({(setting["methods"], setting["runs"]) for setting in settings})
    kinds = list(dict.fromkeys(setting["kind"] for setting in settings))
    for number, kind in enumerate(kinds):
        shown = [setting for setting in settings if setting["kind"] == kind]
        places = [sizes.index((setting["methods"], setting["runs"])) for setting in shown]
        shift = 0.13 * (number - (len(kinds) - 1) / 2)
        look = {key: value for key, value in sign(number).items() if key != "linestyle"}
        values = [100 * wrong_share(setting) for setting in shown]
        axes.plot([place + shift for place in places], values, label=kind, linestyle="", markersize=4.5, **look)
    noisy = [setting for setting in settings if setting["kind"] == "one noisy"]
    axes.plot(
        [sizes.index((setting["methods"], setting["runs"])) for setting in noisy],
        [100 * setting["wrong_better_with_limma_prior"] for setting in noisy],
        label="one noisy, limma's prior",
        linestyle="",
        marker="_",
        color="0.45",
        markersize=11,
    )
    axes.axhline(100 * alpha, color="0.3", linewidth=0.9, linestyle=":")
    axes.set_xticks(range(len(sizes)), [f"{runs}" for _, runs in sizes])
    for place, (methods, runs) in enumerate(sizes):
        if runs == min(count for size, count in sizes if size == methods):
            axes.text(place - 0.4, axes.get_ylim()[1], f"{methods} methods", va="bottom", fontsize=8.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("runs of each method")
    axes.set_ylabel("tables with a wrong claim in %")
    axes.legend(ncols=6, loc="lower center", bbox_to_anchor=(0.5, 1.08), columnspacing=1.2, handletextpad=0.3)


def wrong_share(setting: Mapping[str, Any]) -> float:
    """Return the largest share of tables with a wrong claim, over the truths that a setting was simulated with."""
    at_margin = [float(wrong["any"]) for wrong in setting["wrong_at_margin"].values()]
    return max(float(setting["wrong_better_without_differences"]), *at_margin)


def _power(axes: Axes, settings: Sequence[Mapping[str, Any]], methods: int) -> None:
    runs = [setting["runs"] for setting in settings]
    for number, test in enumerate(("moderated t", "paired t", "Welch t")):
        power = [100 * setting["power"][_DIFFERENCE][test] for setting in settings]
        axes.plot(range(len(runs)), power, label=test, markersize=4.5, **sign(number))
    axes.set_xticks(range(len(runs)), [str(count) for count in runs])
    axes.set_ylim(-3, 103)
    axes.set_title(f"{methods} methods", fontsize=9)
    axes.set_xlabel("runs of each method")
    if methods == _METHODS[0]:
        axes.set_ylabel("differences of 4 deviations\ncalled better, in %")
