"""Access to the recorded embeddings of an experiment, with the reason where there are none."""

from collections.abc import Mapping

from reports.figures.style import FigureError
from reports.page.material import Material
from results.records.artifacts import Recording


def panel_named(materials: Mapping[str, Material], ending: str) -> Material:
    """Return the experiment of the panel whose name ends with a word.

    Args:
        materials: Experiments by panel of their file.
        ending: The word; empty for a file without panels.

    Raises:
        FigureError: No such panel has runs.
    """
    for panel, material in materials.items():
        if panel.endswith(ending):
            return material
    raise FigureError(f"no panel *{ending} has runs in the store")


def methods_with_runs(material: Material, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the methods that have runs, in the given order.

    Raises:
        FigureError: None of them has runs.
    """
    present = tuple(method for method in methods if method in material.records)
    if not present:
        raise FigureError(f"{material.name} has no run of {' or '.join(methods)}")
    return present


def recording_of(material: Material, method: str) -> Recording:
    """Return a method's recording.

    Raises:
        FigureError: There is none, for instance because the training was in the store before it was asked for.
    """
    if method not in material.recordings:
        raise FigureError(
            f"{material.name}, {method}: there are no recorded embeddings beside the weights; name their folder with "
            "--artifacts; if the training was in the store before, run it again with a new --store and --artifacts"
        )
    return material.recordings[method]


def recorded_epochs(material: Material, method: str) -> tuple[int, ...]:
    """Return the epochs after which a method's embeddings were recorded, in order.

    Raises:
        FigureError: There are none.
    """
    shots = recording_of(material, method).snapshots
    epochs = tuple(sorted(shot.epoch for shot in shots if shot.problem < 0))
    if not epochs:
        raise FigureError(f"{material.name}, {method}: the training ended before the first epoch to record")
    return epochs
