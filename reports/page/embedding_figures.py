"""Figures and galleries from the figure data of each method's first run.

t-SNE takes seconds and a gallery takes space, so both are made only for the best few methods.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from reports.figures import embedding_map, spectrum
from reports.figures.embedding_map import IMAGES_PER_CLASS, tsne_places
from reports.figures.gallery import retrieval_gallery, retrievals_of
from reports.figures.spectrum import Spectrum
from reports.figures.style import PAGE_WIDTH
from reports.page.drawn_figure import Drawn, drawn, thumbnail_uri
from reports.page.material import Material
from results.records.artifacts import FigureData
from results.whole_files import file_name

MAPS, SPECTRA, GALLERIES = 2, 7, 4
"""Number of best methods that are shown: t-SNE of each kind, spectra, galleries."""


class Thumbnail(NamedTuple):
    """A small image. `right`: whether its class is that of the query; None for the query itself."""

    image: str
    class_name: str
    right: bool | None = None


class Gallery(NamedTuple):
    """Queries of one model, each followed by its nearest neighbours, nearest first."""

    title: str
    rows: tuple[tuple[Thumbnail, ...], ...]


def embedding_figures(material: Material) -> Iterator[Drawn]:
    """Draw maps of test images, maps of training images with proxies, and spectra; a gallery as a file."""
    shown = _shown(material)
    trained = [key for key, data in shown.items() if material.records[key][0].hyperparameters or len(data.proxies)]
    for key in (trained or list(shown))[:MAPS]:
        yield from _test_map(material.titles[key], key, shown[key])
    for key in [key for key, data in shown.items() if len(data.proxies)][:MAPS]:
        yield from _proxy_map(material.titles[key], key, shown[key])
    spectra = [Spectrum(material.titles[key], tuple(data.spectrum.tolist())) for key, data in shown.items()][:SPECTRA]
    yield from drawn(
        "spectrum",
        "Singular values of the test embeddings",
        lambda: spectrum.singular_value_spectrum(spectra, PAGE_WIDTH),
        lambda: spectrum.alternative_text(spectra),
        spectrum.CAPTION,
    )
    for key, data in list(shown.items())[:1]:
        if retrievals := retrievals_of(data):
            draw = partial(retrieval_gallery, retrievals)
            yield from drawn(f"gallery_{file_name(key)}", material.titles[key], draw, str, on_page=False)


def galleries(material: Material) -> list[Gallery]:
    """Collect the images of the hardest test classes with their neighbours, for the best methods."""
    found = []
    for key, data in list(_shown(material).items())[:GALLERIES]:
        rows = []
        for query in retrievals_of(data):
            name = f"{query.class_name}, MAP@R {100 * query.class_score:.1f} %"
            neighbours = [Thumbnail(thumbnail_uri(one.image), one.class_name, one.right) for one in query.neighbours]
            rows.append((Thumbnail(thumbnail_uri(query.image), name), *neighbours))
        if rows:
            found.append(Gallery(material.titles[key], tuple(rows)))
    return found


def _shown(material: Material) -> dict[str, FigureData]:
    return {key: material.figure_data[key] for key in material.best_first if key in material.figure_data}


def _test_map(title: str, key: str, data: FigureData) -> Iterator[Drawn]:
    classes = np.unique(data.test_labels)
    rows = np.concatenate([np.flatnonzero(data.test_labels == label)[:IMAGES_PER_CLASS] for label in classes])
    labels = data.test_labels[rows]
    places = cache(lambda: tsne_places(data.test_embeddings[rows])[0])
    return drawn(
        f"tsne_test_{file_name(key)}",
        f"{title}: images of test classes",
        lambda: embedding_map.embedding_map(places(), labels, names=data.test_names.tolist()),
        lambda: embedding_map.alternative_text(places(), labels),
        embedding_map.CAPTION_OF_TEST_IMAGES,
        "Embeddings of test images (t-SNE)",
    )


def _proxy_map(title: str, key: str, data: FigureData) -> Iterator[Drawn]:
    labels, star_labels = data.train_labels, data.proxy_labels
    places = cache(lambda: tsne_places(data.train_embeddings, data.proxies))
    return drawn(
        f"tsne_proxies_{file_name(key)}",
        f"{title}: images of training classes with their proxies",
        lambda: embedding_map.embedding_map(places()[0], labels, places()[1], star_labels, data.train_names.tolist()),
        lambda: embedding_map.alternative_text_with_proxies(places()[0], labels, places()[1], star_labels),
        embedding_map.CAPTION_OF_PROXIES,
        "Training images and proxies (t-SNE)",
    )
