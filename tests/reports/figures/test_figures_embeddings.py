"""Figures of embedding spaces: t-SNE, similarities, spectra, and the retrieval gallery."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from reports.figures.embedding_map import embedding_map, tsne_places
from reports.figures.gallery import Neighbour, Retrieval, hardest_first, retrieval_gallery
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import BLUE, COLOURS, ORANGE, FigureError


@pytest.fixture(scope="module")
def clusters():
    generator = np.random.default_rng(0)
    centres = 4 * generator.normal(size=(5, 16))
    labels = np.repeat(np.arange(5), 12)
    return centres[labels] + 0.3 * generator.normal(size=(60, 16)), labels, centres


@pytest.fixture(scope="module")
def places(clusters):
    return tsne_places(clusters[0], clusters[2], seed=3)


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
    again = tsne_places(embeddings, proxies, seed=3)
    assert (again[0] == places[0]).all()
    assert tsne_places(embeddings * lengths, proxies, seed=3)[0] == pytest.approx(places[0], abs=1e-3)


def test_tsne_refuses_what_it_cannot_place():
    with pytest.raises(FigureError, match="at least four points, not 2"):
        tsne_places(np.ones((2, 3)))
    with pytest.raises(FigureError, match="finite"):
        tsne_places(np.full((9, 3), np.nan))


def test_the_map_draws_every_point_with_its_class_and_stars_in_its_colour(clusters, places):
    points, stars = places
    labels = clusters[1]
    names = [f"class {i}" for i in range(5)]
    figure = embedding_map(points, labels, stars[:3], np.array([4, 0, 9]), names)
    drawn = figure.axes[0].collections
    for index in range(5):
        own = next(one for one in drawn if one.get_label() == f"class {index}")
        np.testing.assert_allclose(own.get_offsets(), points[labels == index])
        assert to_hex(own.get_facecolor()[0]) == COLOURS[index].lower()
    proxies = next(one for one in drawn if len(one.get_offsets()) == 3)
    assert [to_hex(colour) for colour in proxies.get_facecolor()] == [COLOURS[4].lower(), COLOURS[0].lower(), "#ffffff"]
    said = figure.axes[0].get_xlabel()
    assert "60 images of 5 classes, 3 proxies" in said
    assert "only what lies close together means something" in said
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*names, "proxy"]


def test_many_classes_have_no_key_and_their_own_pairs_of_sign_and_colour():
    labels = np.repeat(np.arange(49), 2)
    figure = embedding_map(np.random.default_rng(0).normal(size=(98, 2)), labels)
    assert figure.legends == []
    looks = {(to_hex(one.get_facecolor()[0]), str(one.get_paths()[0].vertices)) for one in figure.axes[0].collections}
    assert len(looks) == 49
    assert "signs repeat" not in figure.axes[0].get_xlabel()
    more = embedding_map(np.zeros((50, 2)), np.arange(50))
    assert "50 classes, signs repeat" in more.axes[0].get_xlabel()


def test_the_map_refuses_labels_that_do_not_fit():
    with pytest.raises(FigureError, match="one label per point, not 3 for 4"):
        embedding_map(np.zeros((4, 2)), np.zeros(3))
    with pytest.raises(FigureError, match="2 classes but 1 names"):
        embedding_map(np.zeros((4, 2)), np.array([0, 0, 1, 1]), class_names=["only"])


def test_similarities_are_cosines_sorted_by_class():
    embeddings = np.array([[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]])
    panel = SimilarityPanel("A", embeddings, np.array([1, 0, 1]), np.array([[0.0, -5.0], [2.0, 0.0]]), np.array([1, 0]))
    half = 1 / np.sqrt(2)
    assert panel.similarities == pytest.approx(np.array([[1, 0], [0, -1], [half, -half]]))
    figure = similarity_heat_map([panel])
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), panel.similarities)
    assert image.get_clim() == (-1.0, 1.0)
    frames = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in figure.axes[0].patches]
    assert frames == [(-0.5, -0.5, 1, 1), (0.5, 0.5, 1, 2)]
    assert figure.axes[0].get_xlabel() == "proxy, by class (n = 2)"
    assert figure.axes[0].get_ylabel() == "image, by class (n = 3)"


def test_panels_of_similarities_have_one_scale():
    eye = np.eye(3)
    first = SimilarityPanel("A", eye, np.arange(3), eye, np.arange(3))
    second = SimilarityPanel("B", eye, np.arange(3), 1 - eye, np.arange(3))
    figure = similarity_heat_map([first, second], limits=(0.0, 1.0))
    assert {axes.images[0].get_clim() for axes in figure.axes[:2]} == {(0.0, 1.0)}
    assert figure.axes[2].get_ylabel() == "cosine similarity"


def test_similarities_refuse_shapes_that_do_not_fit():
    with pytest.raises(FigureError, match="'A': one label per embedding"):
        similarity_heat_map([SimilarityPanel("A", np.eye(3), np.arange(2), np.eye(3), np.arange(3))])
    with pytest.raises(FigureError, match="differ in dimensions"):
        similarity_heat_map([SimilarityPanel("A", np.eye(3), np.arange(3), np.eye(2), np.arange(2))])


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


def picture(value):
    return np.full((6, 5, 3), value, dtype=np.uint8)


EASY = Retrieval(picture(1), "wren", 0.9, (Neighbour(picture(2), "wren"),))
HARD = Retrieval(picture(3), "gull", 0.1, (Neighbour(picture(4), "tern"), Neighbour(picture(5), "gull")))


def test_the_hardest_class_comes_first():
    assert hardest_first([EASY, HARD]) == [HARD, EASY]


def test_the_gallery_frames_right_and_wrong_by_colour_line_and_sign():
    figure = retrieval_gallery([EASY, HARD])
    query, wrong, right, *second_row = figure.axes
    assert [axes.images[0].get_array()[0, 0, 0] for axes in (query, wrong, right)] == [3, 4, 5]
    looks = [
        (to_hex(axes.spines["left"].get_edgecolor()), axes.spines["left"].get_linestyle(), axes.texts[0].get_text())
        for axes in (wrong, right)
    ]
    assert looks[0][0] == ORANGE.lower()
    assert looks[1][0] == BLUE.lower()
    assert looks[0][1] != looks[1][1]
    assert wrong.spines["left"].get_capstyle() == "butt", "other ends fill the gaps of a dashed line"
    assert (looks[0][2], looks[1][2]) == ("✗", "✓")
    assert len(query.texts) == 0
    assert query.get_ylabel() == "MAP@R 10.0 %"
    assert [axes.get_xlabel() for axes in (query, wrong, right)] == ["gull", "tern", "gull"]
    assert not second_row[2].axison, "a row of fewer neighbours ends early"


def test_the_gallery_takes_grey_images_and_refuses_floats():
    grey = Retrieval(np.zeros((4, 4), dtype=np.uint8), "a", 0.5, (Neighbour(np.zeros((4, 4), dtype=np.uint8), "a"),))
    assert len(retrieval_gallery([grey]).axes) == 2
    bad = Retrieval(np.zeros((4, 4)), "a", 0.5, grey.neighbours)
    with pytest.raises(FigureError, match="not float64 of shape"):
        retrieval_gallery([bad])
    with pytest.raises(FigureError, match="at least one query"):
        retrieval_gallery([])
