"""Figures of a page: drawn where there are data, with the reason where they cannot be drawn, and small."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from reports.figures.intervals import interval_plot
from reports.page.drawn_figure import compact_svg, drawn, thumbnail_uri
from reports.page.embedding_figures import embedding_figures, galleries
from reports.page.material import Material
from reports.page.run_figures import run_figures
from tests.support.drawn import method_runs
from tests.support.measured_experiment import with_trainings
from tests.support.page_material import A, B, C, figure_data, material, search, values
from tests.support.published_world import MLRC, changed
from tests.support.sample_records import some_summary

EQUAL = np.ones((40, 8), np.float32)
COLLAPSED = replace(figure_data(), test_embeddings=EQUAL, train_embeddings=EQUAL, proxies=EQUAL[:4])


def test_figures_are_drawn_where_there_are_data_and_nowhere_else():
    runs = values(a=A, b=B, c=C)
    assert [one.name for one in run_figures(material(runs))] == ["intervals"]
    whole = material(
        runs,
        figure_data={"a": figure_data(), "b": figure_data(False)},
        searches={"a": search("x", "y"), "b": search("x")},
    )
    figures = [*run_figures(whole), *embedding_figures(whole)]
    assert [one.name for one in figures] == [
        *("intervals", "search_a_history", "search_a_contour", "search_b_history"),
        *("tsne_test_a", "tsne_test_b", "tsne_proxies_a", "spectrum", "gallery_a"),
    ]
    assert all(one.svg.startswith("<?xml") and one.png.startswith(b"\x89PNG") for one in figures)
    assert [gallery.title for gallery in galleries(whole)] == ["A", "B"]


def test_maps_of_a_collapsed_model_say_so_and_those_of_other_models_are_drawn(tmp_path):
    world = material(values(a=A, b=B), figure_data={"a": COLLAPSED, "b": figure_data()})
    figures = {figure.name: figure for figure in embedding_figures(world)}
    for name in ("tsne_test_a", "tsne_proxies_a"):
        assert figures[name].caption.startswith("This figure cannot be drawn: all embeddings are equal: the model has")
        assert (figures[name].image, figures[name].save(tmp_path)) == ("", [])
    assert figures["tsne_test_b"].save(tmp_path) == ["tsne_test_b.svg", "tsne_test_b.png"]
    zero = replace(COLLAPSED, spectrum=np.zeros(8, np.float32))
    (spectrum,) = [f for f in embedding_figures(material(values(a=A), figure_data={"a": zero})) if f.name == "spectrum"]
    assert spectrum.caption.startswith("This figure cannot be drawn: the spectrum of 'A' needs")


def test_recorded_test_scores_are_drawn_in_the_metric_of_the_papers_code():
    def title(**settings):
        world = with_trainings()
        summary = some_summary(methods=world.summary.methods, settings={**MLRC, **settings})
        figures = run_figures(Material("some", replace(world, summary=summary)))
        return next(one for one in figures if one.name == "test_curves").title

    assert title() == "Test MAP@R during the trainings"
    assert title(peeking_metric="precision_at_1") == "Test P@1 during the trainings"


def test_panels_that_differ_in_batch_size_alone_are_drawn_together():
    def panel(size, **changes):
        settings = changed(MLRC, training={"batch_size": size}, **changes)
        return material(values(a=A, b=B), settings=settings).measured

    panels = {"16": panel(16), "32": panel(32), "other": panel(64, embedding_size=64)}
    assert "batch_size" in [one.name for one in run_figures(Material("file/16", panels["16"], panels=panels))]
    del panels["32"]
    assert "batch_size" not in [one.name for one in run_figures(Material("file/16", panels["16"], panels=panels))]


def decoded(uri):
    head, content = uri.split(",", 1)
    return head, base64.b64decode(content)


def test_thumbnails_average_blocks_of_pixels_and_small_and_thin_images_stay():
    image = np.arange(8 * 4, dtype=np.uint8).reshape(8, 4)
    head, content = decoded(thumbnail_uri(image, side=4))
    assert head == "data:image/png;base64"
    pixels = np.rint(255 * imread(io.BytesIO(content))[..., :3]).astype(int)
    expected = image.reshape(4, 2, 2, 2).mean(axis=(1, 3)).round()
    assert (pixels == expected[..., None]).all()
    for shape in ((32, 32, 3), (400, 1, 3)):
        image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        pixels = np.rint(255 * imread(io.BytesIO(decoded(thumbnail_uri(image))[1]))[..., :3]).astype(int)
        assert (pixels == image).all()


def test_figures_come_as_svg_until_they_have_too_many_points():
    crowded = Figure()
    crowded.add_subplot().plot(np.random.default_rng(0).normal(size=10_000), "o")
    for figure, kind in ((interval_plot([method_runs("A", (0.5, 0.6))], "x"), "svg+xml"), (crowded, "png")):
        (one,) = drawn("x", "X", lambda figure=figure: figure, str)
        assert decoded(one.image)[0] == f"data:image/{kind};base64"


def test_a_shortened_svg_draws_the_same_text_and_lines():
    short = compact_svg(
        '<?xml version="1.0"?>\n<svg>\n <!-- 5 -->\n <g transform="translate(12.3456 7.891234) scale(0.015625)">\n'
        '  <path d="M 691 4666 \nL 3169.98765 -41 \nz\n" style="fill: none"/>\n </g>\n</svg>\n'
    )
    assert short == (
        '<svg><g transform="translate(12.34 7.891234) scale(0.015625)">'
        '<path d="M691 4666L3169.98 -41z" style="fill: none"/></g></svg>'
    )


def test_an_error_in_a_figure_that_is_no_lack_of_data_is_not_hidden():
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(drawn("x", "X", broken, str))
