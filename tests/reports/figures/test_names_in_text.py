"""Names in any script: no figure draws a box for a letter, and every name can be read beside it."""

import warnings

import numpy as np
import pytest

from reports.figures.embedding_map import embedding_map
from reports.figures.gallery import Neighbour, Retrieval, retrieval_gallery
from reports.figures.intervals import MethodRuns, interval_plot
from reports.figures.names_in_text import is_drawable, names_in_text, names_words
from reports.figures.style import new_figure, png_of, styled, svg_of
from reports.page.sections.drawn_figure import drawn
from results.statistics.intervals import student_t_interval

FOREIGN = ["日本語", "العربية", "हिन्दी", "ไทย", "한국어", "עברית", "👩\u200d🔬", "很长的名字" * 12]
PLAIN = ["Ελληνικά", "Українська", "Tiếng Việt", "x_y", "a" * 60]
PIXELS = np.zeros((4, 4, 3), np.uint8)


def interval_figure(names):
    values = (0.5, 0.51, 0.52)
    return interval_plot([MethodRuns(name, values, student_t_interval(values)) for name in names], "MAP@R")


def map_figure(names):
    labels = np.repeat(np.arange(len(names)), 2)
    return embedding_map(np.random.default_rng(0).normal(size=(len(labels), 2)), labels, names=names)


def gallery_figure(names):
    return retrieval_gallery([Retrieval(PIXELS, name, 0.5, (Neighbour(PIXELS, names[0], True),)) for name in names])


FIGURES = {"ticks": interval_figure, "key": map_figure, "gallery": gallery_figure}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_every_name_is_drawn_or_in_the_text(draw):
    (one,) = drawn("name", "title", lambda: draw([*FOREIGN, *PLAIN]), lambda: "alternative", "Caption.")
    assert one.view.caption.startswith("Caption. [1] is ")
    assert all(name in one.view.caption for name in FOREIGN)
    assert not any(name in one.view.caption for name in PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Matplotlib warns of a letter that its font lacks.
        figure = draw([*FOREIGN, *PLAIN])
        assert len(names_in_text(figure)) == len(FOREIGN)
        svg_of(figure)
        png_of(figure)


def test_names_of_a_file_without_a_place_on_the_page_are_in_a_file_beside_it(tmp_path):
    (one,) = drawn("gallery", "title", lambda: gallery_figure(["日本語", "x"]), str, on_page=False)
    assert one.save(tmp_path) == ["gallery.svg", "gallery.png", "gallery.txt"]
    assert (tmp_path / "gallery.txt").read_text(encoding="utf-8") == "[1] is 日本語.\n"
    (plain,) = drawn("gallery", "title", lambda: gallery_figure(["x", "y"]), str, on_page=False)
    assert plain.save(tmp_path) == ["gallery.svg", "gallery.png"]


@styled
def titled(*texts):
    figure = new_figure(1)
    for text, axes in zip(texts, figure.subplots(1, len(texts), squeeze=False)[0], strict=True):
        axes.set_title(text)
    return figure


def test_equal_names_have_one_number_and_other_words_stay():
    figure = titled("日本 cat: run 2", "日本", "a 日本 猫, b")
    assert names_in_text(figure) == {"[1]": "日本", "[2]": "日本 猫"}
    assert [axes.get_title() for axes in figure.axes] == ["[1] cat: run 2", "[1]", "a [2], b"]
    assert names_words({}) == names_words(names_in_text(titled("plain"))) == ""


def test_what_the_font_has_is_drawable():
    assert [name for name in FOREIGN if is_drawable(name)] == []
    assert [name for name in PLAIN if not is_drawable(name)] == []
