"""Proxy-ISA's figures of embeddings: maps of images and proxies (Fig. 2 and 6), heat maps of similarities (Fig. 7)."""

from collections.abc import Mapping
from itertools import product
from string import ascii_lowercase

import numpy as np
from matplotlib.figure import Figure

from reports.figures.map_panels import MapPanel, map_panels, tsne_panel
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.recorded_moments import methods_with_runs, panel_named, recorded_epochs, recording_of

_NOTE = "t-SNE of cosine distances: only small distances have a meaning"


def early_embeddings(materials: Mapping[str, Material]) -> Figure:
    """Draw training images and proxies after the first recorded epoch, one map per method (Fig. 2).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: No method has a recording.
    """
    material = panel_named(materials, "")
    methods = methods_with_runs(material, ("proxy_anchor", "normalized_softmax"))
    panels = [
        _training_map(material, method, recorded_epochs(material, method)[0], letter)
        for letter, method in zip(ascii_lowercase, methods, strict=False)
    ]
    return map_panels(panels, 2, _NOTE)


def embeddings_over_time(materials: Mapping[str, Material]) -> Figure:
    """Draw Proxy-ISA's training images and proxies at two epochs, and the test images of two methods (Fig. 6).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: A panel has no runs, no recording or no exhibit.
    """
    stages, final = panel_named(materials, "stages"), panel_named(materials, "final")
    letters = iter(ascii_lowercase)
    method = methods_with_runs(stages, ("proxy_isa",))[0]
    panels = [_training_map(stages, method, epoch, next(letters)) for epoch in recorded_epochs(stages, method)]
    for method in methods_with_runs(final, ("proxy_anchor", "proxy_isa")):
        if method not in final.exhibits:
            raise FigureError(f"{final.name}, {method}: no test embeddings; name their folder with --artifacts")
        exhibit = final.exhibits[method]
        title = f"({next(letters)}) {final.titles[method]}, test\n{_counted(exhibit.test_labels)}"
        panels.append(tsne_panel(title, exhibit.test_embeddings, exhibit.test_labels))
    return map_panels(panels, 2, _NOTE)


def similarities_over_time(materials: Mapping[str, Material]) -> Figure:
    """Draw cosines of training images and proxies: one row per epoch, one column per method (Fig. 7).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: A method has no recording, or the recordings have no epoch in common.
    """
    material = panel_named(materials, "")
    methods = methods_with_runs(material, ("normalized_softmax", "proxy_anchor", "proxy_isa"))
    epochs = sorted(set.intersection(*(set(recorded_epochs(material, method)) for method in methods)))
    if not epochs:
        raise FigureError(f"{material.name}: the methods' recordings have no epoch in common")
    panels = []
    for letter, (epoch, method) in zip(ascii_lowercase, product(epochs, methods), strict=False):
        shot = recording_of(material, method).at_epoch(epoch)
        assert shot is not None
        stage = f"epoch {epoch}" if epoch else "untrained"
        title = f"({letter}) {material.titles[method]}, {stage}"
        panels.append(SimilarityPanel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels))
    return similarity_heat_map(panels, columns=len(methods))


def _training_map(material: Material, method: str, epoch: int, letter: str) -> MapPanel:
    shot = recording_of(material, method).at_epoch(epoch)
    assert shot is not None
    title = f"({letter}) {material.titles[method]}, epoch {epoch}\n{_counted(shot.labels)}, {len(shot.proxies)} proxies"
    return tsne_panel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels)


def _counted(labels: np.ndarray) -> str:
    return f"{len(labels)} images of {len(np.unique(labels))} classes"
