"""The classes and images of a dataset before any image is read, and the check that a protocol can use them."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.datasets.splits import ClassSplit, is_drawn, named_split
from results import InputError
from results.spec.data_choice import FOLDER, OWN_DATA
from results.wording import counted

_MOST_NAMES = 3

_LOOKS_LIKE = str.maketrans(
    # Cyrillic, then Greek.
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTXSIJaeopcyxsijABEZHIKMNOPTYXo",
)
"""Letters that look like Latin ones."""


class DataError(InputError):
    """A dataset cannot be used.

    Attributes:
        faults: All that is wrong. Each is one line that names the file or the class, and the remedy. The message has
            the first and the number of the others.
    """

    def __init__(self, *faults: str) -> None:
        more = f" (and {len(faults) - 1} more; `reproduce data check` names all)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")
        self.faults = faults


@dataclass(frozen=True)
class ImageListing:
    """The images of a dataset, before any image is read.

    Attributes:
        name: Name of the dataset.
        root: Folder of the images.
        class_names: Names of the classes, in the order of the class ranks.
        names: Paths of the n images below `root`; empty if the samples have no names.
        labels: Class rank of each image, int64 (n,).
        given_trainval: Number of classes to train on that the publisher or the user gives; they are the first ones.
            None leaves the choice of the classes to the protocol.
        is_query: (n,), whether an image is a query or in the gallery, if the publisher separates them; else None. It
            matters only for test classes.
        left_out: Phrases with number and names of images and classes that are no part of the data.
    """

    name: str
    root: Path
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    labels: NDArray[np.int64]
    given_trainval: int | None = None
    is_query: NDArray[np.bool_] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def trainval_classes(self) -> int:
        """Number of classes that the conventional split trains on; they are the first ones."""
        return self.n_classes - self.n_classes // 2 if self.given_trainval is None else self.given_trainval

    @property
    def is_split_given(self) -> bool:
        """Whether the user's split file says which classes are for the test. Every protocol then uses it."""
        return self.given_trainval is not None and self.name in OWN_DATA

    @property
    def are_test_classes_given(self) -> bool:
        """Whether only certain classes can be tested: those of the publisher's queries, or of a given split."""
        return self.is_split_given or (self.given_trainval is not None and self.is_query is not None)

    def split(self, name: str) -> ClassSplit:
        """Split the classes by the rule of that name, as `named_split` does."""
        return named_split(name, self.n_classes, self.trainval_classes, test_given=self.are_test_classes_given)


def part_of(listing: ImageListing, rows: NDArray[np.int64], *left_out: str) -> ImageListing:
    """Return the listing of the images at positions (k,), with all its classes; `left_out` adds phrases."""
    names = tuple(listing.names[row] for row in rows) if listing.names else ()
    is_query = None if listing.is_query is None else listing.is_query[rows]
    phrases = (*listing.left_out, *left_out)
    return replace(listing, names=names, labels=listing.labels[rows], is_query=is_query, left_out=phrases)


def composed(name: str) -> str:
    """Return a name without blanks around it, and with one sign for each letter with an accent.

    macOS writes two signs, and tables have blanks around their cells; all are the same name.
    """
    return unicodedata.normalize("NFC", name.strip())


def as_it_looks(name: str) -> str:
    """Return a name in small Latin letters, where other letters look like them: `Cat` and `\u0421at` are `cat`."""
    return unicodedata.normalize("NFKC", name.strip()).translate(_LOOKS_LIKE).casefold()


def _are_numbers(names: Iterable[str]) -> bool:
    return all(re.fullmatch("-?[0-9]{1,18}", name) for name in names)


def in_class_order(names: Iterable[str]) -> list[str]:
    """Sort the names of a user's classes: by number if all are whole numbers, else by alphabet, folder by folder.

    Images and their features get the same order, so their halves are the same classes.
    """
    plain = {name: composed(name) for name in names}
    numbers = _are_numbers(plain.values())
    # Ties such as 1 and 01 are ordered by text.
    return sorted(plain, key=lambda name: (int(plain[name]) if numbers else 0, plain[name].split("/")))


