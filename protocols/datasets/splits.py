"""The class splits: MLRC's (specification, section 2) and the conventional one of the papers.

Classes are ranked by id. MLRC tests every fold on the second half of the classes. It cuts the first half ("trainval")
four times into a training and a validation part; both are contiguous blocks with wrap-around. Some datasets have fixed
training classes (In-Shop; SOP as used by CCP; a split of the user's own). There these are the
trainval classes (specification, section 11). A drawn split puts the classes into a random order first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from results import InputError
from results.spec.mlrc_constants import FOLDS
from results.spec.training_spec import FoldSpec
from results.values import fingerprint_of
from results.wording import counted

SPLITS = ("mlrc", "mlrc_conventional", "conventional")
"""Names of the splits that an experiment can use."""

_DRAWN = "_drawn_"

LEAST = 2
"""Validation classes of a fold, and test classes, at least: among images of one class, every neighbour is right."""

MIN_CLASSES = 8 * LEAST
"""With fewer classes, floor(n / 8) is too small."""

_REMEDY = "add classes, or check that --data names the folder that holds them"


class SplitError(InputError, ValueError):
    """The split is not possible or not allowed: too few classes, unknown name, or a class with two uses."""


@dataclass(frozen=True)
class FoldClasses:
    """The classes of one fold.

    Attributes:
        fold: Number of the fold, from 0.
        train: Ranks of the training classes, in the order of the split rule.
        validation: Ranks of the validation classes, in the order of the split rule.
    """

    fold: int
    train: tuple[int, ...]
    validation: tuple[int, ...]


@dataclass(frozen=True)
class ClassSplit:
    """A split of a dataset's classes.

    Attributes:
        name: `mlrc`, `mlrc_conventional`, `conventional`, or the name of a drawn split.
        test: Ranks of the test classes, equal for every fold.
        folds: Training and validation classes of every fold.
    """

    name: str
    test: tuple[int, ...]
    folds: tuple[FoldClasses, ...]


def mlrc_split(n_classes: int, trainval: int | None = None) -> ClassSplit:
    """Split classes by the MLRC rule (specification, section 2).

    Of n classes, floor(n/2) are for the test, floor(n/8) for validation and the rest for training. Fold p starts at
    class floor(p * T / 4) of the T trainval classes. It trains on the classes from there on, cyclically, and validates
    on the classes after them.

    Args:
        n_classes: Number of classes n.
        trainval: Number of trainval classes T, where the dataset fixes it. All other classes are then for the test,
            floor(T/4) classes are for validation, and the split's name is `mlrc_conventional`.

    Raises:
        SplitError: There are too few classes.
    """
    if trainval is None:
        if n_classes < MIN_CLASSES:
            raise SplitError(
                f"{counted(n_classes, 'class')}: the MLRC split needs at least {MIN_CLASSES}, or folds validate on "
                f"only one class, where every neighbour is right; {_REMEDY}"
            )
        name, n_trainval, n_validation = "mlrc", n_classes - n_classes // 2, n_classes // 8
    else:
        if not FOLDS * LEAST <= trainval <= n_classes - LEAST:
            raise SplitError(
                f"{trainval} of {counted(n_classes, 'class')} for training and validation: the split needs at least "
                f"{FOLDS * LEAST} of them, so that every fold has {LEAST} for validation, and {LEAST} others for the "
                f"test; {_REMEDY}"
            )
        name, n_trainval, n_validation = "mlrc_conventional", trainval, trainval // FOLDS
    n_train = n_trainval - n_validation
    folds = []
    for fold in range(FOLDS):
        start = fold * n_trainval // FOLDS
        order = [(start + i) % n_trainval for i in range(n_trainval)]
        folds.append(FoldClasses(fold, tuple(order[:n_train]), tuple(order[n_train:])))
    return ClassSplit(name, tuple(range(n_trainval, n_classes)), tuple(folds))


def drawn_name(rule: str, seed: int) -> str:
    """Name the split that applies a rule, `mlrc` or `conventional`, to the classes in an order drawn with a seed."""
    return f"{rule}{_DRAWN}{seed}"


@lru_cache(maxsize=4)
def drawn_order(n_classes: int, seed: int) -> tuple[int, ...]:
    """Return all class ranks in an order that depends only on the seed and the number of classes.

    The order is that of hashes, so that it is the same on every machine and with every release of numpy.
    """
    return tuple(sorted(range(n_classes), key=lambda rank: fingerprint_of(["split", seed, n_classes, rank])))


def named_split(name: str, n_classes: int, trainval_classes: int | None, *, test_given: bool = False) -> ClassSplit:
    """Split a dataset's classes by the rule of that name.

    Args:
        name: `mlrc`; `mlrc_conventional` or `conventional`, which have the same folds over the trainval classes; or the
            name of a drawn split (`drawn_name`).
        n_classes: Number of classes.
        trainval_classes: Number of trainval classes by the dataset's convention; None takes the first half.
        test_given: Whether only the dataset's test classes can be tested, because the publisher divides their images
            into queries and gallery (In-Shop) or because the publisher or the user gives the only split. Then `mlrc`
            means `mlrc_conventional`.

    Raises:
        SplitError: The name is unknown, there are too few classes, or the dataset does not allow the split.
    """
    rule, drawn, seed = name.partition(_DRAWN)
    if rule not in SPLITS or (drawn and not seed.isdigit()):
        raise SplitError(f"unknown split {name!r}; known are {', '.join(SPLITS)}")
    if drawn:
        if test_given:
            raise SplitError(f"split: seed {seed}: the dataset says which classes are for the test; remove the seed")
        return _reordered(named_split(rule, n_classes, None), name, drawn_order(n_classes, int(seed)))
    if name == "mlrc" and not test_given:
        return mlrc_split(n_classes)
    split = mlrc_split(n_classes, n_classes - n_classes // 2 if trainval_classes is None else trainval_classes)
    return replace(split, name=name) if name == "conventional" else split


def _reordered(split: ClassSplit, name: str, order: Sequence[int]) -> ClassSplit:
    def moved(ranks: Sequence[int]) -> tuple[int, ...]:
        return tuple(order[rank] for rank in ranks)

    folds = tuple(FoldClasses(fold.fold, moved(fold.train), moved(fold.validation)) for fold in split.folds)
    return ClassSplit(name, moved(split.test), folds)


def classes_of(spec: FoldSpec) -> FoldClasses:
    """Return the classes of a training, which has no validation classes if it trains on all classes of its fold."""
    if spec.n_classes is None:
        return FoldClasses(spec.fold, from_ranges(spec.train_classes), from_ranges(spec.validation_classes))
    fold = named_split(spec.split, spec.n_classes, None).folds[spec.fold]
    return fold if spec.checkpoint_epoch is None else FoldClasses(spec.fold, trainval_of(fold), ())


def trainval_of(fold: FoldClasses) -> tuple[int, ...]:
    """Return the training and validation classes of a fold, in order."""
    return tuple(sorted({*fold.train, *fold.validation}))


def is_drawn(name: str) -> bool:
    """Tell whether a split of this name puts the classes into a random order."""
    return _DRAWN in name


def as_ranges(ranks: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Write ranks as inclusive ranges, in the same order: (50, 51, 52, 0, 1) gives ((50, 52), (0, 1))."""
    ranges: list[tuple[int, int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], rank)
        else:
            ranges.append((rank, rank))
    return tuple(ranges)


def from_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """List the ranks of inclusive ranges; the inverse of `as_ranges`."""
    return tuple(rank for first, last in ranges for rank in range(first, last + 1))
