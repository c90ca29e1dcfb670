"""Critical-difference diagram: methods by mean rank; bars join methods that the tests of all pairs cannot separate.

Source: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006. The bars there are from
Nemenyi's test; here they are from the comparison that the tables use, so that figure and tables agree.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import BLUE, INK, PAGE_WIDTH, FigureError, Look, new_figure, styled
from reports.wording import listed

_WRAP = 21
"""Number of characters after which a name wraps."""
_STEP = 0.55
"""From one name to the next. Names wrap, so they need room below each other."""


@styled
def critical_difference_diagram(ranks: Mapping[str, float], blocks: str, groups: Sequence[Sequence[str]]) -> Figure:
    """Draw the mean ranks on a line, 1 is the best. A bar joins a group; its dots are the methods of the group.

    Args:
        blocks: Number and name of the blocks, such as "10 matched runs".
        groups: Sets of methods of which none is shown to be better than another (`ComparisonResult.groups`). Methods
            between the ends of a bar without a dot are not in the group.
    """
    if len(ranks) < 2:
        raise FigureError("a critical-difference diagram needs at least two methods")
    joined = sorted(groups, key=lambda group: min(ranks[name] for name in group))
    ordered = sorted(ranks, key=lambda name: ranks[name])
    half = ceil(len(ordered) / 2)
    low, high = floor(min(ranks.values())), ceil(max(ranks.values()))
    high = max(high, low + 1)
    bars = 0.28 * len(joined)
    depth = bars + _STEP * half + 0.5
    figure = new_figure(0.62 * depth + 0.8, PAGE_WIDTH)
    axes = figure.add_subplot()
    _ruler(axes, low, high)
    for index, name in enumerate(ordered):
        left = index < half
        level = index if left else len(ordered) - 1 - index
        _method(axes, name, ranks[name], -(bars + 0.45 + _STEP * level), low if left else high, left)
    for index, group in enumerate(joined):
        ends = [ranks[name] for name in group]
        height = -(0.25 + 0.28 * index)
        axes.plot([min(ends), max(ends)], [height, height], color=BLUE, linewidth=2.5)
        axes.plot(ends, [height] * len(ends), "o", color=BLUE, markersize=6)
    margin = 0.9 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(-depth - 0.1, 0.6)
    axes.set_axis_off()
    note = f"mean rank over {blocks} (1 is best); a bar joins the methods of its dots: none is shown to be better"
    figure.supxlabel(fill(note, int(17 * PAGE_WIDTH)), fontsize=8.5)
    return figure


def _ruler(axes: Axes, low: int, high: int) -> None:
    axes.plot([low, high], [0, 0], color=INK, linewidth=1.2)
    step = max(1, round((high - low) / 10))
    for rank in range(low, high + 1, step):
        axes.plot([rank, rank], [0, 0.12], color=INK, linewidth=1.2)
        axes.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=8.5)


def _method(axes: Axes, name: str, rank: float, height: float, edge: float, left: bool) -> None:
    axes.plot([rank, rank, edge], [0, height, height], color=INK, linewidth=0.9)
    text = fill(f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}", _WRAP)
    look: Look = {"textcoords": "offset points", "ha": "right" if left else "left", "va": "center", "fontsize": 8.5}
    axes.annotate(text, (edge, height), xytext=(-4 if left else 4, 0), **look)


def caption(p: float | None, left_out: int) -> str:
    """Explain the ranks.

    Args:
        p: p value of Friedman's test; None if there is none.
        left_out: Number of runs that not every method has.
    """
    without = f" {left_out} runs are left out, because not every method has them." if left_out else ""
    test = "" if p is None else f" Friedman's test of equal ranks: p = {p:.3g}."
    return (
        "The blocks are runs on one dataset, so the ranks hold for this dataset only. A bar joins methods of which "
        "none is shown to be better than another, by the tests of all pairs behind the verdicts. A method without a "
        f"dot on a bar does not belong to it.{test}{without}"
    )


def alternative_text(ranks: Mapping[str, float], blocks: str, groups: Sequence[Sequence[str]]) -> str:
    """Describe mean ranks, the best first, and the groups that bars join."""
    values = "; ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    bars = "; ".join(listed(group) for group in groups)
    return f"Mean ranks over {blocks}: {values}. " + (f"Bars join: {bars}." if bars else "No bar joins any methods.")
