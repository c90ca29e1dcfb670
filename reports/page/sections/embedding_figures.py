"""Figures and galleries from the exhibits of each method's first run.

t-SNE takes seconds and a gallery takes space, so both are made only for the best few methods. Figures with proxies are
made for the best few methods that have proxies. The captions name the limit.
"""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from reports.figures.embedding_map import embedding_map, tsne_places
from reports.figures.gallery import retrieval_gallery, retrievals_of
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import PAGE_WIDTH
from reports.page.content import Gallery, GalleryRow, Thumbnail
from reports.page.material import Material
from reports.page.render import thumbnail_uri
from reports.page.sections.alternative_texts import of_map, of_proxy_map, of_similarities, of_spectra
from reports.page.sections.drawn_figure import Drawn, drawn
from results.records.artifacts import Exhibit
from results.whole_files import file_name

MAPS, PANELS, SPECTRA, GALLERIES, GALLERY_FILES = 2, 3, 7, 4, 1
"""Number of best methods that are shown: t-SNE of each kind, heat map, spectra, galleries, files of galleries."""

IMAGES_PER_CLASS = 30
"""Largest number of images of a test class in a t-SNE of test images."""


def map_figures(material: Material) -> Iterator[Drawn]:
    """Draw maps of test images, and maps of training images with proxies."""
    shown, with_proxies = _with_exhibits(material)
    trained = [
        (key, exhibit) for key, exhibit in shown if material.records[key][0].hyperparameters or len(exhibit.proxies)
    ]
    for key, exhibit in (trained or shown)[:MAPS]:
        yield from _test_map(material, key, exhibit)
    for key, exhibit in with_proxies[:MAPS]:
        yield from _proxy_map(material, key, exhibit)


def embedding_figures(material: Material) -> Iterator[Drawn]:
    """Draw what needs no map: heat map, spectra, and galleries as files."""
    shown, with_proxies = _with_exhibits(material)
    yield from _heat_map(material, with_proxies)
    yield from _spectra(material, shown)
    for key, exhibit in shown[:GALLERY_FILES]:
        if retrievals := retrievals_of(exhibit):
            name = f"gallery_{file_name(key)}"
            draw = partial(retrieval_gallery, retrievals)
            yield from drawn(name, material.titles[key], draw, str, on_page=False)


def _with_exhibits(material: Material) -> tuple[list[tuple[str, Exhibit]], list[tuple[str, Exhibit]]]:
    shown = [(key, material.exhibits[key]) for key in material.best_first if key in material.exhibits]
    return shown, [(key, exhibit) for key, exhibit in shown if len(exhibit.proxies)]


def galleries(material: Material) -> tuple[Gallery, ...]:
    """Build the galleries of the hardest test classes, from the first runs of the best methods."""
    shown = [key for key in material.best_first if key in material.exhibits][:GALLERIES]
    more = len([key for key in material.records if key in material.exhibits]) - len(shown)
    note = f" Only the {len(shown)} best methods have a gallery." if more > 0 else ""
    all_galleries = [_gallery(material.titles[key], material.exhibits[key], note) for key in shown]
    return tuple(gallery for gallery in all_galleries if gallery.rows)


def _test_map(material: Material, key: str, exhibit: Exhibit) -> Iterator[Drawn]:
    all_labels = exhibit.test_labels
    rows = np.concatenate([np.flatnonzero(all_labels == label)[:IMAGES_PER_CLASS] for label in np.unique(all_labels)])
    embeddings, labels = exhibit.test_embeddings[rows], all_labels[rows]
    title = f"{material.titles[key]}: images of test classes"
    places = cache(lambda: tsne_places(embeddings)[0])
    yield from drawn(
        f"tsne_test_{file_name(key)}",
        title,
        lambda: embedding_map(places(), labels, width=PAGE_WIDTH),
        lambda: of_map(places(), labels),
        f"Model of the first fold of run 0, up to {IMAGES_PER_CLASS} images of some test classes. Distances between "
        f"groups have no meaning in t-SNE. {_best_of(material, MAPS)}",
        "Embeddings of test images (t-SNE)",
    )


def _proxy_map(material: Material, key: str, exhibit: Exhibit) -> Iterator[Drawn]:
    labels, star_labels = exhibit.train_labels, exhibit.proxy_labels
    places = cache(lambda: tsne_places(exhibit.train_embeddings, exhibit.proxies))
    yield from drawn(
        f"tsne_proxies_{file_name(key)}",
        f"{material.titles[key]}: images of training classes with their proxies",
        lambda: embedding_map(places()[0], labels, places()[1], star_labels, width=PAGE_WIDTH),
        lambda: of_proxy_map(places()[0], labels, places()[1], star_labels),
        "Model of the first fold of run 0, a few images of some training classes. A proxy is a larger sign with a dark "
        "outline, in the shape and the colour of its class. "
        f"{_best_of(material, MAPS, 'that have proxies')}",
        "Training images and proxies (t-SNE)",
    )


def _heat_map(material: Material, with_proxies: list[tuple[str, Exhibit]]) -> Iterator[Drawn]:
    panels = [
        SimilarityPanel(
            material.titles[key],
            exhibit.train_embeddings,
            exhibit.train_labels,
            exhibit.proxies,
            exhibit.proxy_labels,
        )
        for key, exhibit in with_proxies[:PANELS]
    ]
    yield from drawn(
        "similarity",
        "Cosine similarity between training images and proxies",
        lambda: similarity_heat_map(panels, columns=1),
        lambda: of_similarities(panels),
        "Model of the first fold of run 0, images and proxies sorted by class. A frame shows the pairs of one class. "
        f"{_best_of(material, PANELS, 'that have proxies')}",
    )


def _spectra(material: Material, exhibits: list[tuple[str, Exhibit]]) -> Iterator[Drawn]:
    spectra = [Spectrum(material.titles[key], tuple(exhibit.spectrum.tolist())) for key, exhibit in exhibits[:SPECTRA]]
    yield from drawn(
        "spectrum",
        "Singular values of the test embeddings",
        lambda: singular_value_spectrum(spectra, PAGE_WIDTH),
        lambda: of_spectra(spectra),
        f"Model of the first fold of run 0, all test images. {_best_of(material, SPECTRA)}",
    )


def _best_of(material: Material, count: int, which: str = "") -> str:
    return (
        f"At most {count} methods{' ' + which if which else ''} are shown, the best first."
        if len(material.records) > 1
        else ""
    )


def _gallery(title: str, exhibit: Exhibit, note: str) -> Gallery:
    rows = []
    for query, image in enumerate(exhibit.query_images):
        score = f"class MAP@R {100 * float(exhibit.class_scores[query]):.1f} %"
        neighbours = tuple(
            Thumbnail(thumbnail_uri(picture), str(name), bool(right))
            for picture, name, right in zip(
                exhibit.neighbour_images[query], exhibit.neighbour_names[query], exhibit.correct[query], strict=True
            )
        )
        rows.append(
            GalleryRow(Thumbnail(thumbnail_uri(image), str(exhibit.class_names[query]), None, score), neighbours)
        )
    caption = (
        "Each row shows an image of one of the classes with the lowest MAP@R, and its nearest test images, nearest "
        "first, by the concatenated embeddings of run 0. Only the hardest classes are shown. They are not typical."
        + note
    )
    return Gallery(f"{title}: hardest classes", tuple(rows), caption)
