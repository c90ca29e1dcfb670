"""A training step makes the host wait for the GPU only where a test here says so, and mixes no devices.

A pretended device with values takes the place of a GPU, so these tests run everywhere. What only a real GPU shows, such
as waits inside its libraries, they cannot see.
"""

import pytest
import torch

from protocols.datasets.dataset import Dataset
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.metrics import neighbours
from protocols.metrics.neighbours import nearest_in_parts
from protocols.splits import mlrc_split
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.records.records import FoldResult
from results.spec.training_spec import OptimizerSettings
from tests.support.methods_on_device import FIRST_STEP, WAITS_PER_STEP, methods_of_cards, waits_of_steps
from tests.support.pretended_device import DEVICE, MixedDevicesError, PretendedTensor, pretended_device
from tests.support.toys import pattern_dataset, same_weights, settings, toy_fold

STEPS = 5

# The pretended device cannot run them: one indexes with a list of tensors, one replaces the data of a parameter.
NOT_PRETENDED = {"histogram", "p2sgrad"}

METHODS = {
    name: method for name, method in methods_of_cards().items() if method.loss is not None and name not in NOT_PRETENDED
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


def losses_of(result: FoldResult) -> list[float]:
    return [-1.0 if point.loss is None else point.loss for point in result.curve]


@pytest.mark.parametrize("name", METHODS)
def test_a_step_waits_only_where_the_method_must(dataset: Dataset, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the losses and scores are those of the CPU."""
    place = EmbeddingModel.place

    def with_channels_last(model: EmbeddingModel, device: torch.device) -> EmbeddingModel:
        model.channels_last_on_cpu = True
        return place(model, device)

    # As on the device: another order in memory rounds otherwise, which some losses amplify from step to step.
    monkeypatch.setattr(EmbeddingModel, "place", with_channels_last)
    # At a higher rate some losses amplify rounding from step to step.
    spec, data = toy_fold(dataset, METHODS[name], settings(lr=1e-5, iterations_per_epoch=STEPS, max_epochs=2))
    on_cpu = train_fold(spec, data).result
    with pretended_device() as mode, waits_of_steps(mode) as steps:
        result = train_fold(spec, data, device=DEVICE).result
    assert losses_of(result) == pytest.approx(losses_of(on_cpu), rel=1e-3)
    assert result.best_map_at_r == pytest.approx(on_cpu.best_map_at_r, abs=0.05)
    assert (result.status, result.iterations, len(steps)) == ("ok", 2 * STEPS, 2 * STEPS)
    # The first step of an epoch may read state that changed since: once per epoch, which are 100 steps under MLRC.
    later = [step for number, step in enumerate(steps) if number % STEPS]
    assert max(step.total() for step in later) == WAITS_PER_STEP.get(name, 0), later[-1]
    first = FIRST_STEP.get(name, 2)
    assert max(step.total() for step in steps) <= WAITS_PER_STEP.get(name, 0) + first, steps


def test_the_validation_reads_the_losses_of_all_steps_at_once(dataset: Dataset) -> None:
    few, many = settings(iterations_per_epoch=1, max_epochs=1), settings(iterations_per_epoch=STEPS, max_epochs=1)
    totals = []
    for training in (few, many):
        with pretended_device() as mode:
            train_fold(*toy_fold(dataset, METHODS["normalized_softmax"], training), device=DEVICE)
        totals.append(mode.waits.total())
    assert totals[0] == totals[1] > 0


@pytest.mark.parametrize("name", ["normalized_softmax", "proxy_gml", "fastap"])
def test_a_training_that_diverges_has_the_record_of_the_cpu(dataset: Dataset, name: str) -> None:
    wild = settings(
        optimizer=OptimizerSettings(name="SGD", lr=1e30, arguments={}), iterations_per_epoch=STEPS, max_epochs=2
    )
    spec, data = toy_fold(dataset, METHODS[name], wild)
    on_cpu = train_fold(spec, data)
    with pretended_device():
        on_device = train_fold(spec, data, device=DEVICE)
    assert on_cpu.result.status == "nan"
    for field in ("status", "stopped_by", "reason", "iterations", "best_map_at_r", "flag"):
        assert getattr(on_device.result, field) == getattr(on_cpu.result, field), field
    assert len(on_device.result.curve) == len(on_cpu.result.curve)
    assert same_weights(on_device.weights, on_cpu.weights)


def test_the_test_evaluation_mixes_no_devices(dataset: Dataset) -> None:
    data = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    specs, weights = [], []
    for fold in range(2):
        spec, _ = toy_fold(dataset, METHODS["normalized_softmax"], fold=fold, seed=fold)
        torch.manual_seed(fold)
        specs.append(spec)
        weights.append(EmbeddingModel(spec.trunk, spec.embedding_size).state_dict())
    job = EvaluateJob(tuple(specs), "mlrc", {}, 0, 1, 1.0, (), 1)
    expected = evaluate_run(job, weights, data)
    with pretended_device():
        record = evaluate_run(job, weights, data, device=DEVICE)
    for kind in ("separated", "concatenated"):
        assert getattr(record, kind).model_dump() == pytest.approx(getattr(expected, kind).model_dump(), abs=0.02)


def test_retrieval_on_the_device_takes_fewer_parts_with_the_same_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "CHUNK_ELEMENTS", 1)
    # Whole numbers, so that products with few rows round like those with many.
    points = torch.randint(-9, 9, (300, 4), generator=torch.Generator().manual_seed(0)).float()
    depths = torch.full((300,), 5)
    on_cpu = list(nearest_in_parts(points, points, depths, exclude_self=True))
    with pretended_device() as mode:
        there = points.to(DEVICE)
        before = mode.waits["copy"]
        on_device = list(nearest_in_parts(there, there, depths, exclude_self=True))
    assert (len(on_cpu), len(on_device), mode.waits["copy"] - before) == (3, 1, 2)
    assert torch.equal(torch.cat([found for _, found in on_cpu]), on_device[0][1])


# The pretended device itself


def test_mixed_devices_are_refused() -> None:
    with pretended_device():
        there, here = torch.ones(3, device=DEVICE), torch.ones(3)
        assert isinstance(there, PretendedTensor)
        with pytest.raises(MixedDevicesError):
            there + here
        # A number goes along.
        assert (there + torch.tensor(2.0)).cpu().tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("cause", "work"),
    [
        ("_local_scalar_dense", lambda x: x.sum().item()),
        ("_local_scalar_dense", lambda x: bool(x.any())),
        ("nonzero", lambda x: x.nonzero()),
        ("nonzero", lambda x: torch.where(x > 0)),
        ("index by a mask", lambda x: x[x > 0]),
        ("index from the host", lambda x: x[torch.arange(2)]),
        ("copy", lambda x: x.cpu()),
        ("copy", lambda x: x.tolist()),
        ("copy", lambda x: torch.ones(3).to(x.device)),
        ("copy", lambda x: torch.tensor([1.0], device=x.device)),
    ],
)
def test_waits_are_counted(cause: str, work) -> None:
    with pretended_device() as mode:
        x = torch.arange(3.0, device=DEVICE)
        assert mode.waits.total() == 0
        work(x)
        assert mode.waits[cause] >= 1


def test_gradients_flow_on_the_pretended_device() -> None:
    with pretended_device():
        x = torch.arange(3.0, device=DEVICE).requires_grad_()
        (x.square().sum() + torch.where(x > 1, x, 0.0).sum()).backward()
        assert x.grad.tolist() == [0.0, 2.0, 5.0]
