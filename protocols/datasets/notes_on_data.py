"""What a run, `data check` and the tables say about a dataset: what is left out, and which files are equal."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_MOST_NAMES = 3


def named(what: str, names: Sequence[str]) -> str:
    """Return a phrase with the number of things and the first of their names."""
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"{len(names):,} {what} ({', '.join(map(shown, names[:_MOST_NAMES]))}{more})"


def shown(name: str) -> str:
    """Return a name as one line: as it is, or quoted with escapes if it has characters that cannot be printed."""
    return name if name.isprintable() else repr(name)


def equal_in_several_classes(groups: Iterable[Sequence[int]], labels: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """Keep the groups of positions that have images of several classes, given the class ranks of all images (n,)."""
    return tuple(tuple(group) for group in groups if len(set(labels[list(group)].tolist())) > 1)


def note_on_equal_files(
    groups: Sequence[Sequence[int]], names: Sequence[str], labels: NDArray[np.int64], tested: Collection[int]
) -> str | None:
    """Name the images whose files are equal in several classes, those in training and test first; None without any.

    Args:
        groups: Positions of equal images, as in `Dataset.equal_files`.
        names: Names of the n images.
        labels: Class ranks of the n images, (n,).
        tested: Ranks of the test classes.
    """
    if not groups:
        return None
    of_sides = [{int(label) in tested for label in labels[list(group)]} for group in groups]
    on_both = [group for group, sides in zip(groups, of_sides, strict=True) if len(sides) == 2]
    others = [group for group, sides in zip(groups, of_sides, strict=True) if len(sides) == 1]
    pairs = [" = ".join(names[row] for row in group[:2]) for group in (*on_both, *others)]
    return (
        f"{named('group(s) of images that are equal but of several classes', pairs)}, {len(on_both):,} of them in "
        "training and in test"
    )


def note_on_queries(labels: NDArray[np.int64], is_query: NDArray[np.bool_] | None, trainval: int) -> str | None:
    """Say how the test images are divided, and how many test classes have no query; None without queries.

    Args:
        labels: Class ranks of the n images, (n,).
        is_query: (n,), whether an image is a query; counts for test classes only.
        trainval: Number of classes that are not for the test; they are the first ones.
    """
    if is_query is None:
        return None
    tested = labels >= trainval
    queries, gallery = int(np.sum(is_query & tested)), int(np.sum(~is_query & tested))
    alone = len(np.setdiff1d(labels[tested], labels[is_query]))
    more = f"; {alone:,} test class(es) have no query and only add to the gallery" if alone else ""
    return f"{queries:,} queries are searched for among {gallery:,} others in the gallery{more}"
