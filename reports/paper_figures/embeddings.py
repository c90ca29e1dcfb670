"""The papers' figures that show embeddings or searches."""

from collections.abc import Mapping
from itertools import product
from string import ascii_lowercase

import numpy as np
from matplotlib.figure import Figure

from reports.figures.embedding_map import TSNE_NOTE, MapPanel, map_panels, tsne_panel
from reports.figures.gallery import retrieval_gallery
from reports.figures.search import search_plane
from reports.figures.spectrum import singular_value_spectrum
from reports.figures.style import FigureError, new_figure, styled
from reports.page.material import Material
from reports.paper_figures.scores import Materials
from results.records.artifacts import FigureData, Recording, Snapshot

QUERIES, NEIGHBOURS = 4, 4
"""Number of queries per dataset, and number of retrieved images per query, which is the paper's."""

_MOST_SPECTRA = 7
_PROXY_ANCHOR, _CCP = "proxy_anchor", "c2_ccp"


def nearest_test_images(materials: Materials) -> Figure:
    """Draw the nearest test images of the hardest classes' queries, one gallery per dataset."""
    galleries: dict[str, FigureData] = {}
    for material in materials.values():
        dataset, data = material.measured.summary.dataset, material.figure_data.get(_PROXY_ANCHOR)
        if data is not None and len(data.query_images):
            galleries.setdefault(dataset, data)
    if not galleries:
        raise FigureError(
            f"no run of {_PROXY_ANCHOR} has retrievals beside the store; name their folder with --artifacts"
        )
    return retrieval_gallery(galleries, QUERIES, NEIGHBOURS)


def early_embeddings(materials: Materials) -> Figure:
    """Draw training images and proxies after the first recorded epoch, one map per method (Fig. 2)."""
    material = _panel_named(materials, "")
    methods = _methods_with_runs(material, ("proxy_anchor", "normalized_softmax"))
    panels = [
        _training_map(material, method, _recorded_epochs(material, method)[0], letter)
        for letter, method in zip(ascii_lowercase, methods, strict=False)
    ]
    return map_panels(panels, 2, TSNE_NOTE)


def embeddings_over_time(materials: Materials) -> Figure:
    """Draw Proxy-ISA's training images and proxies at two epochs, and the test images of two methods (Fig. 6)."""
    stages, final = _panel_named(materials, "stages"), _panel_named(materials, "final")
    letters = iter(ascii_lowercase)
    method = _methods_with_runs(stages, ("proxy_isa",))[0]
    panels = [_training_map(stages, method, epoch, next(letters)) for epoch in _recorded_epochs(stages, method)]
    for method in _methods_with_runs(final, ("proxy_anchor", "proxy_isa")):
        if method not in final.figure_data:
            raise FigureError(f"{final.name}, {method}: no test embeddings; name their folder with --artifacts")
        data = final.figure_data[method]
        title = f"({next(letters)}) {final.titles[method]}, test\n{_counted(data.test_labels)}"
        panels.append(tsne_panel(title, data.test_embeddings, data.test_labels))
    return map_panels(panels, 2, TSNE_NOTE)


def similarities_over_time(materials: Materials) -> Figure:
    """Draw cosines of training images and proxies: one row per epoch, one column per method (Fig. 7)."""
    material = _panel_named(materials, "")
    methods = _methods_with_runs(material, ("normalized_softmax", "proxy_anchor", "proxy_isa"))
    epochs = sorted(set.intersection(*(set(_recorded_epochs(material, method)) for method in methods)))
    if not epochs:
        raise FigureError(f"{material.name}: the methods' recordings have no epoch in common")
    shots = {}
    for letter, (epoch, method) in zip(ascii_lowercase, product(epochs, methods), strict=False):
        stage = f"epoch {epoch}" if epoch else "untrained"
        shots[f"({letter}) {material.titles[method]}, {stage}"] = _recording_of(material, method).at_epoch(epoch)
    return _similarity_maps(shots, len(epochs), len(methods))


@styled
def _similarity_maps(shots: Mapping[str, Snapshot | None], rows: int, columns: int) -> Figure:
    figure = new_figure(0.6 + 2.8 * rows, width=1.0 + 2.8 * columns)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, shot) in zip(grid, shots.items(), strict=True):
        assert shot is not None
        cosines = similarities(shot)
        image = axes.imshow(cosines, cmap="cividis", vmin=-1, vmax=1, interpolation="nearest", aspect="auto")
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel(f"proxy, by class (n = {cosines.shape[1]})")
        axes.set_ylabel(f"image, by class (n = {cosines.shape[0]})")
        axes.set(xticks=[], yticks=[])
        axes.label_outer()
    figure.colorbar(image, ax=figure.axes, label="cosine similarity", shrink=0.85 / rows**0.5, pad=0.02)
    return figure


