"""What one look at each image of a listing finds: files that are no images, single colours, near copies, masks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from protocols.datasets.dataset import reads_as_mlrc
from protocols.datasets.listing import ImageListing, named
from protocols.images.packing import BrokenImageError, Progress, decoded, in_threads, is_constant

_SIDE = 16
"""Pictures are compared at this many pixels by as many."""

_ALIKE = 0.98
"""Correlation above which two pictures are one. Of 5,902 photographs of 100 bird species, two pairs of a species are
above it, and each is one photograph, once mirrored; of 4,840 handwritten characters two, which are upside down."""

_COLOURS_OF_A_MASK = 8
"""Most colours of a mask: one for each object, or for each person who drew it."""

_COLOURLESS = 8
"""Largest difference between the channels of a grey picture; JPEG keeps it a little."""

_LUMINANCE = np.asarray([0.299, 0.587, 0.114], dtype=np.float32)
"""Weights of red, green and blue in a grey picture, as in Pillow's conversion."""

_ROWS = 2_000
"""Pictures of a class that are compared with all others of it at a time."""


@dataclass(frozen=True)
class ImageLook:
    """What is found in one file.

    Attributes:
        fault: Why it cannot be decoded, in one line with the remedy; None for an image.
        is_constant: Whether all pixels are equal.
        is_flat: Whether it has as few colours as a mask.
        small: The picture in small, uint8 (768,); empty where there is none to compare.
    """

    fault: str | None
    is_constant: bool
    is_flat: bool
    small: NDArray[np.uint8]


def looks_at(listing: ImageListing, progress: Progress) -> list[ImageLook]:
    """Decode every image of a listing, JPEG in small, which reads the whole file in a fraction of the time."""
    as_mlrc, nothing = reads_as_mlrc(listing.name), np.empty(0, dtype=np.uint8)

    def look(name: str) -> ImageLook:
        path = listing.root / name
        try:
            picture, _ = decoded(path, as_mlrc=as_mlrc, least=4 * _SIDE)
            if is_constant(picture) and is_constant(decoded(path, as_mlrc=as_mlrc)[0]):
                return ImageLook(None, True, True, nothing)
        except BrokenImageError as error:
            return ImageLook(str(error), False, False, nothing)
        is_flat = picture.getcolors(_COLOURS_OF_A_MASK) is not None
        small = np.asarray(picture.resize((_SIDE, _SIDE), Image.Resampling.BOX)).ravel()
        return ImageLook(None, False, is_flat, small)

    looks: list[ImageLook] = []
    for found in in_threads(look, listing.names):
        looks.append(found)
        progress(len(looks), len(listing.names))
    return looks


def near_copies(listing: ImageListing, looks: Sequence[ImageLook]) -> str | None:
    """Count and name images that show what another of their class shows: smaller, in grey, mirrored or turned."""
    pairs = [pair for rows in _rows_of_classes(listing, looks) for pair in _copies_among(rows, looks)]
    names = [f"{listing.names[of]} ~ {listing.names[copy]}" for of, copy in pairs]
    return named("image", names, "nearly equal to another of the same class") if pairs else None


def masks(listing: ImageListing, looks: Sequence[ImageLook]) -> str | None:
    """Count and name images of few colours beside photographs of their class, as masks are."""
    found = [
        listing.names[row]
        for rows in _rows_of_classes(listing, looks)
        if not all(looks[row].is_flat for row in rows)
        for row in rows
        if looks[row].is_flat
    ]
    what = f"of at most {_COLOURS_OF_A_MASK} colours beside others of the same class, as masks are"
    return named("image", found, what) if found else None


def _rows_of_classes(listing: ImageListing, looks: Sequence[ImageLook]) -> Iterable[list[int]]:
    """Return the images of each class that can be compared."""
    of_class: dict[int, list[int]] = defaultdict(list)
    for row, label in enumerate(listing.labels.tolist()):
        if len(looks[row].small):
            of_class[label].append(row)
    return of_class.values()


def _copies_among(rows: Sequence[int], looks: Sequence[ImageLook]) -> Iterator[tuple[int, int]]:
    """Yield the first image of each kind with each later one that is nearly equal to it, also in grey or turned."""
    pictures = np.stack([looks[row].small for row in rows]).reshape(-1, _SIDE, _SIDE, 3)
    is_grey = np.ptp(pictures, axis=3).max(axis=(1, 2)) <= _COLOURLESS
    shades = (pictures @ _LUMINANCE)[..., None]
    for first in range(0, len(rows), _ROWS):
        part = slice(first, first + _ROWS)
        alike = _are_alike(pictures[part], pictures)
        alike |= _are_alike(shades[part], shades) & (is_grey[part, None] | is_grey)
        earliest = np.argmax(alike, axis=1)
        for place in np.flatnonzero(earliest < first + np.arange(len(alike))).tolist():
            yield rows[int(earliest[place])], rows[first + place]


def _are_alike(some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which pictures (m, side, side, channels) are nearly equal to which others, however turned: (m, n)."""
    values, alike = _normalized(others), np.zeros((len(some), len(others)), dtype=np.bool_)
    for quarters in range(4):
        turned = np.rot90(some, quarters, axes=(1, 2))
        for each in (turned, turned[:, :, ::-1]):
            alike |= _normalized(each) @ values.T > _ALIKE
    return alike


def _normalized(pictures: NDArray[Any]) -> NDArray[np.float32]:
    values = pictures.reshape(len(pictures), -1).astype(np.float32)
    values -= values.mean(axis=1, keepdims=True)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)
    return values
