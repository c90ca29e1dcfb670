"""How often simulated tables hold a wrong claim, and how often the comparison sees a true difference."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import FigureError, new_figure, sign, styled

_GAP = "4.0"
_EXCEPTION = "the noisy method named"


@styled
def calibration_figure(content: Mapping[str, Any]) -> Figure:
    """Draw the errors and the power of a calibration, as in `results/measured/calibration.json`.

    Returns:
        Above, the largest share of tables with a wrong claim, by number of methods and of searches, over the numbers of
        runs and the questions (but the one that docs/comparisons.md excepts). Below left, the power for a difference of
        four deviations of a search. Below right, the errors with one search and an assumed deviation.
    """
    cells = content["repeated"]
    if not cells:
        raise FigureError("a calibration needs simulated cells")
    figure = new_figure(6.4)
    grid = figure.add_gridspec(2, 2, height_ratios=[1.15, 1])
    _errors(figure.add_subplot(grid[0, :]), cells, 100 * content["alpha"])
    _power(figure.add_subplot(grid[1, 0]), cells)
    _one_search(figure.add_subplot(grid[1, 1]), content["one_search"], 100 * content["alpha"])
    return figure


def worst_share(cell: Mapping[str, Any]) -> float:
    """Return a cell's largest share of tables with a wrong claim, without the exception."""
    return max(float(share) for name, share in cell["wrong"].items() if name != _EXCEPTION)


def _sizes(cells: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return sorted({(cell["methods"], cell["searches"]) for cell in cells})


def _errors(axes: Axes, cells: Sequence[Mapping[str, Any]], level: float) -> None:
    sizes, kinds = _sizes(cells), list(dict.fromkeys(cell["kind"] for cell in cells))
    for number, kind in enumerate(kinds):
        shares = [
            max(100 * worst_share(c) for c in cells if (c["methods"], c["searches"], c["kind"]) == (*size, kind))
            for size in sizes
        ]
        shift = 0.13 * (number - (len(kinds) - 1) / 2)
        look = {key: value for key, value in sign(number).items() if key != "linestyle"}
        places = [place + shift for place in range(len(sizes))]
        axes.plot(places, shares, label=kind, linestyle="", markersize=4.5, **look)
    axes.axhline(level, color="0.3", linewidth=0.9, linestyle=":")
    axes.set_xticks(range(len(sizes)), [f"{searches}" for _, searches in sizes])
    axes.set_ylim(bottom=0)
    for place, (methods, searches) in enumerate(sizes):
        if searches == min(count for size, count in sizes if size == methods):
            axes.text(place - 0.4, axes.get_ylim()[1], f"{methods} methods", va="bottom", fontsize=8.5)
    axes.set_xlabel("searches of each method")
    axes.set_ylabel("tables with a wrong claim in %")
    axes.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.08), columnspacing=1.2, handletextpad=0.3)


def _power(axes: Axes, cells: Sequence[Mapping[str, Any]]) -> None:
    normal = [cell for cell in cells if "power" in cell]
    searches = sorted({cell["searches"] for cell in normal})
    for number, methods in enumerate(sorted({cell["methods"] for cell in normal})):
        seen = [
            min(
                100 * c["power"][_GAP]["all pairs"] for c in normal if (c["methods"], c["searches"]) == (methods, count)
            )
            for count in searches
        ]
        axes.plot(range(len(searches)), seen, label=f"{methods} methods", markersize=4.5, **sign(number))
    axes.set_xticks(range(len(searches)), [str(count) for count in searches])
    axes.set_ylim(-3, 103)
    axes.set_xlabel("searches of each method")
    axes.set_ylabel("differences of 4 deviations\ncalled better, in %")
    axes.legend(loc="upper left")


def _one_search(axes: Axes, cells: Sequence[Mapping[str, Any]], level: float) -> None:
    ratios = sorted({cell["ratio"] for cell in cells})
    for number, methods in enumerate(sorted({cell["methods"] for cell in cells})):
        shares = [100 * cell["wrong"] for cell in cells if cell["methods"] == methods]
        axes.plot(range(len(ratios)), shares, markersize=4.5, **sign(number))
    axes.axhline(level, color="0.3", linewidth=0.9, linestyle=":")
    axes.set_xticks(range(len(ratios)), [f"{ratio:g}" for ratio in ratios])
    axes.set_ylim(bottom=-0.2)
    axes.set_xlabel("one search: true deviation / the record's")
    axes.set_ylabel("tables with a wrong claim in %")