def similarities(shot: Snapshot) -> np.ndarray:
    """Return the cosines of images (rows) and proxies (columns), both sorted by class."""
    images = shot.embeddings[np.argsort(shot.labels, kind="stable")]
    proxies = shot.proxies[np.argsort(shot.proxy_labels, kind="stable")]
    lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(proxies, axis=1)
    cosines: np.ndarray = images @ proxies.T / np.where(lengths > 0, lengths, 1)
    return cosines


def _training_map(material: Material, method: str, epoch: int, letter: str) -> MapPanel:
    shot = _recording_of(material, method).at_epoch(epoch)
    assert shot is not None
    title = f"({letter}) {material.titles[method]}, epoch {epoch}\n{_counted(shot.labels)}, {len(shot.proxies)} proxies"
    return tsne_panel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels)


def _counted(labels: np.ndarray) -> str:
    return f"{len(labels)} images of {len(np.unique(labels))} classes"


_NUMBERS = "radius: average covering radius of a class; distance: mean distance of two images of different classes"


def proxies_in_the_plane(materials: Materials) -> Figure:
    """Draw two-dimensional training embeddings, the proxies and the next proxies, before CCP and after it (Fig. 1)."""
    solutions = _solutions(materials, 5)
    dimensions = solutions[0].embeddings.shape[1]
    if dimensions != 2:
        raise FigureError(f"the figure needs embeddings of two dimensions, not {dimensions}")
    panels = [
        MapPanel(_title(shot), shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels, shot.next_proxies)
        for shot in solutions
    ]
    return map_panels(panels, 3, _NUMBERS, unit_disk=True)


def validation_geometry(materials: Materials) -> Figure:
    """Draw validation embeddings before CCP and after its iterations 1 to 3 by t-SNE (Fig. 2)."""
    panels = [tsne_panel(_title(shot), shot.embeddings, shot.labels) for shot in _solutions(materials, 4)]
    return map_panels(panels, 2, f"{_NUMBERS}\n{TSNE_NOTE}")


def search_over_strength_and_proxies(materials: Materials) -> Figure:
    """Draw the validation score over lambda and the number of proxies per class (Fig. 3)."""
    material = _panel_named(materials, "")
    search = material.searches.get(_CCP)
    if search is None:
        raise FigureError(f"{material.name}: the store has no search of {_CCP}")
    missing = {"loss.lam", "loss.proxies_per_class"} - {parameter.name for parameter in search.parameters}
    if missing:
        raise FigureError(f"{material.name}: {sorted(missing)[0]} was not searched")
    return search_plane(search, "loss.lam", "loss.proxies_per_class")


def _solutions(materials: Materials, most: int) -> tuple[Snapshot, ...]:
    material = _panel_named(materials, "")
    (method,) = _methods_with_runs(material, (_CCP,))
    solutions = _recording_of(material, method).problems[:most]
    if not solutions:
        raise FigureError(f"{material.name}, {method}: no problem ended during the training")
    return solutions


def _title(shot: Snapshot) -> str:
    when = f"(b.{shot.problem}) iteration {shot.problem}" if shot.problem else "(a) before"
    numbers = f"MAP@R {shot.map_at_r:.2f}   radius {shot.covering_radius:.2f}   distance {shot.class_distance:.2f}"
    return f"{when}, epoch {shot.epoch}\n{numbers}"


def spectra_of_runs(materials: Materials) -> Figure:
    """Draw the singular values of the first runs of all methods."""
    several = len(materials) > 1
    spectra = {
        material.titles[key] + (f", {panel}" if several else ""): data.spectrum
        for panel, material in materials.items()
        for key, data in material.figure_data.items()
    }
    if not spectra:
        raise FigureError("no run has embeddings beside the store; name their folder with --artifacts")
    if len(spectra) > _MOST_SPECTRA:
        raise FigureError(f"{len(spectra)} methods are too many for one figure; draw one panel with --experiment")
    return singular_value_spectrum(spectra)


def _panel_named(materials: Materials, ending: str) -> Material:
    for panel, material in materials.items():
        if panel.endswith(ending):
            return material
    raise FigureError(f"no panel *{ending} has runs in the store")


def _methods_with_runs(material: Material, methods: tuple[str, ...]) -> tuple[str, ...]:
    present = tuple(method for method in methods if method in material.records)
    if not present:
        raise FigureError(f"{material.name} has no run of {' or '.join(methods)}")
    return present


def _recording_of(material: Material, method: str) -> Recording:
    if method not in material.recordings:
        raise FigureError(
            f"{material.name}, {method}: there are no recorded embeddings beside the weights; name their folder with "
            "--artifacts; if the training was in the store before, run it again with a new --store and --artifacts"
        )
    return material.recordings[method]


def _recorded_epochs(material: Material, method: str) -> tuple[int, ...]:
    shots = _recording_of(material, method).snapshots
    epochs = tuple(sorted(shot.epoch for shot in shots if shot.problem < 0))
    if not epochs:
        raise FigureError(f"{material.name}, {method}: the training ended before the first epoch to record")
    return epochs
