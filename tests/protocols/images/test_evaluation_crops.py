"""Centre crops that are made once: the same crops, the same embeddings, and a bound on what is kept."""

import numpy as np
import pytest
import torch

from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.images import samples as prepared
from protocols.images.crops import evaluation_batch
from protocols.images.samples import EvaluationCrops
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from tests.support.sample_records import evaluation_of
from tests.support.toys import CONTRASTIVE, IMAGES, pattern_dataset, settings, toy_fold

CPU = torch.device("cpu")


@pytest.fixture
def images(tmp_path):
    # More than two batches, the last one partial.
    return pattern_dataset(tmp_path, classes=35, per_class=4, side=12).images


@pytest.fixture
def made(monkeypatch):
    """The first row of every batch that is cropped."""
    rows = []

    def spy(images, indices, *rest):
        rows.append(int(indices[0]))
        return evaluation_batch(images, indices, *rest)

    monkeypatch.setattr(prepared, "evaluation_batch", spy)
    return rows


def test_crops_are_made_once_and_stay_the_same(images, made):
    crops = EvaluationCrops(images, IMAGES, CPU)
    expected = evaluation_batch(images, np.arange(140), IMAGES)
    for _ in range(3):
        batches = list(crops.batches())
        assert [len(batch) for batch in batches] == [64, 64, 12]
        assert torch.equal(torch.cat(batches), expected)
    assert made == [0, 64, 128]


@pytest.mark.parametrize("why", ["no room", "not asked"])
def test_crops_beyond_the_bound_are_made_anew(images, made, monkeypatch, why):
    if why == "no room":
        monkeypatch.setattr(prepared, "HOST_BYTES", 140 * 3 * 8 * 8 - 1)
    crops = EvaluationCrops(images, IMAGES, CPU, keep=why == "no room")
    first, second = (torch.cat(list(crops.batches())) for _ in range(2))
    assert torch.equal(first, second)
    assert made == [0, 64, 128] * 2
    assert crops._crops is None


def test_a_pass_that_was_left_early_is_not_kept(images):
    crops = EvaluationCrops(images, IMAGES, CPU)
    next(crops.batches())
    assert len(torch.cat(list(crops.batches()))) == 140


def test_a_training_crops_its_validation_images_once(tmp_path, made):
    spec, data = toy_fold(pattern_dataset(tmp_path), CONTRASTIVE, settings(max_epochs=4, validate_every=1))
    result = train_fold(spec, data).result
    assert len(result.curve) == 5
    assert made == [0]


def test_a_runs_folds_share_the_test_crops(tmp_path, made):
    dataset = pattern_dataset(tmp_path)
    folds = [toy_fold(dataset, CONTRASTIVE, fold=fold) for fold in range(4)]
    weights = [EmbeddingModel(spec.conditions.trunk, 8).state_dict() for spec, _ in folds]
    job = evaluation_of(*(spec for spec, _ in folds))
    evaluate_run(job, weights, data_for_testing(dataset, mlrc_split(dataset.n_classes)))
    assert made == [0]


@pytest.mark.gpu
@pytest.mark.parametrize("kept_where", ["cuda", "cpu"])
def test_a_gpu_keeps_the_same_crops(images, made, monkeypatch, kept_where):
    if kept_where == "cpu":
        monkeypatch.setattr(prepared, "DEVICE_BYTES", 0)
    crops = EvaluationCrops(images, IMAGES, torch.device("cuda"))
    for _ in range(2):
        batches = list(crops.batches())
        assert {batch.device.type for batch in batches} == {"cuda"}
        assert torch.equal(torch.cat(batches).cpu(), evaluation_batch(images, np.arange(140), IMAGES))
    assert made == [0]
    assert crops._crops is not None
    assert {batch.device.type for batch in crops._crops} == {kept_where}
