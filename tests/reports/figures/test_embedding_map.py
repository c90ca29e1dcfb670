"""The t-SNE map of embeddings."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info, threadpool_limits

from reports.figures.embedding_map import (
    class_look,
    embedding_map,
    tsne_places,
)
from reports.figures.style import COLOURS, FigureError


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
