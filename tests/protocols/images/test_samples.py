"""Batches for training and evaluation: the same pixels or features whichever way they are made and kept."""

import pickle

import numpy as np
import pytest
import torch

from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.images import samples
from protocols.images import samples as prepared
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages, PackedImages
from protocols.images.samples import BatchSource, EvaluationCrops, FeatureSource
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.conditions import ImageSettings
from tests.support.feature_files import opened_features, some_features, write_features
from tests.support.packs import pack_arrays, training_batch
from tests.support.sample_records import evaluation_of
from tests.support.toys import CONTRASTIVE, IMAGES, pattern_dataset, settings, toy_fold

CPU = torch.device("cpu")
ROWS = [np.array(rows) for rows in ([2, 0, 5, 5], [1, 3, 4, 0], [5, 1, 2, 3], [4, 4, 0, 2], [3, 2, 1, 0])]
SETTINGS = ImageSettings(crop=24)


@pytest.fixture(params=[1, 3], ids=["grey", "colour"])
def images(tmp_path, request):
    pixels = np.random.default_rng(1).integers(0, 256, (9, 61, 47, request.param), dtype=np.uint8)
    packed = pack_arrays(pixels, tmp_path / "pack")
    # Some images of the pack, not in its order.
    return LabelledImages(np.array([7, 2, 3, 8, 0, 5]), np.zeros(6, dtype=np.int64), packed)


def _reference(images):
    generator = torch.Generator().manual_seed(4)
    return [training_batch(images, rows, SETTINGS, generator) for rows in ROWS]


@pytest.mark.parametrize("resident", [None, True, False])
def test_every_way_gives_the_same_bits(images, resident, monkeypatch):
    expected = _reference(images)
    monkeypatch.setattr(prepared, "PICTURE_BYTES", 0)  # The reference keeps its pictures.
    source, generator = BatchSource(images, SETTINGS, CPU, resident=resident), torch.Generator().manual_seed(4)
    for rows, crops in zip(ROWS, expected, strict=True):
        assert torch.equal(source.training_batch(rows, generator), crops)


def test_resident_images_are_read_once(images, monkeypatch):
    resident = BatchSource(images, SETTINGS, CPU, resident=True)
    expected = _reference(images)

    def gone(*_):
        raise AssertionError("pixels were sent again")

    monkeypatch.setattr(PackedImages, "image", gone)
    generator = torch.Generator().manual_seed(4)
    assert all(torch.equal(resident.training_batch(r, generator), e) for r, e in zip(ROWS, expected, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("resident", [None, False])
def test_a_gpu_sees_the_same_bits(images, resident):
    gpu = torch.device("cuda")
    source, generator = BatchSource(images, SETTINGS, gpu, resident=resident), torch.Generator().manual_seed(4)
    for rows, expected in zip(ROWS, _reference(images), strict=True):
        crops = source.training_batch(rows, generator)
        assert crops.device.type == "cuda"
        assert torch.equal(crops.cpu(), expected)


@pytest.fixture
def pictures(tmp_path):
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


def test_crops_are_made_once_and_stay_the_same(pictures, made):
    crops = EvaluationCrops(pictures, IMAGES, CPU)
    expected = evaluation_batch(pictures, np.arange(140), IMAGES)
    for _ in range(3):
        batches = list(crops.batches())
        assert [len(batch) for batch in batches] == [64, 64, 12]
        assert torch.equal(torch.cat(batches), expected)
    assert made == [0, 64, 128]


@pytest.mark.parametrize("why", ["no room", "not asked"])
def test_crops_beyond_the_bound_are_made_anew(pictures, made, monkeypatch, why):
    if why == "no room":
        monkeypatch.setattr(prepared, "HOST_BYTES", 140 * 3 * 8 * 8 - 1)
    crops = EvaluationCrops(pictures, IMAGES, CPU, keep=why == "no room")
    first, second = (torch.cat(list(crops.batches())) for _ in range(2))
    assert torch.equal(first, second)
    assert made == [0, 64, 128] * 2
    assert crops._crops is None


def test_a_pass_that_was_left_early_is_not_kept(pictures):
    crops = EvaluationCrops(pictures, IMAGES, CPU)
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
def test_a_gpu_keeps_the_same_crops(pictures, made, monkeypatch, kept_where):
    if kept_where == "cpu":
        monkeypatch.setattr(prepared, "DEVICE_BYTES", 0)
    crops = EvaluationCrops(pictures, IMAGES, torch.device("cuda"))
    for _ in range(2):
        batches = list(crops.batches())
        assert {batch.device.type for batch in batches} == {"cuda"}
        assert torch.equal(torch.cat(batches).cpu(), evaluation_batch(pictures, np.arange(140), IMAGES))
    assert made == [0]
    assert crops._crops is not None
    assert {batch.device.type for batch in crops._crops} == {kept_where}


LABELS = np.repeat(np.arange(16), 4)


@pytest.fixture
def features(tmp_path):
    return opened_features(write_features(tmp_path / "data", some_features(), LABELS), tmp_path / "cache").images


@pytest.fixture(params=["kept in memory", "read for each batch"])
def room(request, monkeypatch):
    if request.param == "read for each batch":
        monkeypatch.setattr(samples, "MEMORY_BYTES", 800)


def test_a_batch_has_the_rows_that_were_asked_for(features, room):
    chosen = features.of_classes((2, 5))
    source = FeatureSource(chosen, CPU)
    rows = np.asarray([7, 0, 3])
    batch = source.training_batch(rows, torch.Generator())
    assert batch.dtype == torch.float32
    assert np.array_equal(batch.numpy(), some_features()[[23, 8, 11]])


def test_an_evaluation_gets_all_rows_in_order(features, room):
    chosen = features.of_classes((1, 4, 9))
    batches = list(FeatureSource(chosen, CPU).batches())
    assert np.array_equal(torch.cat(batches).numpy(), some_features()[np.isin(LABELS, (1, 4, 9))])


def test_a_selection_gives_no_access_to_other_rows(features):
    chosen = features.of_classes((0,))
    assert len(chosen) == 4
    with pytest.raises(IndexError):
        chosen.take(np.asarray([4]))


def test_only_the_path_is_sent_to_other_processes(features):
    features.take(np.asarray([0]))
    sent = pickle.dumps(features)
    assert len(sent) < 1000 + features.rows.nbytes + features.labels.nbytes
    assert np.array_equal(pickle.loads(sent).take(np.asarray([3])), some_features()[[3]])
