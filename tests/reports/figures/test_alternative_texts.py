"""Alternative texts say what is to be seen: values, order and shape."""

import numpy as np

from reports.figures import curves, dependence, embedding_map, intervals, spectrum
from reports.figures.curves import FoldCurve, MethodCurves
from reports.figures.dependence import DependencePanel
from reports.figures.spectrum import Spectrum
from reports.page.embedding_figures import embedding_figures
from reports.page.run_figures import run_figures
from tests.support.drawn import line, method_runs
from tests.support.page_material import A, B, C, figure_data, material, search, values


def test_means_are_named_from_the_highest_with_published_values():
    methods = [method_runs("low, first", (0.3, 0.32)), method_runs("high", (0.5,), 0.55)]
    text = intervals.alternative_text(methods)
    assert text.endswith("the highest first: high 50.00 %; low, first 31.00 ± 12.71 %. Published: high 55.00 %.")


def test_a_curve_has_a_start_a_highest_point_and_an_end():
    folds = (FoldCurve((10, 20, 30), (0.1, 0.5, 0.3), 20), FoldCurve((10, 20, 30), (0.2, 0.6, 0.4), 20))
    text = curves.alternative_text([MethodCurves("a", folds)], "Validation MAP@R")
    assert "a: 15.0 % after 10 iterations, highest 55.0 % after 20, 35.0 % at the end after 30." in text


def test_a_dependence_has_a_mean_for_each_number():
    panel = DependencePanel("glyphs", "batch size", (line("a", {32: (0.4, 0.6), 16: (0.3,)}),), "log2")
    assert (
        dependence.alternative_text([panel], "MAP@R")
        == "Mean MAP@R by batch size. a on glyphs: 16: 30.00 %, 32: 50.00 %."
    )


def test_maps_say_how_well_the_classes_are_apart():
    places = np.array([[0.0, 0], [0, 1], [9, 9], [9, 8], [0, 2], [5, 9]])
    labels = np.array([0, 0, 1, 1, 1, 1])
    assert "For 83 % of the points the nearest point is of the same class." in embedding_map.alternative_text(
        places, labels
    )
    stars = np.array([[0.0, 0], [9, 9]])
    text = embedding_map.alternative_text_with_proxies(places, labels, stars, np.array([0, 1]))
    assert "6 training images of 2 classes with 2 proxies. For 83 % of the images" in text


def test_spectra_are_summed_up():
    text = spectrum.alternative_text([Spectrum("a", (1.0, 4.0, 3.0, 2.0))])
    assert "a: the largest is 40.0 % of the sum, the largest 2 of 4 make half of it." in text


def test_every_figure_of_a_page_has_numbers_in_its_alternative_text():
    searches = {"a": search("x", "y")}
    world = material(values(a=A, b=B, c=C), figure_data={"a": figure_data()}, searches=searches)
    shown = [figure for figure in (*run_figures(world), *embedding_figures(world)) if figure.on_page]
    assert len(shown) > 5
    for figure in shown:
        assert sum(sign.isdigit() for sign in figure.alt) > 2, figure.name
