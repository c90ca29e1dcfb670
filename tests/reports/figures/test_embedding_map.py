"""The t-SNE map of embeddings, with proxies."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info, threadpool_limits

from reports.figures.embedding_map import (
    MapPanel,
    embedding_map,
    tsne_panel,
    tsne_places,
)
from reports.figures.style import COLOURS, FigureError


@pytest.fixture(scope="module")
def clusters():
    generator = np.random.default_rng(0)
    centres = 4 * generator.normal(size=(5, 16))
    labels = np.repeat(np.arange(5), 12)
    return centres[labels] + 0.3 * generator.normal(size=(60, 16)), labels, centres, np.arange(5)


@pytest.fixture(scope="module")
def panel(clusters):
    return tsne_panel(*clusters)


def test_tsne_keeps_neighbours_and_puts_proxies_among_their_class(panel):
    distances = np.linalg.norm(panel.places[:, None] - panel.places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (panel.labels[distances.argmin(axis=1)] == panel.labels).mean() > 0.95
    to_stars = np.linalg.norm(panel.proxy_places[:, None] - panel.places[None], axis=2)
    assert (panel.labels[to_stars.argmin(axis=1)] == panel.proxy_labels).all()


def test_tsne_of_one_seed_is_the_same_and_ignores_lengths(clusters, panel):
    embeddings, *others = clusters
    assert (tsne_panel(*clusters).places == panel.places).all()
    longer = embeddings * np.linspace(0.5, 2, len(embeddings))[:, None]
    assert tsne_panel(longer, *others).places == pytest.approx(panel.places, abs=1e-3)


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


def test_the_map_draws_every_point_with_its_class_and_proxies_in_its_shape_and_colour(panel):
    shown = MapPanel(panel.places, panel.labels, panel.proxy_places[:3], np.array([4, 0, 9]))
    figure = embedding_map(shown)
    drawn = figure.axes[0].collections
    for index in range(5):
        own = next(one for one in drawn if one.get_label() == str(index))
        np.testing.assert_allclose(own.get_offsets(), panel.places[panel.labels == index])
        assert to_hex(own.get_facecolor()[0]) == COLOURS[index].lower()
    of_0, of_4, without_class = [part for part in drawn if len(part.get_offsets()) == 1]
    for proxy, index, colour in ((of_4, 4, COLOURS[4]), (of_0, 0, COLOURS[0]), (without_class, None, "#ffffff")):
        assert to_hex(proxy.get_facecolor()[0]) == colour.lower()
        images = [part for part in drawn if part.get_label() == str(index)]
        shape = proxy.get_paths()[0].vertices.tolist()
        assert [part.get_paths()[0].vertices.tolist() for part in images] == [shape] * len(images)
        assert all(proxy.get_sizes()[0] > 2 * part.get_sizes()[0] for part in images)
    assert "60 images of 5 classes, 3 proxies" in figure.axes[0].get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*"01234", "proxy, in the sign of its class"]


@pytest.mark.parametrize("classes", [2, 21])
def test_the_key_has_every_class_by_name_inside_the_figure(classes):
    names = ["c0", "CLASS 1 OF A RATHER LONG NAME, 1", *(f"c{number}" for number in range(2, classes))]
    labels = np.repeat(10 * np.arange(classes), 3)
    figure = embedding_map(MapPanel(np.random.default_rng(0).normal(size=(len(labels), 2)), labels), names)
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ["c0", "CLASS 1 O…NG NAME, 1", *names[2:]]
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().x1 <= figure.bbox.x1
