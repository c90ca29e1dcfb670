"""Figures and galleries from the figure data of each method's first run.

t-SNE takes seconds and a gallery takes space, so both are made only for the best few methods. Figures with proxies are
made for the best few methods that have proxies. The captions name the limit.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np

from reports.figures import embedding_map, similarity, spectrum
from reports.figures.embedding_map import IMAGES_PER_CLASS, tsne_places
from reports.figures.gallery import retrieval_gallery, retrievals_of
from reports.figures.similarity import SimilarityPanel
from reports.figures.spectrum import Spectrum
from reports.figures.style import PAGE_WIDTH
from reports.page.content import Gallery, GalleryRow, Thumbnail
from reports.page.material import Material
from reports.page.render import thumbnail_uri
from reports.page.sections.drawn_figure import Drawn, drawn
from results.records.artifacts import FigureData
from results.whole_files import file_name

MAPS, PANELS, SPECTRA, GALLERIES, GALLERY_FILES = 2, 3, 7, 4, 1
"""Number of best methods that are shown: t-SNE of each kind, heat map, spectra, galleries, files of galleries."""

MethodData = Sequence[tuple[str, FigureData]]
"""Keys of methods with their figure data, the best method first."""


def map_figures(material: Material) -> Iterator[Drawn]:
    """Draw maps of test images, and maps of training images with proxies."""
    shown = _shown(material)
    trained = [(key, data) for key, data in shown if material.records[key][0].hyperparameters or len(data.proxies)]
    for key, data in (trained or shown)[:MAPS]:
        yield from _test_map(material, key, data)
    for key, data in _with_proxies(shown)[:MAPS]:
        yield from _proxy_map(material, key, data)


def embedding_figures(material: Material) -> Iterator[Drawn]:
    """Draw what needs no map: heat map, spectra, and galleries as files."""
    shown = _shown(material)
    yield from _heat_map(material, _with_proxies(shown)[:PANELS])
    yield from _spectra(material, shown[:SPECTRA])
    for key, data in shown[:GALLERY_FILES]:
        if retrievals := retrievals_of(data):
            draw = partial(retrieval_gallery, retrievals)
            yield from drawn(f"gallery_{file_name(key)}", material.titles[key], draw, str, on_page=False)


def galleries(material: Material) -> tuple[Gallery, ...]:
    """Build the galleries of the hardest test classes, from the first runs of the best methods."""
    shown = _shown(material)
    note = f" Only the {GALLERIES} best methods have a gallery." if len(shown) > GALLERIES else ""
    all_galleries = [_gallery(material.titles[key], data, note) for key, data in shown[:GALLERIES]]
    return tuple(gallery for gallery in all_galleries if gallery.rows)


def _shown(material: Material) -> list[tuple[str, FigureData]]:
    return [(key, material.figure_data[key]) for key in material.best_first if key in material.figure_data]


def _with_proxies(shown: MethodData) -> list[tuple[str, FigureData]]:
    return [(key, data) for key, data in shown if len(data.proxies)]


def _test_map(material: Material, key: str, data: FigureData) -> Iterator[Drawn]:
    classes = np.unique(data.test_labels)
    rows = np.concatenate([np.flatnonzero(data.test_labels == label)[:IMAGES_PER_CLASS] for label in classes])
    labels = data.test_labels[rows]
    places = cache(lambda: tsne_places(data.test_embeddings[rows])[0])
    yield from drawn(
        f"tsne_test_{file_name(key)}",
        f"{material.titles[key]}: images of test classes",
        lambda: embedding_map.embedding_map(places(), labels, names=data.test_names.tolist()),
        lambda: embedding_map.alternative_text(places(), labels),
        f"{embedding_map.CAPTION_OF_TEST_IMAGES} {_best_of(material, MAPS)}",
        "Embeddings of test images (t-SNE)",
    )


def _proxy_map(material: Material, key: str, data: FigureData) -> Iterator[Drawn]:
    labels, star_labels = data.train_labels, data.proxy_labels
    places = cache(lambda: tsne_places(data.train_embeddings, data.proxies))
    yield from drawn(
        f"tsne_proxies_{file_name(key)}",
        f"{material.titles[key]}: images of training classes with their proxies",
        lambda: embedding_map.embedding_map(places()[0], labels, places()[1], star_labels, data.train_names.tolist()),
        lambda: embedding_map.alternative_text_with_proxies(places()[0], labels, places()[1], star_labels),
        f"{embedding_map.CAPTION_OF_PROXIES} {_best_of(material, MAPS, ' that have proxies')}",
        "Training images and proxies (t-SNE)",
    )


def _heat_map(material: Material, shown: MethodData) -> Iterator[Drawn]:
    panels = [
        SimilarityPanel(material.titles[key], data.train_embeddings, data.train_labels, data.proxies, data.proxy_labels)
        for key, data in shown
    ]
    yield from drawn(
        "similarity",
        "Cosine similarity between training images and proxies",
        lambda: similarity.similarity_heat_map(panels, columns=1),
        lambda: similarity.alternative_text(panels),
        f"{similarity.CAPTION} {_best_of(material, PANELS, ' that have proxies')}",
    )


def _spectra(material: Material, shown: MethodData) -> Iterator[Drawn]:
    spectra = [Spectrum(material.titles[key], tuple(data.spectrum.tolist())) for key, data in shown]
    yield from drawn(
        "spectrum",
        "Singular values of the test embeddings",
        lambda: spectrum.singular_value_spectrum(spectra, PAGE_WIDTH),
        lambda: spectrum.alternative_text(spectra),
        f"{spectrum.CAPTION} {_best_of(material, SPECTRA)}",
    )


def _best_of(material: Material, count: int, which: str = "") -> str:
    several = len(material.records) > 1
    return f"At most {count} methods{which} are shown, the best first." if several else ""


def _gallery(title: str, data: FigureData, note: str) -> Gallery:
    rows = []
    for query in retrievals_of(data):
        score = f"class MAP@R {100 * query.class_score:.1f} %"
        neighbours = [Thumbnail(thumbnail_uri(one.image), one.class_name, one.right) for one in query.neighbours]
        rows.append(GalleryRow(Thumbnail(thumbnail_uri(query.image), query.class_name, None, score), tuple(neighbours)))
    caption = (
        "Each row shows an image of one of the classes with the lowest MAP@R, and its nearest test images, nearest "
        "first, by the concatenated embeddings of run 0. Only the hardest classes are shown. They are not typical."
        + note
    )
    return Gallery(f"{title}: hardest classes", tuple(rows), caption)
