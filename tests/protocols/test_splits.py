"""The class splits against the table of the specification, section 2."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.splits import (
    MIN_CLASSES,
    ClassSplit,
    FoldClasses,
    SplitError,
    as_ranges,
    assert_disjoint,
    from_ranges,
    mlrc_split,
)

# classes: (test range, sizes of train and validation, four folds of (train ranges, validation range))
TABLE = {
    200: (
        (100, 199),
        (75, 25),
        (
            (((0, 74),), ((75, 99),)),
            (((25, 99),), ((0, 24),)),
            (((50, 99), (0, 24)), ((25, 49),)),
            (((75, 99), (0, 49)), ((50, 74),)),
        ),
    ),
    196: (
        (98, 195),
        (74, 24),
        (
            (((0, 73),), ((74, 97),)),
            (((24, 97),), ((0, 23),)),
            (((49, 97), (0, 24)), ((25, 48),)),
            (((73, 97), (0, 48)), ((49, 72),)),
        ),
    ),
    22634: (
        (11317, 22633),
        (8488, 2829),
        (
            (((0, 8487),), ((8488, 11316),)),
            (((2829, 11316),), ((0, 2828),)),
            (((5658, 11316), (0, 2828)), ((2829, 5657),)),
            (((8487, 11316), (0, 5657)), ((5658, 8486),)),
        ),
    ),
}


@pytest.mark.parametrize("n", TABLE)
def test_split_is_the_published_one(n: int) -> None:
    test, sizes, folds = TABLE[n]
    split = mlrc_split(n)
    assert split.name == "mlrc"
    assert as_ranges(split.test) == (test,)
    assert len(split.folds) == 4
    for number, (fold, (train, validation)) in enumerate(zip(split.folds, folds, strict=True)):
        assert fold.fold == number
        assert as_ranges(fold.train) == train
        assert as_ranges(fold.validation) == validation
        assert (len(fold.train), len(fold.validation)) == sizes


@pytest.mark.parametrize(("n", "never_validated"), [(200, set()), (196, {24, 73}), (22634, {8487})])
def test_ranks_without_validation_are_the_published_ones(n: int, never_validated: set[int]) -> None:
    validated = {rank for fold in mlrc_split(n).folds for rank in fold.validation}
    assert set(range((n + 1) // 2)) - validated == never_validated


@given(st.integers(MIN_CLASSES, 2000))
def test_sizes_and_disjointness_for_any_number_of_classes(n: int) -> None:
    split = mlrc_split(n)
    assert split.test == tuple(range(n - n // 2, n))
    trainval = set(range(n - n // 2))
    validated: list[int] = []
    for fold in split.folds:
        assert len(fold.validation) == len(set(fold.validation)) == n // 8 > 0
        assert len(fold.train) == n - n // 2 - n // 8
        assert set(fold.train) | set(fold.validation) == trainval
        assert len(fold.train) + len(fold.validation) == len(trainval)
        validated += fold.validation
    assert len(set(validated)) == len(validated)


@given(st.integers(MIN_CLASSES, 500))
def test_folds_are_contiguous_blocks_with_wrap_around(n: int) -> None:
    for fold in mlrc_split(n).folds:
        order = fold.train + fold.validation
        total = len(order)
        assert order[0] == fold.fold * total // 4
        assert all((a + 1) % total == b for a, b in pairwise(order))


@pytest.mark.parametrize("n", range(MIN_CLASSES))
def test_too_few_classes_are_refused(n: int) -> None:
    with pytest.raises(SplitError, match=f"^{n} classes: .* at least 8"):
        mlrc_split(n)


def _fold(split: ClassSplit, number: int, **parts: tuple[int, ...]) -> ClassSplit:
    folds = list(split.folds)
    folds[number] = replace(folds[number], **parts)
    return replace(split, folds=tuple(folds))


GOOD = ClassSplit("toy", (4, 5), (FoldClasses(0, (0, 1, 2), (3,)), FoldClasses(1, (1, 2, 3), (0,))))


def test_a_disjoint_split_passes() -> None:
    assert_disjoint(GOOD)


@pytest.mark.parametrize(
    ("broken", "fold"),
    [
        (_fold(GOOD, 0, train=(0, 1, 3)), 0),
        (_fold(GOOD, 1, train=(1, 4)), 1),
        (_fold(GOOD, 1, validation=(5,)), 1),
        (_fold(GOOD, 1, validation=(3,), train=(0, 1)), 1),
    ],
    ids=["train-validation", "train-test", "validation-test", "validation-validation"],
)
def test_overlaps_are_found(broken: ClassSplit, fold: int) -> None:
    with pytest.raises(SplitError, match=f"^fold {fold}: "):
        assert_disjoint(broken)


def test_ranges_keep_the_order() -> None:
    assert as_ranges((50, 51, 52, 0, 1)) == ((50, 52), (0, 1))
    assert as_ranges((3, 2)) == ((3, 3), (2, 2))
    assert as_ranges(()) == ()
    assert from_ranges(((50, 52), (0, 1))) == (50, 51, 52, 0, 1)


@given(st.lists(st.integers(0, 30)))
def test_ranges_are_inverted(ranks: list[int]) -> None:
    ranges = as_ranges(ranks)
    assert from_ranges(ranges) == tuple(ranks)
    # No two neighbours could be one range.
    assert all(one[1] + 1 != other[0] for one, other in pairwise(ranges))
