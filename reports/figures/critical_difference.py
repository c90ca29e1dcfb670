"""Critical-difference diagram: methods by mean rank; bars join methods without significant difference.

Source: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.style import BLUE, INK, FigureError, Look, new_figure, styled


def groups_of(ranks: Mapping[str, float], critical_difference: float) -> list[tuple[str, ...]]:
    """Find the largest sets of at least two methods whose ranks lie within the critical difference.

    Args:
        ranks: Mean ranks by method.
        critical_difference: Largest distance of ranks within a set.

    Returns:
        Sets of methods, starting with the best rank.
    """
    ordered = sorted(ranks, key=lambda name: ranks[name])
    groups: list[tuple[str, ...]] = []
    reached = 0
    for start, first in enumerate(ordered):
        end = start + sum(ranks[name] - ranks[first] <= critical_difference for name in ordered[start:])
        if end > reached and end - start > 1:
            groups.append(tuple(ordered[start:end]))
        reached = max(reached, end)
    return groups


@styled
def critical_difference_diagram(
    ranks: Mapping[str, float], critical_difference: float, blocks: str, groups: Sequence[Sequence[str]] | None = None
) -> Figure:
    """Draw the mean ranks on a line, 1 is the best. A bar joins methods that do not differ significantly.

    Args:
        ranks: Mean ranks by method.
        critical_difference: Smallest distance of ranks that counts as a difference.
        blocks: Number and name of the blocks, such as "10 matched runs".
        groups: Sets of methods that a bar joins; by default those within the critical difference.

    Raises:
        FigureError: For fewer than two methods.
    """
    if len(ranks) < 2:
        raise FigureError("a critical-difference diagram needs at least two methods")
    joined = groups_of(ranks, critical_difference) if groups is None else groups
    ordered = sorted(ranks, key=lambda name: ranks[name])
    half = ceil(len(ordered) / 2)
    low, high = floor(min(ranks.values())), ceil(max(ranks.values()))
    high = max(high, low + 1)
    bars = 0.28 * len(joined)
    depth = bars + 0.4 * half + 0.5
    figure = new_figure(0.62 * depth + 1.1)
    axes = figure.add_subplot()
    _ruler(axes, low, high, critical_difference)
    for index, name in enumerate(ordered):
        left = index < half
        level = index if left else len(ordered) - 1 - index
        _method(axes, name, ranks[name], -(bars + 0.45 + 0.4 * level), low if left else high, left)
    for index, group in enumerate(joined):
        ends = [ranks[name] for name in group]
        height = -(0.25 + 0.28 * index)
        pad = 0.008 * (high - low)
        axes.plot([min(ends) - pad, max(ends) + pad], [height, height], color=BLUE, linewidth=4, solid_capstyle="butt")
    margin = 0.34 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(-depth - 0.1, 1.25)
    axes.set_axis_off()
    figure.supxlabel(
        f"mean rank over {blocks} (1 is best); bars join methods without significant difference", fontsize=8.5
    )
    return figure


def _ruler(axes: Axes, low: int, high: int, critical_difference: float) -> None:
    """Draw the line of ranks, and the critical difference above it."""
    axes.plot([low, high], [0, 0], color=INK, linewidth=1.2)
    step = max(1, round((high - low) / 10))
    for rank in range(low, high + 1, step):
        axes.plot([rank, rank], [0, 0.12], color=INK, linewidth=1.2)
        axes.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=8.5)
    end = low + critical_difference
    axes.plot([low, low, low, end, end, end], [0.75, 0.9, 0.825, 0.825, 0.9, 0.75], color=INK, linewidth=1.2)
    axes.text((low + end) / 2, 0.95, f"CD = {critical_difference:.2f}", ha="center", va="bottom", fontsize=8.5)


def _method(axes: Axes, name: str, rank: float, height: float, edge: float, left: bool) -> None:
    """Draw a line from a method's rank down and then sideways to its name."""
    axes.plot([rank, rank, edge], [0, height, height], color=INK, linewidth=0.9)
    text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
    look: Look = {"textcoords": "offset points", "ha": "right" if left else "left", "va": "center", "fontsize": 8.5}
    axes.annotate(text, (edge, height), xytext=(-4 if left else 4, 0), **look)
