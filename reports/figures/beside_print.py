"""Figure of published values beside our intervals and prediction intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures.names_in_text import wrapped
from reports.figures.style import BLUE, INK, ORANGE, PAGE_WIDTH, FigureError, Look, legend_keys, new_figure, styled
from results.statistics.intervals import Interval

_LONG_NAME = 26
"""Number of characters after which a name wraps."""

CAPTION = (
    "A diamond inside our prediction interval is compatible with our runs. That interval is wider than the interval of "
    "our mean, because the published value is a measurement too."
)


@dataclass(frozen=True)
class PublishedRowValues:
    """A published value and ours, in the unit of the paper.

    Attributes:
        ours: Mean of our runs with its 95 % interval.
        prediction: Our 95 % prediction interval for the published value; None for a single run.
    """

    name: str
    published: float
    ours: Interval
    prediction: Interval | None = None


@styled
def beside_print(rows: Sequence[PublishedRowValues], score: str) -> Figure:
    """Draw each published value as a diamond over our prediction interval, our interval and our mean."""
    if not rows:
        raise FigureError("the figure of published values needs at least one row with a run")
    figure = new_figure(1.2 + 0.36 * len(rows), PAGE_WIDTH)
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        _draw(axes, place, row)
    axes.set_yticks(
        range(len(rows)), [wrapped(f"{row.name}  (n\u00a0=\u00a0{row.ours.n})", _LONG_NAME) for row in rows]
    )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    axes.set_xlabel(score)
    figure.legend(*legend_keys(axes), loc="outside upper right", ncols=2)
    return figure


def _draw(axes: Axes, place: int, row: PublishedRowValues) -> None:
    ours, prediction = row.ours, row.prediction
    if prediction is not None and prediction.half_width is not None:
        band: Look = {"color": BLUE, "alpha": 0.22, "linewidth": 9, "solid_capstyle": "butt"}
        ends = [prediction.mean - prediction.half_width, prediction.mean + prediction.half_width]
        axes.plot(ends, [place, place], label="95 % prediction interval", **band)
    if ours.half_width is not None:
        bar: Look = {"color": INK, "elinewidth": 1.6, "capsize": 4, "capthick": 1.6, "linestyle": ""}
        axes.errorbar(ours.mean, place, xerr=ours.half_width, label="95 % interval of our mean", **bar)
    axes.plot(ours.mean, place, "o", color=BLUE, markersize=6, label="our mean")
    value: Look = {"color": ORANGE, "markeredgecolor": INK, "markeredgewidth": 0.7, "markersize": 6.5, "zorder": 4}
    axes.plot(row.published, place, "D", label="published value", **value)


def alternative_text(rows: Sequence[PublishedRowValues], score: str) -> str:
    """Describe each published value beside our mean and prediction interval."""
    texts = []
    for row in rows:
        ends = ""
        if row.prediction is not None and row.prediction.half_width is not None:
            ends = f", predicted {row.prediction.low:.2f} to {row.prediction.high:.2f}"
        texts.append(f"{row.name} {row.published:.2f}, ours {row.ours.mean:.2f}{ends}")
    return f"Published values of {score}: {'; '.join(texts)}."
