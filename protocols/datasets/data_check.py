"""Looks for all faults of a dataset's folder at once, and mends none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing, check_listing, reads_as_mlrc, without_small_classes
from protocols.datasets.folder import listing_of
from protocols.datasets.image_tree import walk
from protocols.datasets.notes_on_data import equal_in_several_classes, named, note_on_equal_files, shown
from protocols.datasets.split_file import with_split
from protocols.images.decoding import BrokenImageError, UnknownRangeError, decode
from protocols.images.image_files import ImageFiles, equal_rows, in_threads
from protocols.progress import Progress

_BATCH = 256


@dataclass(frozen=True)
class Checked:
    """What was found.

    Attributes:
        listing: The images that a run would use.
        faults: What a run would refuse, each in one line with the remedy.
        equal_files: A phrase on images whose files are equal in several classes; None without any. The test classes are
            those of the split file, else the second half.
    """

    listing: ImageListing
    faults: tuple[str, ...]
    equal_files: str | None = None


def check_folder(root: Path, min_images: int | None, skip_broken: bool, decoding: Progress | None) -> Checked:
    """Check a folder of the user's images and its `split.csv`; the options are those of `check_images`."""
    tree = walk(root)
    listing, faults = listing_of(root, tree), list(tree.faults)
    try:
        listing = with_split(listing, None)
    except DataError as error:
        faults += error.faults
    checked = check_images(listing, min_images, skip_broken, decoding)
    left, tested = checked.listing, range(checked.listing.trainval_classes or 0, len(checked.listing.class_names))
    note = note_on_equal_files(_equal_files(left), left.names, left.labels, tested)
    return Checked(left, (*faults, *checked.faults), note)


def check_images(
    listing: ImageListing, min_images: int | None, skip_broken: bool, decoding: Progress | None
) -> Checked:
    """Check that there are enough classes and images.

    Args:
        min_images: Classes with fewer images are left out; None leaves none out.
        skip_broken: Whether images that cannot be decoded are left out instead of being faults.
        decoding: Called with the number of decoded images and the number of all images. None decodes no image. Images
            that cannot be decoded do not count for their class.
    """
    broken = {} if decoding is None else _broken_images(listing, decoding)
    faults = [] if skip_broken else list(broken.values())
    if broken:
        phrase = named("image(s) that cannot be decoded", [listing.names[row] for row in broken])
        sound = np.setdiff1d(np.arange(len(listing.names)), list(broken))
        listing = replace(listing.at(sound), left_out=(*listing.left_out, *([phrase] if skip_broken else [])))
    listing, _ = without_small_classes(listing, min_images)
    try:
        check_listing(listing)
    except DataError as error:
        faults += error.faults
    return Checked(listing, tuple(faults))


def _broken_images(listing: ImageListing, decoding: Progress) -> dict[int, str]:
    """Return the positions of images that cannot be decoded, each with its fault."""
    as_mlrc = reads_as_mlrc(listing.dataset)

    def fault_of(row: int) -> str | None:
        try:
            decode(listing.root / listing.names[row], None, as_mlrc=as_mlrc)
        except UnknownRangeError as error:
            return shown(str(error))
        except BrokenImageError as error:
            return f"{shown(str(error))}; repair or remove it, or leave it out with --skip-broken-images"
        return None

    faults: list[str | None] = []
    total = len(listing.names)
    for first in range(0, total, _BATCH):
        faults += in_threads(fault_of, range(first, min(first + _BATCH, total)))
        decoding(len(faults), total)
    return {row: fault for row, fault in enumerate(faults) if fault is not None}


def _equal_files(listing: ImageListing) -> Sequence[Sequence[int]]:
    """Compare the files of equal size, as far as they are of several classes."""
    files, by_size = ImageFiles(listing.root, listing.names, None), dict[int, list[int]]()
    for row in range(len(files)):
        if files.path(row).is_file():
            by_size.setdefault(files.path(row).stat().st_size, []).append(row)
    alike = equal_in_several_classes(by_size.values(), listing.labels)
    groups = [[rows[i] for i in group] for rows in alike for group in equal_rows(in_threads(files.hash_of, rows))]
    return equal_in_several_classes(groups, listing.labels)
