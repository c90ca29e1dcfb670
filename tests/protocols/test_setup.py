"""What all methods of a comparison share."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from protocols.datasets.splits import SplitError, as_ranges, classes_of, named_split
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from results.spec.training_spec import FoldSpec
from results.values import derive_seed
from tests.support.toys import CONTRASTIVE, PROXIES


def test_a_setting_makes_one_training_per_fold(setup):
    specs = setup.fold_specs(CONTRASTIVE, "search", 3)
    assert [spec.fold for spec in specs] == [0, 1, 2, 3]
    for spec, classes in zip(specs, setup.split.folds, strict=True):
        assert spec.train_classes == as_ranges(classes.train)
        assert spec.validation_classes == as_ranges(classes.validation)
        assert spec.seed == derive_seed(5, "search", 3, spec.fold)
        assert (spec.dataset, spec.data_fingerprint) == ("patterns", setup.dataset.fingerprint)
        setup.training_data(spec).check(spec)
    assert len(setup.fold_specs(CONTRASTIVE, "search", 3)) == 4
    assert len(replace(setup, folds=1).fold_specs(CONTRASTIVE, "search", 3)) == 1


def test_a_training_on_a_drawn_split_names_the_split_and_lists_no_classes(setup):
    drawn = replace(setup, split=named_split("mlrc_drawn_3", 16, None))
    tested = data_for_testing(drawn.dataset, drawn.split)
    for spec, fold in zip(drawn.fold_specs(CONTRASTIVE, "search", 0), drawn.split.folds, strict=True):
        assert (spec.train_classes, spec.validation_classes, spec.n_classes) == ((), (), 16)
        assert len(spec.model_dump_json()) < len(setup.fold_specs(CONTRASTIVE, "search", 0)[0].model_dump_json()) + 60
        ranges = {"train_classes": as_ranges(fold.train), "validation_classes": as_ranges(fold.validation)}
        earlier = spec.changed(n_classes=None, **ranges)  # As records before this form have it.
        for one in (spec, FoldSpec.model_validate_json(earlier.model_dump_json())):
            assert classes_of(one) == fold
            drawn.training_data(one).check(one)
            tested.check_unseen(one)
        with pytest.raises(SplitError, match="test class"):
            setup.training_data(spec)
    final = drawn.final_spec(CONTRASTIVE, 0, 3)
    assert (classes_of(final).train, classes_of(final).validation) == (
        tuple(sorted({*fold.train, *fold.validation})),
        (),
    )
    assert set(drawn.training_data(final).train.labels.tolist()) == set(range(16)) - set(drawn.split.test)
    with pytest.raises(ValidationError, match="not both"):
        spec.changed(train_classes=((0, 1),))


def test_seeds_depend_on_purpose_number_and_fold_but_not_on_the_method(setup):
    seeds = {
        spec.seed
        for purpose in ("search", "reproduction")
        for number in range(5)
        for spec in setup.fold_specs(CONTRASTIVE, purpose, number)
    }
    assert len(seeds) == 2 * 5 * 4
    assert all(0 <= seed < 2**63 for seed in seeds)
    for one, other in zip(
        setup.fold_specs(CONTRASTIVE, "search", 0), setup.fold_specs(PROXIES, "search", 0), strict=True
    ):
        assert one.seed == other.seed
        assert one.fingerprint != other.fingerprint
