"""Maps of embeddings side by side."""

import numpy as np
import pytest

from reports.figures.map_panels import MARKED, MapPanel, map_panels, tsne_panel
from reports.figures.style import FigureError, svg_of

RANDOM = np.random.default_rng(0)


def panel(classes: int, per_class: int = 3, **more) -> MapPanel:
    labels = np.repeat(np.arange(classes), per_class)
    places = RANDOM.normal(size=(len(labels), 2))
    stars = RANDOM.normal(size=(classes, 2))
    return MapPanel(f"{classes} classes", places, labels, stars, np.arange(classes), **more)


def test_every_panel_has_its_title_and_all_its_points():
    figure = map_panels([panel(4), panel(30), panel(5)], columns=2, note="a note")
    shown = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in shown] == ["4 classes", "30 classes", "5 classes"]
    counts = [sum(len(part.get_offsets()) for part in axes.collections) for axes in shown]
    assert counts == [4 * 3 + 4, 30 * 3 + 30, 5 * 3 + 5]
    assert figure.get_supxlabel() == "a note"
    assert svg_of(figure) == svg_of(figure)


def test_few_classes_have_colours_of_their_own_and_proxies_in_the_same_shape_and_colour():
    few = panel(MARKED)
    axes = map_panels([few], columns=1).axes[0]
    # One group of points per class, then the proxy of each class.
    drawn = [part for part in axes.collections if len(part.get_offsets())]
    groups, proxies = drawn[:MARKED], drawn[MARKED:]
    assert len(groups) == len(proxies) == MARKED
    looks = {(tuple(part.get_edgecolor()[0]), part.get_paths()[0].vertices.tobytes()) for part in groups}
    assert len(looks) == MARKED
    for group, proxy in zip(groups, proxies, strict=True):
        np.testing.assert_allclose(group.get_edgecolor()[0][:3], proxy.get_edgecolor()[0][:3])
        np.testing.assert_allclose(group.get_paths()[0].vertices, proxy.get_paths()[0].vertices)
    assert len({tuple(proxy.get_facecolor()[0]) for proxy in proxies[7:14]}) == 1, "hollow, as the images of the class"


def test_the_key_names_only_the_signs_that_are_drawn():
    def names(*panels: MapPanel) -> list[str]:
        return [text.get_text() for key in map_panels(panels, columns=2).legends for text in key.get_texts()]

    images = MapPanel("images", RANDOM.normal(size=(4, 2)), np.arange(4))
    following = panel(3, next_places=RANDOM.normal(size=(3, 2)))
    assert names(images) == []
    assert names(images, panel(30)) == ["proxy"]
    assert names(following) == ["proxy, in the sign of its class", "proxy of the next problem"]


def test_places_and_labels_must_fit():
    bad = MapPanel("bad", np.zeros((3, 2)), np.arange(2))
    with pytest.raises(FigureError, match="one label per image"):
        map_panels([bad], columns=1)
    with pytest.raises(FigureError, match="at least one map"):
        map_panels([], columns=1)


def test_a_panel_by_t_sne_places_images_and_proxies_together():
    embeddings = RANDOM.normal(size=(12, 5))
    labels = np.repeat(np.arange(4), 3)
    made = tsne_panel("t", embeddings, labels, embeddings[:4], np.arange(4))
    assert made.places.shape == (12, 2)
    assert made.proxy_places.shape == (4, 2)
    assert tsne_panel("t", embeddings, labels, np.empty((0, 5)), np.empty(0, int)).proxy_places.shape == (0, 2)
