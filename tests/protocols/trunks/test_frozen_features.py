"""Features of a frozen trunk: equal to those of the model, computed once, continued after an interruption."""

import numpy as np
import pytest
import torch

from protocols.datasets.dataset_registry import open_dataset
from protocols.images.samples import EvaluationCrops
from protocols.machine.torch_state import use_precision
from protocols.trunks import frozen_features
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.frozen_features import features_name, with_features
from results.spec.conditions import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.image_folders import data_request, make_folder

SETTINGS = ImageSettings(resize=32, crop=32)
TRUNK = TrunkSpec(name="efficientnet_lite0", frozen=True), SETTINGS
CPU = torch.device("cpu")


@pytest.fixture
def dataset(tmp_path):
    make_folder(tmp_path / "images", per_class=10)
    return open_dataset(data_request(tmp_path / "images", tmp_path / "packs", images=SETTINGS))


def matrix(dataset):
    return dataset.images.take(np.arange(len(dataset.images)))


def test_features_are_those_of_the_trunk_in_the_order_of_the_images(dataset, tmp_path):
    featured = with_features(dataset, *TRUNK, tmp_path / "cache", "cpu")
    model = EmbeddingModel(TRUNK[0], None).place(CPU).eval()
    with torch.no_grad():
        crops = EvaluationCrops(dataset.images, SETTINGS, CPU).batches()
        expected = torch.cat([model.features(batch) for batch in crops])
    assert np.array_equal(matrix(featured), expected.numpy())
    assert np.array_equal(featured.images.labels, dataset.images.labels)
    assert featured.fingerprint == dataset.fingerprint


def test_features_are_in_float32_whatever_was_trained_before(dataset, tmp_path, monkeypatch):
    seen = set()
    features = EmbeddingModel.features

    def spy(model, images):
        seen.add((torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision))
        return features(model, images)

    monkeypatch.setattr(EmbeddingModel, "features", spy)
    use_precision("amp")
    with_features(dataset, *TRUNK, tmp_path / "cache", "cpu")
    assert seen == {("ieee", "ieee")}


def test_features_are_computed_once(dataset, tmp_path, monkeypatch):
    state = torch.get_rng_state()
    first = with_features(dataset, *TRUNK, tmp_path / "cache", "cpu")
    assert torch.equal(torch.get_rng_state(), state), "the random numbers of the process did not change"
    monkeypatch.setattr(frozen_features, "_compute", lambda *_: pytest.fail("computed again"))
    assert with_features(dataset, *TRUNK, tmp_path / "cache", "cpu").images.path == first.images.path


def test_an_interrupted_computation_is_continued(dataset, tmp_path):
    whole = matrix(with_features(dataset, *TRUNK, tmp_path / "whole", "cpu"))
    seen = []

    def interrupt(done, total):
        seen.append(done)
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_features(dataset, *TRUNK, tmp_path / "cache", "cpu", interrupt)
    continued = with_features(dataset, *TRUNK, tmp_path / "cache", "cpu", interrupt)
    assert seen == [64, 80], "the second call computed only the images that were left"
    assert np.array_equal(matrix(continued), whole)


@pytest.mark.parametrize(
    "other",
    [
        (TRUNK[0], ImageSettings(resize=32, crop=24)),
        (TRUNK[0], ImageSettings(resize=32, crop=32, evaluation_resize=40)),
        (TRUNK[0].model_copy(update={"pooling": "average_max"}), SETTINGS),
        (TRUNK[0].model_copy(update={"weights": "sha256:0"}), SETTINGS),
    ],
)
def test_everything_that_decides_features_is_in_their_name(other):
    assert features_name("data", *other) != features_name("data", *TRUNK)
    assert features_name("data", *TRUNK) != features_name("other data", *TRUNK)
