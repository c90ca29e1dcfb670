"""The class splits against the table of the specification, section 2."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.datasets.splits import (
    MIN_CLASSES,
    SplitError,
    as_ranges,
    drawn_name,
    drawn_order,
    from_ranges,
    mlrc_split,
    named_split,
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
}


@pytest.mark.parametrize("n", TABLE)
def test_split_is_the_published_one(n):
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


@given(st.integers(MIN_CLASSES, 2000))
def test_sizes_and_disjointness_for_any_number_of_classes(n):
    split = mlrc_split(n)
    assert split.test == tuple(range(n - n // 2, n))
    trainval = set(range(n - n // 2))
    validated = []
    for fold in split.folds:
        assert len(fold.validation) == len(set(fold.validation)) == n // 8 > 1
        assert len(fold.train) == n - n // 2 - n // 8
        assert set(fold.train) | set(fold.validation) == trainval
        assert len(fold.train) + len(fold.validation) == len(trainval)
        validated += fold.validation
    assert len(set(validated)) == len(validated)


@pytest.mark.parametrize("n", range(MIN_CLASSES))
def test_too_few_classes_are_refused(n):
    with pytest.raises(SplitError, match=f"^{n} class(es)?: .* at least 16"):
        mlrc_split(n)


# (classes, trainval): (test range, four folds of (train ranges, validation range)), worked out by hand.
CONVENTIONAL = {
    # In-Shop: T = 3997, validation 999, train 2998, starts 0, 999, 1998, 2997.
    (7982, 3997): (
        (3997, 7981),
        (
            (((0, 2997),), ((2998, 3996),)),
            (((999, 3996),), ((0, 998),)),
            (((1998, 3996), (0, 998)), ((999, 1997),)),
            (((2997, 3996), (0, 1997)), ((1998, 2996),)),
        ),
    ),
}


@pytest.mark.parametrize(("n", "trainval"), CONVENTIONAL)
def test_folds_over_the_conventional_classes(n, trainval):
    test, folds = CONVENTIONAL[n, trainval]
    split = mlrc_split(n, trainval)
    assert split.name == "mlrc_conventional"
    assert as_ranges(split.test) == (test,)
    assert [fold.fold for fold in split.folds] == [0, 1, 2, 3]
    assert tuple((as_ranges(fold.train), as_ranges(fold.validation)) for fold in split.folds) == folds


@pytest.mark.parametrize("name", ["mlrc_conventional", "conventional"])
@pytest.mark.parametrize(("n", "trainval"), [(16, 7), (16, 15), (16, 17), (16, 0)])
def test_too_few_conventional_classes_are_refused(name, n, trainval):
    with pytest.raises(SplitError, match=f"^{trainval} of {n} classes .* at least 8"):
        named_split(name, n, trainval)


def test_the_fewest_classes_of_both_halves_make_a_split():
    assert len(mlrc_split(10, 8).test) == len(mlrc_split(10, 8).folds[0].validation) == 2


def test_splits_by_name():
    assert named_split("mlrc", 22634, 11318) == mlrc_split(22634)
    assert named_split("mlrc", 200, None) == mlrc_split(200)
    assert named_split("mlrc_conventional", 22634, 11318) == mlrc_split(22634, 11318)


def test_a_query_gallery_test_is_never_halved():
    """Specification, 11.3: In-Shop's folds are over its 3,997 training classes."""
    split = named_split("mlrc", 7982, 3997, test_given=True)
    assert split == mlrc_split(7982, 3997)
    assert split.test == tuple(range(3997, 7982))


def test_names_that_cannot_be_had():
    with pytest.raises(SplitError, match="unknown split 'standard'; known are mlrc, mlrc_conventional, conventional"):
        named_split("standard", 200, 100)
    with pytest.raises(SplitError, match="unknown split"):
        named_split("mlrc_drawn_x", 100, 50)
    with pytest.raises(SplitError, match="remove the seed"):
        named_split(drawn_name("mlrc", 3), 100, 50, test_given=True)


def test_ranges_keep_the_order():
    assert as_ranges((50, 51, 52, 0, 1)) == ((50, 52), (0, 1))
    assert as_ranges((3, 2)) == ((3, 3), (2, 2))
    assert as_ranges(()) == ()
    assert from_ranges(((50, 52), (0, 1))) == (50, 51, 52, 0, 1)


@given(st.lists(st.integers(0, 30)))
def test_ranges_are_inverted(ranks):
    ranges = as_ranges(ranks)
    assert from_ranges(ranges) == tuple(ranks)
    # No two neighbours could be one range.
    assert all(one[1] + 1 != other[0] for one, other in pairwise(ranges))


@pytest.mark.parametrize(
    ("rule", "plain"), [("mlrc", mlrc_split(100)), ("conventional", named_split("conventional", 100, 50))]
)
def test_a_drawn_split_moves_the_classes_of_the_rule(rule, plain):
    split = named_split(drawn_name(rule, 3), 100, None)
    assert split.name == f"{rule}_drawn_3"
    assert len(split.test) == len(plain.test)
    assert [len(fold.train) for fold in split.folds] == [len(fold.train) for fold in plain.folds]
    everything = {*split.test, *split.folds[0].train, *split.folds[0].validation}
    assert everything == set(range(100))
    assert set(split.test) != set(plain.test)
    assert split.test != named_split(drawn_name(rule, 4), 100, None).test
    assert split == named_split(drawn_name(rule, 3), 100, None)


def test_the_drawn_order_never_changes():
    assert drawn_order(8, 3) == (1, 7, 6, 3, 4, 2, 0, 5)
