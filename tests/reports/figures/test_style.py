"""The look that all figures share, and their files."""

from reports.figures.intervals import interval_plot
from reports.figures.style import COLOURS, png_of, sign, svg_of
from tests.support.drawn import RUNS, method_runs


def test_seven_series_differ_in_colour_marker_and_line():
    looks = [sign(index) for index in range(len(COLOURS))]
    for part in ("color", "marker", "linestyle"):
        assert len({str(look[part]) for look in looks}) == len(COLOURS)


def test_the_same_figure_gives_the_same_files():
    figures = [interval_plot([method_runs("Triplet", RUNS)], "x") for _ in range(2)]
    assert svg_of(figures[0]) == svg_of(figures[1])
    assert png_of(figures[0]) == png_of(figures[1])
    assert png_of(figures[0]).startswith(b"\x89PNG")
    assert "<text" not in svg_of(figures[0]), "letters are outlines, so no font is needed"


def test_signs_of_formulas_in_names_are_drawn_as_they_stand():
    figure = interval_plot([method_runs("costs $5 and_ $\\frac$", RUNS)], "x")
    assert "<svg" in svg_of(figure)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "costs $5 and_ $\\frac$\n(n\u00a0=\u00a03)"
