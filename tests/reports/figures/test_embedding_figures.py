"""Figures of embeddings: the t-SNE map, singular values, and the gallery of nearest neighbours."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info, threadpool_limits

from reports.figures.embedding_figures import (
    class_look,
    embedding_map,
    retrieval_gallery,
    singular_value_spectrum,
    tsne_places,
)
from reports.figures.style import BLUE, COLOURS, ORANGE, FigureError
from tests.support.page_material import figure_data


@pytest.fixture(scope="module")
def clusters():
    generator = np.random.default_rng(0)
    centres = 4 * generator.normal(size=(5, 16))
    labels = np.repeat(np.arange(5), 12)
    return centres[labels] + 0.3 * generator.normal(size=(60, 16)), labels


@pytest.fixture(scope="module")
def places(clusters):
    return tsne_places(clusters[0])


def test_tsne_keeps_neighbours(clusters, places):
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    _, labels = clusters
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.95


def test_tsne_of_one_seed_is_the_same_and_ignores_lengths(clusters, places):
    embeddings, _ = clusters
    assert (tsne_places(embeddings) == places).all()
    longer = embeddings * np.linspace(0.5, 2, len(embeddings))[:, None]
    assert tsne_places(longer) == pytest.approx(places, abs=1e-3)


def test_tsne_has_one_thread(clusters, monkeypatch):
    threads = []

    def counting_threads(projection, points):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return points[:, :2]

    monkeypatch.setattr(TSNE, "fit_transform", counting_threads)
    with threadpool_limits(limits=3):
        tsne_places(clusters[0])
        assert {pool["num_threads"] for pool in threadpool_info()} == {3}
    assert set(threads) == {1}


def test_tsne_refuses_what_it_cannot_place():
    with pytest.raises(FigureError, match="at least four points, not 2"):
        tsne_places(np.ones((2, 3)))
    with pytest.raises(FigureError, match="finite"):
        tsne_places(np.full((9, 3), np.nan))


def test_the_map_draws_every_point_with_its_class(clusters, places):
    _, labels = clusters
    figure = embedding_map(places, labels)
    drawn = figure.axes[0].collections
    for index in range(5):
        own = next(one for one in drawn if one.get_label() == str(index))
        np.testing.assert_allclose(own.get_offsets(), places[labels == index])
        assert to_hex(own.get_facecolor()[0]) == COLOURS[index].lower()
    assert "60 images of 5 classes" in figure.axes[0].get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*"01234"]


def test_49_classes_differ_in_colour_or_marker_and_have_no_key():
    assert len({tuple(class_look(index).values()) for index in range(49)}) == 49
    labels = np.repeat(np.arange(49), 2)
    assert embedding_map(np.random.default_rng(0).normal(size=(98, 2)), labels).legends == []


@pytest.mark.parametrize("classes", [2, 21])
def test_the_key_has_every_class_by_name_inside_the_figure(classes):
    names = ["c0", "CLASS 1 OF A RATHER LONG NAME, 1", *(f"c{number}" for number in range(2, classes))]
    labels = np.repeat(10 * np.arange(classes), 3)
    figure = embedding_map(np.random.default_rng(0).normal(size=(len(labels), 2)), labels, names)
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ["c0", "CLASS 1 O…NG NAME, 1", *names[2:]]
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().x1 <= figure.bbox.x1


def test_spectra_are_shares_from_the_largest():
    figure = singular_value_spectrum({"PA": np.array([1.0, 4.0, 0.0, 5.0]), "NIR": np.array([2.0, 2.0])})
    first, second, *flat = figure.axes[0].lines
    assert first.get_ydata() == pytest.approx([0.5, 0.4, 0.1])
    assert list(first.get_xdata()) == [1, 2, 3]
    assert second.get_ydata() == pytest.approx([0.5, 0.5])
    assert [line.get_ydata()[0] for line in flat] == pytest.approx([1 / 2, 1 / 4])
    for values in ((), (0.0, 0.0), (1.0, -1.0)):
        with pytest.raises(FigureError, match="'PA'"):
            singular_value_spectrum({"PA": np.array(values)})


def pictures(*values):
    """Images of 6 x 5 pixels that show one value each."""
    return np.stack([np.full((6, 5, 3), value, np.uint8) for value in values])


# A query of an easy class, then one of a hard class.
BIRDS = replace(
    figure_data(),
    query_images=pictures(1, 3),
    class_names=np.array(["wren", "gull"]),
    class_scores=np.array([0.9, 0.1]),
    neighbour_images=np.stack([pictures(2, 6), pictures(4, 5)]),
    neighbour_names=np.array([["wren", "wren"], ["tern", "gull"]]),
    correct=np.array([[True, True], [False, True]]),
)


def axes_of(data, queries=2, neighbours=2):
    return retrieval_gallery(data, queries, neighbours).axes[0]


def test_the_gallery_frames_right_and_wrong_by_colour_line_and_sign():
    axes = axes_of(BIRDS)
    order = [int(image.get_array()[0, 0, 0]) for image in axes.images]
    assert order == [3, 4, 5, 1, 2, 6], "hardest first, query first"
    frames = dict(zip(order, axes.patches, strict=True))
    query, wrong, right = frames[3], frames[4], frames[5]
    assert to_hex(wrong.get_edgecolor()) == ORANGE.lower()
    assert to_hex(right.get_edgecolor()) == BLUE.lower()
    assert wrong.get_linestyle() != right.get_linestyle()
    assert wrong.get_capstyle() == "butt", "other ends fill the gaps of a dashed line"
    texts = [text.get_text() for text in axes.texts]
    assert texts[:9] == ["query", "1", "2", "MAP@R 10.0 %", "gull", "tern", "✗", "gull", "✓"]
    marked = [text for text in axes.texts if text.get_text() in "✗✓"]
    for mark, frame in zip(marked, (wrong, right, frames[2], frames[6]), strict=True):
        assert frame.get_bbox().contains(*mark.get_position())
    assert query.get_bbox().x0 == frames[1].get_bbox().x0
    assert query.get_bbox().y1 < frames[1].get_bbox().y0, "rows do not overlap"


def test_queries_and_neighbours_can_be_limited_and_grey_images_are_taken():
    assert len(axes_of(figure_data()).images) == 6, "grey images have a last axis of one"
    assert [int(image.get_array()[0, 0, 0]) for image in axes_of(BIRDS, 1, 1).images] == [1, 2]
    with pytest.raises(FigureError, match="at least one query"):
        axes_of(replace(BIRDS, query_images=BIRDS.query_images[:0]))
