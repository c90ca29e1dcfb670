"""Looks for all faults of a dataset's folder at once, and mends none."""

import numpy as np

from protocols.datasets.dataset import oddities, reads_as_mlrc
from protocols.datasets.folder import check_parts
from protocols.datasets.listing import DataError, ImageListing, check_listing, named, part_of, without_small_classes
from protocols.datasets.split_file import with_split
from protocols.images.decoding import BrokenImageError, decoded, is_constant
from protocols.images.packing import Progress, equal_rows, hash_of_file, in_threads
from results.spec.data_choice import OWN_DATA


def check_images(
    listing: ImageListing, min_images: int | None, skip_broken: bool, decoding: Progress | None
) -> tuple[ImageListing, list[str], str | None]:
    """Check a listing; that of a folder of the user's images has no split yet, and its `split.csv` is read here.

    Args:
        min_images: Classes with fewer images are left out; None leaves none out.
        skip_broken: Whether images that cannot be decoded are left out instead of being faults.
        decoding: Called with the number of decoded images and the number of all images. None decodes no image. Images
            that cannot be decoded do not count for their class.

    Returns:
        The images that a run would use; what it would refuse, each in one line with the remedy; a phrase on equal and
        constant images, None without any.
    """
    faults: list[str] = []
    is_own = listing.name in OWN_DATA
    try:
        if is_own:
            listing = with_split(listing, None)
            check_parts(listing)
    except DataError as error:
        faults += error.faults
    looks = [None] * len(listing.names) if decoding is None else _looks(listing, decoding)
    broken = [row for row, look in enumerate(looks) if isinstance(look, str)]
    if not skip_broken:
        faults += [str(looks[row]) for row in broken]
    phrase = named("image(s) that cannot be decoded", [listing.names[row] for row in broken])
    sound = np.setdiff1d(np.arange(len(listing.names)), broken)
    left, kept = without_small_classes(
        part_of(listing, sound, *([phrase] if broken and skip_broken else [])), min_images
    )
    try:
        check_listing(left)
    except DataError as error:
        faults += error.faults
    contents = _contents(left) if is_own or decoding is not None else ()
    constant = [place for place, row in enumerate(sound[kept].tolist()) if looks[row] is True]
    tested = range(left.trainval_classes, left.n_classes)
    return left, faults, oddities(left, contents, constant, tested)


def _looks(listing: ImageListing, decoding: Progress) -> list[str | bool | None]:
    """Return for each image its fault, or whether it has a single colour."""
    as_mlrc = reads_as_mlrc(listing.name)

    def look(name: str) -> str | bool:
        try:
            return is_constant(decoded(listing.root / name, as_mlrc=as_mlrc)[0])
        except BrokenImageError as error:
            return str(error)

    looks: list[str | bool | None] = []
    for found in in_threads(look, listing.names):
        looks.append(found)
        decoding(len(looks), len(listing.names))
    return looks


def _contents(listing: ImageListing) -> list[bytes | None]:
    """Return the hashes of the files that are as large as another one, and None for the others."""
    paths = [listing.root / name for name in listing.names]
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    alike = {row for group in equal_rows(sizes) for row in group}
    return [hash_of_file(path) if row in alike else None for row, path in enumerate(paths)]
