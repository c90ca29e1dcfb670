"""Chooses the panel of an experiment file that suits the size of the user's images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from reproduce.commands.terminal import say
from reproduce.errors import InputError

if TYPE_CHECKING:
    from results.experiment_spec import Experiment


def suitable_panels(name: str, experiments: Mapping[str, Experiment], console: Console) -> dict[str, Experiment]:
    """Keep the panel that suits the images if the file chooses by their size, and say which one and why.

    Args:
        name: Name or path of the experiment file.
        experiments: The file's experiments by their names in the store, with the folders of their images.
        console: Where the choice is printed.

    Returns:
        The chosen panel; all experiments if the file does not choose, or if a folder is missing.

    Raises:
        InputError: The images cannot be listed or no panel suits them.
    """
    from protocols.datasets.dataset import DataError
    from protocols.datasets.folder import list_folder
    from protocols.images.image_sizes import median_shorter_side
    from reproduce.config.experiment_file import panels_by_size

    limits = panels_by_size(name)
    root = next(iter(experiments.values())).dataset.root
    if not limits or root is None:
        return dict(experiments)
    try:
        listing = list_folder(root)
    except DataError as error:
        raise InputError(str(error)) from error
    side = median_shorter_side(listing.root, listing.names)
    if side is None:
        raise InputError(f"{root}: no image in it can be read, so no panel can be chosen; check that --data is right")
    for panel, limit in limits.items():
        if limit is None or side <= limit:
            bound = "larger images" if limit is None else f"images up to {limit} pixels"
            others = ", ".join(other for other in limits if other != panel)
            say(
                console,
                f"{panel}: {experiments[panel].title}. It is for {bound}; the median of the shorter sides is "
                f"{side:.0f} pixels. To choose yourself, name the panel: {others}",
            )
            return {panel: experiments[panel]}
    raise InputError(f"{name}: no panel is for images of {side:.0f} pixels; name one of {', '.join(limits)}")
