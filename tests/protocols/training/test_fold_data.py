"""What a training may see and what only an evaluation may see."""

from dataclasses import fields, replace

import numpy as np
import pytest

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import SplitError, mlrc_split
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.training.fold_data import FoldData
from tests.support.toys import toy_fold


@pytest.mark.parametrize("fold", range(4))
def test_a_fold_holds_its_own_classes_only(dataset: Dataset, fold: int) -> None:
    split = mlrc_split(16)
    _, data = toy_fold(dataset, fold=fold)
    assert set(data.train.labels.tolist()) == set(split.folds[fold].train)
    assert set(data.validation.labels.tolist()) == set(split.folds[fold].validation)
    assert len(data.train) + len(data.validation) == 8 * 4
    rows = set(data.train.rows.tolist()) | set(data.validation.rows.tolist())
    test = data_for_testing(dataset, split)
    assert set(test.images.labels.tolist()) == set(split.test)
    assert not rows & set(test.images.rows.tolist())
    assert {field.name for field in fields(FoldData)} == {"train", "validation"}


def test_targets_count_from_0_in_rank_order(dataset: Dataset) -> None:
    # Fold 2 trains on ranks 4 to 7, 0 and 1.
    _, data = toy_fold(dataset, fold=2)
    target_of = dict(zip(data.train.labels.tolist(), data.train_targets.tolist(), strict=True))
    assert target_of == {0: 0, 1: 1, 4: 2, 5: 3, 6: 4, 7: 5}
    assert data.train_targets.dtype == np.int64


@pytest.mark.parametrize("part", ["train", "validation"])
@pytest.mark.parametrize("classes", [(0,), (0, 1, 2, 3, 4, 5, 9), (6, 7, 9), (6,), ()])
def test_other_classes_are_found(dataset: Dataset, part: str, classes: tuple[int, ...]) -> None:
    spec, data = toy_fold(dataset)
    with pytest.raises(SplitError, match=r"^fold 0: "):
        replace(data, **{part: dataset.images.of_classes(classes)}).check(spec)


def test_the_images_of_another_fold_are_found(dataset: Dataset) -> None:
    with pytest.raises(SplitError, match=r"^fold 0: the classes of the images differ from those in the specification"):
        toy_fold(dataset, fold=1)[1].check(toy_fold(dataset)[0])
