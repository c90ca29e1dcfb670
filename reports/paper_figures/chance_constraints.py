"""CCP's figures: the embeddings at the solutions of its problems (Fig. 1 and 2) and its search (Fig. 3)."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from reports.figures.contour import search_contour
from reports.figures.map_panels import MapPanel, map_panels, tsne_panel
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.recorded_moments import methods_with_runs, panel_named, recording_of
from results.recordings import Snapshot

_METHOD = "c2_ccp"
_NUMBERS = "radius: average covering radius of a class; distance: mean distance of two images of different classes"


def proxies_in_the_plane(materials: Mapping[str, Material]) -> Figure:
    """Draw two-dimensional training embeddings, the proxies and the next proxies, before CCP and after it (Fig. 1).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: There is no recording, no problem ended, or the embeddings have more than two dimensions.
    """
    solutions = _solutions(materials, 5)
    dimensions = solutions[0].embeddings.shape[1]
    if dimensions != 2:
        raise FigureError(f"the figure needs embeddings of two dimensions, not {dimensions}")
    panels = [
        MapPanel(_title(shot), shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels, shot.next_proxies)
        for shot in solutions
    ]
    return map_panels(panels, 3, _NUMBERS, unit_disk=True)


def validation_geometry(materials: Mapping[str, Material]) -> Figure:
    """Draw validation embeddings before CCP and after its iterations 1 to 3 by t-SNE (Fig. 2).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: There is no recording, or no problem ended.
    """
    panels = [tsne_panel(_title(shot), shot.embeddings, shot.labels) for shot in _solutions(materials, 4)]
    return map_panels(panels, 2, f"{_NUMBERS}\nt-SNE of cosine distances: only small distances have a meaning")


def search_over_strength_and_proxies(materials: Mapping[str, Material]) -> Figure:
    """Draw the validation score over lambda and the number of proxies per class (Fig. 3).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: The store has no search over both hyperparameters.
    """
    material = panel_named(materials, "")
    search = material.searches.get(_METHOD)
    if search is None:
        raise FigureError(f"{material.name}: the store has no search of {_METHOD}")
    parameters = {parameter.name: parameter for parameter in search.parameters}
    if missing := {"loss.lam", "loss.proxies_per_class"} - parameters.keys():
        raise FigureError(f"{material.name}: {sorted(missing)[0]} was not searched")
    strength, proxies = parameters["loss.lam"], parameters["loss.proxies_per_class"]
    return search_contour(search.trials, strength, proxies, title=material.titles[_METHOD])


def _solutions(materials: Mapping[str, Material], most: int) -> tuple[Snapshot, ...]:
    """Return the solutions of the first problems, at most `most`."""
    material = panel_named(materials, "")
    (method,) = methods_with_runs(material, (_METHOD,))
    solutions = recording_of(material, method).problems[:most]
    if not solutions:
        raise FigureError(f"{material.name}, {method}: no problem ended during the training")
    return solutions


def _title(shot: Snapshot) -> str:
    """Name the panel as in the paper: the first problem is (a), `before`."""
    when = f"(b.{shot.problem}) iteration {shot.problem}" if shot.problem else "(a) before"
    numbers = f"MAP@R {shot.map_at_r:.2f}   radius {shot.covering_radius:.2f}   distance {shot.class_distance:.2f}"
    return f"{when}, epoch {shot.epoch}\n{numbers}"
