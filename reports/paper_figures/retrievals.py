"""Proxy-Anchor's qualitative results: the nearest test images of some queries."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from reports.figures.gallery import galleries_side_by_side, retrievals_of
from reports.figures.style import FigureError
from reports.page.material import Material

QUERIES, NEIGHBOURS = 4, 4
"""Number of queries per dataset, and number of retrieved images per query, which is the paper's."""

_METHOD = "proxy_anchor"


def nearest_test_images(materials: Mapping[str, Material]) -> Figure:
    """Draw the nearest test images of the hardest classes' queries, one gallery per dataset.

    Args:
        materials: Experiments by panel of their file. The first panel of each dataset with retrievals is drawn.

    Raises:
        FigureError: No panel has retrievals of Proxy-Anchor.
    """
    galleries = {}
    for material in materials.values():
        dataset, exhibit = material.measured.summary.dataset, material.exhibits.get(_METHOD)
        if exhibit is not None and dataset not in galleries:
            retrievals = retrievals_of(exhibit, QUERIES, NEIGHBOURS)
            if retrievals:
                galleries[dataset] = retrievals
    if not galleries:
        raise FigureError(f"no run of {_METHOD} has retrievals beside the store; name their folder with --artifacts")
    return galleries_side_by_side(galleries)
