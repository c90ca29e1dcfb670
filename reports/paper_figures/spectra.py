"""Figure of the singular values of test embeddings (NIR, Fig. 4)."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import FigureError
from reports.page.material import Material

_MOST_LINES = 7


def spectra_of_runs(materials: Mapping[str, Material]) -> Figure:
    """Draw the singular values of the first runs of all methods.

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: No run has an exhibit, or there are more lines than can be told apart.
    """
    several = len(materials) > 1
    spectra = [
        Spectrum(
            f"{material.titles[key]}, {material.measured.summary.dataset}" if several else material.titles[key],
            tuple(exhibit.spectrum.tolist()),
        )
        for material in materials.values()
        for key, exhibit in material.exhibits.items()
    ]
    if not spectra:
        raise FigureError("no run has embeddings beside the store; name their folder with --artifacts")
    if len(spectra) > _MOST_LINES:
        raise FigureError(f"{len(spectra)} methods are too many for one figure; draw one panel with --experiment")
    return singular_value_spectrum(spectra)
