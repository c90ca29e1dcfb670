"""The spectrum of singular values."""

import pytest

from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import FigureError


def test_spectra_are_shares_from_the_largest():
    figure = singular_value_spectrum([Spectrum("PA", (1.0, 4.0, 0.0, 5.0)), Spectrum("NIR", (2.0, 2.0))])
    axes = figure.axes[0]
    first, second, *flat = axes.lines
    assert first.get_ydata() == pytest.approx([0.5, 0.4, 0.1])
    assert list(first.get_xdata()) == [1, 2, 3]
    assert second.get_ydata() == pytest.approx([0.5, 0.5])
    assert [line.get_ydata()[0] for line in flat] == pytest.approx([1 / 2, 1 / 4])
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["PA (4-dim)", "NIR (2-dim)", "flat spectrum"]


@pytest.mark.parametrize("values", [(), (0.0, 0.0), (1.0, -1.0)])
def test_spectra_refuse_what_no_matrix_has(values):
    with pytest.raises(FigureError, match="'PA'"):
        singular_value_spectrum([Spectrum("PA", values)])
