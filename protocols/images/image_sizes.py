"""The size of a dataset's images, read from the headers of some files."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

_SAMPLE = 200


def median_shorter_side(root: Path, names: Sequence[str]) -> float | None:
    """Return the median of the images' shorter sides, in pixels. Files that cannot be read are left out.

    Args:
        root: Folder of the images.
        names: Paths of the images below `root`. At most 200 of them are read, at equal intervals.

    Returns:
        The median; None if no file can be read.
    """
    sides = []
    for name in names[:: max(1, len(names) // _SAMPLE)]:
        try:
            with Image.open(root / name) as image:
                sides.append(min(image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue
    return statistics.median(sides) if sides else None