def ranked(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the classes among the names of samples, in order, and the rank of each sample's class."""
    ordered = in_class_order(names)
    rank_of = {name: rank for rank, name in enumerate(ordered)}
    return tuple(ordered), np.asarray([rank_of[name] for name in names], dtype=np.int64)


def root_of(name: str, root: Path | None, what: str) -> Path:
    """Return the folder of a dataset, which messages describe by `what`."""
    if root is None:
        raise DataError(f"{name}: say where it lies with --data FOLDER ({what})")
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; --data must name {what}")
    return root


def named(thing: str, names: Sequence[str], what: str) -> str:
    """Say how many things there are and what they are, with the first names, escaped if they cannot be printed."""
    shown = [name if name.isprintable() else repr(name) for name in names[:_MOST_NAMES]]
    return f"{counted(len(names), thing)} {what} ({', '.join(shown)}{', ...' if len(names) > _MOST_NAMES else ''})"


def note_on_test_classes(listing: ImageListing, split: ClassSplit) -> str:
    """Say how many classes are tested, with the first names, and how they are chosen."""
    by = "by number" if _are_numbers(map(composed, listing.class_names)) else "by name"
    if listing.is_split_given:
        how = "given by the split file"
    elif listing.are_test_classes_given or split.name == "conventional":
        how = "given by the publisher's split"
    elif is_drawn(split.name):
        how = "drawn as a random half"
    else:
        how = f"chosen as the last half{f' {by}' if listing.name in OWN_DATA else ''}"
    return named("test class", [listing.class_names[rank] for rank in split.test], how)


def without_small_classes(listing: ImageListing, least: int | None) -> tuple[ImageListing, NDArray[np.int64]]:
    """Leave out the classes with fewer than `least` images; None leaves out none.

    Returns:
        The listing of the other classes, and the positions of its images in the given one, (k,).
    """
    keeps = np.bincount(listing.labels, minlength=listing.n_classes) >= (least or 0)
    rows = np.flatnonzero(keeps[listing.labels])
    if keeps.all():
        return listing, rows
    names = np.asarray(listing.class_names, dtype=object)
    left = part_of(
        listing, rows, named("class", names[~keeps].tolist(), f"with fewer than {counted(least or 1, 'image')}")
    )
    given = None if listing.given_trainval is None else int(keeps[: listing.given_trainval].sum())
    labels = np.cumsum(keeps)[left.labels].astype(np.int64) - 1
    return replace(left, class_names=tuple(names[keeps]), labels=labels, given_trainval=given), rows


def check_listing(listing: ImageListing, sample: str = "image") -> None:
    """Raise DataError, with all faults, unless there are enough classes and every class has enough images.

    Names must be UTF-8 without control characters, such as those that begin a terminal's escape sequences. Names of
    classes must differ in more than tables keep. If queries and gallery are separated, a test class with a query needs
    a gallery image, some test class needs a query, and a training class needs one image: the validation skips queries
    without another image of their class. A test class without a query only adds to the gallery. Otherwise every class
    needs two images.
    """
    faults = [
        f"{listing.name}: the name {name!r} is not UTF-8 or has control characters; rename it"
        for name in (str(listing.root.resolve()), *listing.class_names, *listing.names)
        if not name.isprintable() and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name)
    ]
    alike: dict[str, list[str]] = {}
    for name in listing.class_names:
        alike.setdefault(composed(name), []).append(ascii(name))
    faults += [
        f"{listing.name}: the classes {' and '.join(sorted(names))} differ in blanks or in how an accent is written, "
        "which tables do not keep; rename one, or put their samples together"
        for names in alike.values()
        if len(names) > 1
    ]
    if listing.n_classes < 2:  # How many a run needs, its split says.
        faults.append(f"{listing.name}: only one class found; check that --data names the folder that holds all")
    faults += _faults_of_counts(listing, sample) if listing.is_query is None else _faults_of_queries(listing, sample)
    if faults:
        raise DataError(*faults)


def _faults_of_counts(listing: ImageListing, sample: str) -> list[str]:
    counts = np.bincount(listing.labels, minlength=listing.n_classes).tolist()
    small = ", or leave it out (--min-images 2, in a run --set dataset.min_images=2)" if listing.name == FOLDER else ""
    return [
        f"{listing.name}: class {name!r} has {f'only one {sample}' if count else f'no {sample}'}; give it at least "
        f"two, or remove the class{small}"
        for name, count in zip(listing.class_names, counts, strict=True)
        if count < 2
    ]


def _faults_of_queries(listing: ImageListing, sample: str) -> list[str]:
    counts = np.bincount(listing.labels, minlength=listing.n_classes)
    queries = np.bincount(listing.labels[listing.is_query], minlength=listing.n_classes)
    first = listing.trainval_classes if listing.are_test_classes_given else 0
    faults = []
    for rank, name in enumerate(listing.class_names):
        if not counts[rank] or (rank >= first and queries[rank] == counts[rank]):
            what = f"gallery {sample}" if counts[rank] else sample
            faults.append(f"{listing.name}: class {name!r} has no {what}; complete it, or remove the class")
    if not queries[listing.trainval_classes :].any():
        faults.append(f"{listing.name}: no test class has a query; name the {sample}s that are searched for")
    return faults
