"""Looks for all faults of a dataset's folder at once, and mends none."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protocols.datasets.dataset import DataError, ImageListing, check_listing, reads_as_mlrc, without_small_classes
from protocols.datasets.folder import list_class_folders
from protocols.datasets.notes_on_data import equal_in_several_classes, named, note_on_equal_files
from protocols.datasets.split_file import with_split
from protocols.images.batch_source import done_ahead
from protocols.images.decoding import BrokenImageError, decoded
from protocols.images.packing import equal_rows, hash_of_file
from protocols.progress import Progress


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
    listing, faults = list_class_folders(root), tuple[str, ...]()
    try:
        listing = with_split(listing, None)
    except DataError as error:
        faults = error.faults
    checked = check_images(listing, min_images, skip_broken, decoding)
    left = checked.listing
    tested = range(left.trainval_classes or 0, len(left.class_names))
    note = note_on_equal_files(_equal_files(left), left.names, left.labels, tested)
    return Checked(left, faults + checked.faults, note)


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
    faults = () if skip_broken else tuple(broken.values())
    if broken:
        phrase = named("image(s) that cannot be decoded", [listing.names[row] for row in broken])
        sound = np.setdiff1d(np.arange(len(listing.names)), list(broken))
        listing = replace(listing.at(sound), left_out=(*listing.left_out, *([phrase] if skip_broken else [])))
    listing, _ = without_small_classes(listing, min_images)
    try:
        check_listing(listing)
    except DataError as error:
        faults += error.faults
    return Checked(listing, faults)


def _broken_images(listing: ImageListing, decoding: Progress) -> dict[int, str]:
    """Return the positions of images that cannot be decoded, each with its fault."""
    as_mlrc = reads_as_mlrc(listing.dataset)

    def fault_of(name: str) -> str | None:
        try:
            decoded(listing.root / name, as_mlrc=as_mlrc)
        except BrokenImageError as error:
            return str(error)
        return None

    broken = {}
    for row, fault in enumerate(done_ahead(fault_of, listing.names, os.cpu_count() or 1)):
        decoding(row + 1, len(listing.names))
        if fault is not None:
            broken[row] = fault
    return broken


def _equal_files(listing: ImageListing) -> Sequence[Sequence[int]]:
    """Compare the files of equal size, as far as they are of several classes."""
    by_size = dict[int, list[int]]()
    for row, name in enumerate(listing.names):
        if (listing.root / name).is_file():
            by_size.setdefault((listing.root / name).stat().st_size, []).append(row)
    groups = []
    for rows in equal_in_several_classes(by_size.values(), listing.labels):
        hashes = [hash_of_file(listing.root / listing.names[row]) for row in rows]
        groups += [[rows[i] for i in group] for group in equal_rows(hashes)]
    return equal_in_several_classes(groups, listing.labels)
