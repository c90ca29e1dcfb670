"""Figures and galleries of what each method's first run left to look at.

t-SNE takes seconds and a gallery takes space, so both are made for a few methods: the best ones, and for proxies the
best ones that have any. Captions say which.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from reports.figures.embedding_map import embedding_map, tsne_places
from reports.figures.gallery import Neighbour, Retrieval, retrieval_gallery
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.page.content import Gallery, GalleryRow, Thumbnail
from reports.page.data_uris import thumbnail_uri
from reports.page.material import Material
from reports.page.sections.drawn_figure import Drawn, drawn, file_name
from reports.page.sections.wording import listed
from results.artifacts import Exhibit

MAPS, PANELS, SPECTRA, GALLERIES, GALLERY_FILES = 2, 3, 7, 4, 1
"""How many methods are shown, the best first: t-SNE of each kind, heat map, spectra, galleries, files of galleries."""

IMAGES_PER_CLASS = 30
"""Of each test class in a t-SNE of test images."""


def embedding_figures(material: Material) -> Iterator[Drawn]:
    """Maps of test images, maps of training images with proxies, heat map, spectra, galleries as files."""
    shown = [(key, material.exhibits[key]) for key in material.best_first if key in material.exhibits]
    trained = [(key, one) for key, one in shown if material.records[key][0].hyperparameters or len(one.proxies)]
    with_proxies = [(key, one) for key, one in trained if len(one.proxies)]
    for key, one in (trained or shown)[:MAPS]:
        yield from _test_map(material, key, one)
    for key, one in with_proxies[:MAPS]:
        yield from _proxy_map(material, key, one)
    yield from _heat_map(material, with_proxies)
    yield from _spectra(material, shown)
    for key, one in shown[:GALLERY_FILES]:
        if len(one.query_images):
            name = f"gallery_{file_name(key)}"
            yield from drawn(name, material.titles[key], partial(_retrievals, one), "", on_page=False)


def galleries(material: Material) -> tuple[Gallery, ...]:
    """The hardest test classes of the best methods' first runs."""
    shown = [key for key in material.best_first if key in material.exhibits][:GALLERIES]
    more = len([key for key in material.records if key in material.exhibits]) - len(shown)
    note = f" Shown for the {len(shown)} best methods." if more > 0 else ""
    made = [_gallery(material.titles[key], material.exhibits[key], note) for key in shown]
    return tuple(gallery for gallery in made if gallery.rows)


def _test_map(material: Material, key: str, one: Exhibit) -> Iterator[Drawn]:
    rows = np.concatenate([np.flatnonzero(one.test_labels == c)[:IMAGES_PER_CLASS] for c in np.unique(one.test_labels)])
    embeddings, labels = one.test_embeddings[rows], one.test_labels[rows]
    title = f"{material.titles[key]}: images of test classes"
    yield from drawn(
        f"tsne_test_{file_name(key)}",
        title,
        lambda: embedding_map(tsne_places(embeddings)[0], labels),
        f"t-SNE of {len(rows)} embeddings of {len(np.unique(labels))} test classes.",
        f"First fold's model of run 0, up to {IMAGES_PER_CLASS} images of some test classes. Distances between groups "
        f"mean nothing in t-SNE. {_best_of(material, MAPS)}",
        "Embeddings of test images (t-SNE)",
    )


def _proxy_map(material: Material, key: str, one: Exhibit) -> Iterator[Drawn]:
    yield from drawn(
        f"tsne_proxies_{file_name(key)}",
        f"{material.titles[key]}: images of training classes with their proxies",
        lambda: embedding_map(
            *_interleaved(tsne_places(one.train_embeddings, one.proxies), one.train_labels), one.proxy_labels
        ),
        f"t-SNE of {len(one.train_embeddings)} training images with {len(one.proxies)} proxies.",
        "First fold's model of run 0, a few images of some training classes; a star has its class's colour. "
        f"{_best_of(material, MAPS, 'that have proxies')}",
        "Training images and proxies (t-SNE)",
    )


def _interleaved(
    places: tuple[np.ndarray, np.ndarray], labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return places[0], labels, places[1]


def _heat_map(material: Material, found: list[tuple[str, Exhibit]]) -> Iterator[Drawn]:
    shown = found[:PANELS]
    panels = [
        SimilarityPanel(material.titles[key], one.train_embeddings, one.train_labels, one.proxies, one.proxy_labels)
        for key, one in shown
    ]
    names = listed([panel.title for panel in panels]) if panels else ""
    yield from drawn(
        "similarity",
        "Cosine similarity between training images and proxies",
        lambda: similarity_heat_map(panels),
        f"Heat maps of the cosine between images and proxies of {names}.",
        f"First fold's model of run 0, images and proxies by class; frames are of one class. "
        f"{_best_of(material, PANELS, 'that have proxies')}",
    )


def _spectra(material: Material, found: list[tuple[str, Exhibit]]) -> Iterator[Drawn]:
    spectra = [Spectrum(material.titles[key], tuple(one.spectrum.tolist())) for key, one in found[:SPECTRA]]
    yield from drawn(
        "spectrum",
        "Singular values of the test embeddings",
        lambda: singular_value_spectrum(spectra),
        f"Shares of the singular values, from the largest, of {listed([one.name for one in spectra] or [''])}.",
        f"First fold's model of run 0, all test images. {_best_of(material, SPECTRA)}",
    )


def _best_of(material: Material, count: int, which: str = "") -> str:
    """Which methods are shown, where that is not all of them."""
    return (
        f"At most {count} methods{' ' + which if which else ''}, the best first." if len(material.records) > 1 else ""
    )


def _retrievals(one: Exhibit) -> Figure:
    rows = []
    for query, image in enumerate(one.query_images):
        neighbours = tuple(
            Neighbour(_plain(picture), str(name))
            for picture, name in zip(one.neighbour_images[query], one.neighbour_names[query], strict=True)
        )
        rows.append(Retrieval(_plain(image), str(one.class_names[query]), float(one.class_scores[query]), neighbours))
    return retrieval_gallery(rows)


def _plain(image: np.ndarray) -> np.ndarray:
    """Without the last axis where that holds nothing but grey."""
    return image[..., 0] if image.shape[-1] == 1 else image


def _gallery(title: str, one: Exhibit, note: str) -> Gallery:
    rows = []
    for query, image in enumerate(one.query_images):
        score = f"class MAP@R {100 * float(one.class_scores[query]):.1f} %"
        neighbours = tuple(
            Thumbnail(thumbnail_uri(picture), str(name), bool(right))
            for picture, name, right in zip(
                one.neighbour_images[query], one.neighbour_names[query], one.correct[query], strict=True
            )
        )
        rows.append(GalleryRow(Thumbnail(thumbnail_uri(image), str(one.class_names[query]), None, score), neighbours))
    caption = (
        "One image of each of the classes with the lowest MAP@R, and its nearest test images, nearest first, by the "
        f"concatenated embeddings of run 0. The hardest classes are chosen: this is no average.{note}"
    )
    return Gallery(f"{title}: hardest classes", tuple(rows), caption)
