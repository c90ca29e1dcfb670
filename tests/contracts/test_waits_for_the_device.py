"""A training step makes the host wait for the GPU only where a test here says so, and mixes no devices.

A pretended device takes the place of a GPU, so these tests run everywhere. What only a real GPU shows, such as waits
inside its libraries, they cannot see.
"""

from collections import Counter

import pytest
import torch

from protocols.datasets.dataset import Dataset
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.splits import mlrc_split
from protocols.training import train_fold as training_module
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.method_on_dataset import open_method
from results.records.records import FoldResult
from results.spec.training_spec import MethodSpec, OptimizerSettings
from tests.support.pretended_device import DEVICE, MixedDevicesError, PretendedDevice, PretendedTensor, pretended_device
from tests.support.toys import pattern_dataset, same_weights, settings, toy_fold

STEPS = 5

WAITS_PER_STEP = {
    # pytorch-metric-learning's class, whose histogram is filled through masks.
    "fastap": 15,
    # The miner lists the pairs that it picks; the lists' lengths depend on the embeddings.
    "multi_similarity_miner": 5,
    # A step with gradients that are not finite is skipped: the host must know before the optimizer's step.
    "nir_proxy_anchor": 1,
    "nir_proxy_nca": 1,
    "nir_soft_triple": 1,
    # The pairs of a class are listed; their number, and that of the queries among the samples, depends on the labels.
    "recall_at_k": 2,
    "roadmap": 1,
    "smooth_ap": 1,
    # pytorch-metric-learning's classes as they are, which list pairs or triplets, or pick entries by masks.
    **{"angular": 2, "circle": 13, "epshn": 8, "intra_pair_variance": 4, "large_margin_softmax": 3},
    **{"lifted_structure": 2, "lifted_structure_generalized": 3, "margin_distance_weighted": 20, "nca": 4},
    **{"npair": 6, "pnp": 7, "ranked_list": 16, "sphereface": 3, "subcenter_arcface": 3, "supcon": 5},
    **{"threshold_consistent_margin": 7, "triplet_semihard": 4, "tuplet_margin": 2},
}
"""The methods whose loss or miner needs waits, with their number in a step; all others have none."""

FIRST_STEP = {"large_margin_softmax": 4, "sphereface": 4}
"""Further waits in the first step where they are more than two: the library moves constants of the loss then."""

# The pretended device cannot run them: one indexes with a list of tensors, one replaces the data of a parameter.
NOT_PRETENDED = {"histogram", "p2sgrad"}

# Starts every part of the loss within the few steps of the test.
EARLY = {
    "c1_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "c2_xbm": {"loss.start_iteration": 1, "loss.memory_size": 12},
    "proxy_isa": {"loss.memory_start_pass": 0, "loss.filter_start_pass": 0, "loss.memory_size": 20},
}


def trained_methods() -> dict[str, MethodSpec]:
    (experiment,) = load_experiments("quickstart", {}).values()
    methods = {}
    for name in card_names():
        method = open_method(experiment, load_card(name)).at(EARLY.get(name, {}))
        if method.loss is not None and name not in NOT_PRETENDED:
            methods[name] = method
    return methods


METHODS = trained_methods()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


def losses_of(result: FoldResult) -> list[float]:
    return [-1.0 if point.loss is None else point.loss for point in result.curve]


def waits_of_steps(monkeypatch: pytest.MonkeyPatch, mode: PretendedDevice) -> list[Counter[str]]:
    """The waits of each step of a training, filled while it runs."""
    steps: list[Counter[str]] = []
    step = training_module._Training._step

    def counted(training: training_module._Training, epoch: int) -> None:
        before = mode.waits.copy()
        step(training, epoch)
        steps.append(mode.waits - before)

    monkeypatch.setattr(training_module._Training, "_step", counted)
    return steps


@pytest.mark.parametrize("name", METHODS)
def test_a_step_waits_only_where_the_method_must(dataset: Dataset, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the losses and scores are those of the CPU."""
    # At a higher rate some methods collapse; then rounding decides the order of nearly equal embeddings.
    spec, data = toy_fold(dataset, METHODS[name], settings(lr=1e-3, iterations_per_epoch=STEPS, max_epochs=2))
    on_cpu = train_fold(spec, data).result
    with pretended_device() as mode:
        steps = waits_of_steps(monkeypatch, mode)
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
