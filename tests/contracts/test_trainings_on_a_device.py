"""Every card's training, the test evaluation and crops on a pretended GPU: they mix no devices and give equal results.

The pretended device takes the place of a GPU, so these tests run everywhere. What only a real GPU shows, such as errors
inside its libraries, they cannot see.
"""

import numpy as np
import pytest
import torch

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.images.samples import BatchSource
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.open_method import load_card, open_method
from results.records.records import FoldResult
from results.spec.conditions import ImageSettings
from results.spec.method import Method
from tests.support.pretended_device import DEVICE, pretended_device
from tests.support.sample_records import evaluation_of
from tests.support.toys import pattern_dataset, settings, toy_fold

pytestmark = pytest.mark.late

# Starts every part of the loss within the few steps of the test.
EARLY = {
    "c1_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "c2_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "memvir_proxy_anchor": {"loss.steps": 2, "loss.gap": 0},
    "proxy_isa": {"loss.memory_start_pass": 0, "loss.filter_start_pass": 0, "loss.memory_size": 20},
}


def method_of(name: str) -> Method:
    (experiment,) = load_experiments("quickstart", {}).values()
    return open_method(experiment, load_card(name)).method.at(EARLY.get(name, {}))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


def losses_of(result: FoldResult) -> list[float]:
    return [-1.0 if point.loss is None else point.loss for point in result.curve]


@pytest.mark.parametrize("name", card_names())
def test_a_training_stays_on_the_device(dataset: Dataset, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_of(name)
    if method.loss is None:
        return
    place = EmbeddingModel.place

    def with_channels_last(model: EmbeddingModel, device: torch.device) -> EmbeddingModel:
        model.channels_last_on_cpu = True
        return place(model, device)

    # As on the device: another order in memory rounds otherwise, which some losses amplify from step to step.
    monkeypatch.setattr(EmbeddingModel, "place", with_channels_last)
    # At a higher rate some losses amplify rounding from step to step.
    spec, data = toy_fold(dataset, method, settings(lr=1e-5, iterations_per_epoch=3, max_epochs=1))
    on_cpu = train_fold(spec, data).result
    with pretended_device():
        result = train_fold(spec, data, device=DEVICE).result
    assert result.status == "ok", result.reason
    assert losses_of(result) == pytest.approx(losses_of(on_cpu), rel=1e-3)
    assert result.best_map_at_r == pytest.approx(on_cpu.best_map_at_r, abs=0.05)


def test_the_test_evaluation_mixes_no_devices(dataset: Dataset) -> None:
    data = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    specs, weights = [], []
    for fold in range(2):
        spec, _ = toy_fold(dataset, method_of("normalized_softmax"), fold=fold, seed=fold)
        torch.manual_seed(fold)
        specs.append(spec)
        weights.append(EmbeddingModel(spec.conditions.trunk, spec.conditions.embedding_size).state_dict())
    job = evaluation_of(*specs)
    expected = evaluate_run(job, weights, data)
    with pretended_device():
        record = evaluate_run(job, weights, data, device=DEVICE)
    for kind in ("separated", "concatenated"):
        assert getattr(record, kind).model_dump() == pytest.approx(getattr(expected, kind).model_dump(), abs=0.02)


@pytest.mark.parametrize("resident", [False, True])
def test_crops_are_made_on_the_device(dataset: Dataset, resident: bool) -> None:
    _, data = toy_fold(dataset)
    images = ImageSettings(resize=None, crop=8)
    with pretended_device() as mode:
        source = BatchSource(data.train, images, torch.device(DEVICE), resident=resident)
        rows = [np.arange(8), np.arange(8, 16)]
        crops = [source.training_batch(part, torch.Generator().manual_seed(0)) for part in rows]
    assert [tuple(each.shape) for each in crops] == [(8, 3, 8, 8)] * 2
    assert all(each.device.type == "cuda" for each in crops)
    assert mode.reads == 0
