"""MLRC's class splits (specification, section 2), and the papers' conventional one.

Classes are ranked by id. The second half is the test set of every fold; the first half ("trainval") is cut into a
training and a validation part, four times, as contiguous blocks with wrap-around. Where a dataset's convention says
which classes are trained on (In-Shop; CCP's SOP), those are the trainval classes (specification, section 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from results.mlrc_constants import FOLDS

SPLITS = ("mlrc", "mlrc_conventional", "conventional")
"""What an experiment may ask for."""

MIN_CLASSES = 8
"""Below this the rule floor(n / 8) leaves no validation class."""


class SplitError(ValueError):
    """Classes cannot be split as the protocol asks."""


@dataclass(frozen=True)
class FoldClasses:
    """Ranks of one fold's classes, in the order of the rule."""

    fold: int
    train: tuple[int, ...]
    validation: tuple[int, ...]


@dataclass(frozen=True)
class ClassSplit:
    """Test ranks, the same for every fold, and the folds."""

    name: str
    test: tuple[int, ...]
    folds: tuple[FoldClasses, ...]


def mlrc_split(n_classes: int, trainval: int | None = None) -> ClassSplit:
    """The MLRC rule for `n_classes`; raises SplitError for too few.

    test = floor(n/2), validation = floor(n/8), train = the rest; fold p starts at floor(p * T / 4) of the T trainval
    classes, trains on the next `train` of them (cyclically) and validates on those that follow. A `trainval` given
    settles T: test = all other classes, validation = floor(T/4), and the split is called mlrc_conventional.
    """
    if trainval is None:
        if n_classes < MIN_CLASSES:
            raise SplitError(f"{n_classes} classes: the MLRC split needs at least {MIN_CLASSES}; add classes")
        name, n_trainval, n_validation = "mlrc", n_classes - n_classes // 2, n_classes // 8
    else:
        name, n_trainval, n_validation = "mlrc_conventional", trainval, _validation_of(n_classes, trainval)
    n_train = n_trainval - n_validation
    folds = []
    for fold in range(FOLDS):
        start = fold * n_trainval // FOLDS
        order = [(start + i) % n_trainval for i in range(n_trainval)]
        folds.append(FoldClasses(fold, tuple(order[:n_train]), tuple(order[n_train:])))
    split = ClassSplit(name, tuple(range(n_trainval, n_classes)), tuple(folds))
    assert_disjoint(split)
    return split


def conventional_split(n_classes: int, trainval: int) -> ClassSplit:
    """One fold: trains on the first of the `trainval` classes, validates on their last quarter, tests on all others.

    Raises SplitError for too few classes.
    """
    n_train = trainval - _validation_of(n_classes, trainval)
    fold = FoldClasses(0, tuple(range(n_train)), tuple(range(n_train, trainval)))
    split = ClassSplit("conventional", tuple(range(trainval, n_classes)), (fold,))
    assert_disjoint(split)
    return split


def named_split(name: str, n_classes: int, trainval_classes: int | None, *, queries_given: bool = False) -> ClassSplit:
    """The split that `name` asks of a dataset: mlrc, mlrc_conventional or conventional; raises SplitError.

    trainval_classes: of the dataset's convention. queries_given: the publisher tells queries from gallery among its
    test classes (In-Shop), so that no other class can be tested on: mlrc then is mlrc_conventional.
    """
    if name not in SPLITS:
        raise SplitError(f"unknown split {name!r}; known are {', '.join(SPLITS)}")
    if name == "mlrc" and not queries_given:
        return mlrc_split(n_classes)
    if trainval_classes is None:
        raise SplitError(f"split {name!r}: the dataset has no conventional training classes; use mlrc")
    if name == "conventional":
        return conventional_split(n_classes, trainval_classes)
    return mlrc_split(n_classes, trainval_classes)


def _validation_of(n_classes: int, trainval: int) -> int:
    """A quarter of the trainval classes."""
    if not FOLDS <= trainval < n_classes:
        raise SplitError(
            f"{trainval} of {n_classes} classes for training and validation: the split needs at least {FOLDS} of them "
            "and one more for the test; add classes"
        )
    return trainval // FOLDS


def assert_disjoint(split: ClassSplit) -> None:
    """Raises SplitError unless train, validation and test share no class and validation parts share none either."""
    seen: set[int] = set()
    for fold in split.folds:
        train, validation, test = set(fold.train), set(fold.validation), set(split.test)
        if train & validation or train & test or validation & test:
            raise SplitError(f"fold {fold.fold}: train, validation and test classes overlap")
        if seen & validation:
            raise SplitError(f"fold {fold.fold}: its validation classes were validated on in another fold")
        seen |= validation


def as_ranges(ranks: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Ranks in their order as inclusive ranges: (50, 51, 52, 0, 1) gives ((50, 52), (0, 1))."""
    ranges: list[tuple[int, int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], rank)
        else:
            ranges.append((rank, rank))
    return tuple(ranges)


def from_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """The inverse of `as_ranges`."""
    return tuple(rank for first, last in ranges for rank in range(first, last + 1))
