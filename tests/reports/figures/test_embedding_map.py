"""The t-SNE map of embeddings, with proxies."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info, threadpool_limits

from reports.figures.embedding_map import MapPanel, class_look, embedding_map, map_panels, tsne_places
from reports.figures.style import COLOURS, FigureError


@pytest.fixture(scope="module")
def clusters():
    generator = np.random.default_rng(0)
    centres = 4 * generator.normal(size=(5, 16))
    labels = np.repeat(np.arange(5), 12)
    return centres[labels] + 0.3 * generator.normal(size=(60, 16)), labels, centres


@pytest.fixture(scope="module")
def places(clusters):
    return tsne_places(clusters[0], clusters[2])


def test_tsne_keeps_neighbours_and_puts_proxies_among_their_class(clusters, places):
    _, labels, _ = clusters
    points, stars = places
    assert points.shape == (60, 2)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.95
    to_stars = np.linalg.norm(stars[:, None] - points[None], axis=2)
    assert (labels[to_stars.argmin(axis=1)] == np.arange(5)).all()


def test_tsne_of_one_seed_is_the_same_and_ignores_lengths(clusters, places):
    embeddings, _, proxies = clusters
    lengths = np.linspace(0.5, 2, len(embeddings))[:, None]
    again = tsne_places(embeddings, proxies)
    assert (again[0] == places[0]).all()
    assert tsne_places(embeddings * lengths, proxies)[0] == pytest.approx(places[0], abs=1e-3)


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


def test_the_map_draws_every_point_with_its_class_and_proxies_in_its_shape_and_colour(clusters, places):
    points, stars = places
    labels = clusters[1]
    figure = embedding_map(points, labels, stars[:3], np.array([4, 0, 9]))
    drawn = figure.axes[0].collections
    for index in range(5):
        own = next(one for one in drawn if one.get_label() == str(index))
        np.testing.assert_allclose(own.get_offsets(), points[labels == index])
        assert to_hex(own.get_facecolor()[0]) == COLOURS[index].lower()
    of_0, of_4, without_class = [part for part in drawn if len(part.get_offsets()) == 1]
    for proxy, index, colour in ((of_4, 4, COLOURS[4]), (of_0, 0, COLOURS[0]), (without_class, None, "#ffffff")):
        assert to_hex(proxy.get_facecolor()[0]) == colour.lower()
        images = [part for part in drawn if part.get_label() == str(index)]
        shape = proxy.get_paths()[0].vertices.tolist()
        assert [part.get_paths()[0].vertices.tolist() for part in images] == [shape] * len(images)
        assert all(proxy.get_sizes()[0] > 2 * part.get_sizes()[0] for part in images)
    said = figure.axes[0].get_xlabel()
    assert "60 images of 5 classes, 3 proxies" in said
    assert "only small distances have a meaning" in said
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*"01234", "proxy, in the sign of its class"]


def test_many_classes_have_no_key_and_no_markers():
    labels = np.repeat(np.arange(49), 2)
    panel = MapPanel("a", np.random.default_rng(0).normal(size=(98, 2)), labels, np.zeros((49, 2)), np.arange(49))
    images, stars = map_panels([panel], 2).axes[0].collections
    assert len({to_hex(colour) for colour in images.get_facecolor()}) == 49
    assert len(stars.get_offsets()) == 49
    assert embedding_map(panel.places, labels).legends == []


def test_panels_stand_side_by_side_with_lines_to_the_next_proxies():
    labels = np.array([0, 0, 1, 1])
    near = np.array([[0.5, 0.5], [-0.5, -0.5]])
    panel = MapPanel("(a) before", np.zeros((4, 2)), labels, near, np.array([0, 1]), near + 0.1)
    figure = map_panels([panel, panel, panel], 2, "a note", unit_disk=True)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a) before"] * 3 + [""]
    np.testing.assert_allclose([line.get_xydata()[1] for line in figure.axes[0].lines], near + 0.1)
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ["proxy, in the sign of its class", "proxy of the next problem"]
    with pytest.raises(FigureError, match="at least one map"):
        map_panels([], 2)


def test_the_map_refuses_labels_that_do_not_fit():
    with pytest.raises(FigureError, match="one label per image"):
        embedding_map(np.zeros((4, 2)), np.zeros(3))
    with pytest.raises(FigureError, match="at least one image"):
        MapPanel("a", np.empty((0, 2)), np.empty(0))


def test_14_classes_differ_without_colour():
    looks = {(look["marker"], look.get("facecolors")) for look in map(class_look, range(14))}
    assert len(looks) == 14


@pytest.mark.parametrize("classes", [2, 12, 21])
def test_the_key_has_every_class_by_name(classes):
    names = [
        f"class {number} of a rather long name, {number}" if number == 1 else f"c{number}" for number in range(classes)
    ]
    labels = np.repeat(10 * np.arange(classes), 3)
    figure = embedding_map(np.random.default_rng(0).normal(size=(len(labels), 2)), labels, names=names)
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ["c0", "class 1 of …long name, 1", *names[2:]]
    drawn = {one.get_label(): one for one in figure.axes[0].collections}
    assert len(drawn["c0"].get_offsets()) == 3
