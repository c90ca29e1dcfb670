"""Figure of the singular values of embeddings (as in NIR, Fig. 4). They show how many directions a model uses."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reports.figures.style import GREY, FigureError, UndrawableError, legend_keys, new_figure, sign, styled

CAPTION = "Model of the first fold of run 1, all test images."


@styled
def singular_value_spectrum(spectra: Mapping[str, np.ndarray], width: float = 5.6) -> Figure:
    """Draw the singular values of each model as shares of their sum, largest first, on a logarithmic axis.

    The dotted line is a flat spectrum. A model uses more directions the closer its curve is to this line. A curve ends
    before its first value of 0.

    Args:
        spectra: Singular values of a model's embedding matrix, not negative, in any order, by the model's name.
    """
    for name, values in spectra.items():
        if not np.isfinite(values).all() or not values.size or values.min() < 0 or values.max() <= 0:
            raise UndrawableError(
                f"the spectrum of {name!r} needs at least one positive value and no negative or infinite value"
            )
    if not spectra:
        raise FigureError("the spectrum needs at least one model")
    figure = new_figure(3.4, width)
    axes = figure.add_subplot()
    for index, (name, values) in enumerate(spectra.items()):
        shares = _shares(values)
        shares = shares[shares > 0]
        places, spacing = np.arange(1, len(shares) + 1), max(1, len(shares) // 8)
        axes.plot(places, shares, label=f"{name} ({len(values)}-dim)", markevery=spacing, **sign(index))
    for size in sorted({len(values) for values in spectra.values()}):
        axes.plot([1, size], [1 / size, 1 / size], color=GREY, linestyle=":", linewidth=1, label="flat spectrum")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("singular value, from the largest")
    axes.set_ylabel("share of their sum")
    axes.grid()
    axes.legend(*legend_keys(axes))
    return figure


def _shares(values: np.ndarray) -> np.ndarray:
    falling = np.sort(values.astype(float))[::-1]
    shares: np.ndarray = falling / falling.sum()
    return shares
