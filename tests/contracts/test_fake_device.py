"""Every card's training, the test evaluation, retrieval and crops on a GPU without values (`tests/support`).

torch's own rules for `cuda` say on which device every result is, and refuse operations between two devices.
"""

import numpy as np
import pytest
import torch

from losses import NIRLoss
from losses.checks import values_are_checked
from protocols.datasets.dataset import Dataset
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.images.batch_source import BatchSource
from protocols.jobs import EvaluateJob
from protocols.metrics import neighbours
from protocols.metrics.neighbours import nearest_in_parts
from protocols.splits import mlrc_split
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.methods_on_device import WAITS_PER_STEP, methods_of_cards, waits_of_steps
from tests.support.pretended_device import DEVICE, pretended_device
from tests.support.toys import pattern_dataset, settings, toy_fold

STEPS = 3

METHODS = methods_of_cards()

ONE_OF_EACH_ROW = "picks one entry of each row by a mask, and the number of picked entries decides the next shapes"
NOT_SIMULATED = {
    "hist": "torch built for CPUs has no rule for batch norm with statistics of the batch on cuda",
    "histogram": "the number of different bins decides the next shapes",
    "large_margin_softmax": ONE_OF_EACH_ROW,
    "margin_distance_weighted": "leaves the diagonal out by a mask, and the rest is a matrix only then",
    "sphereface": ONE_OF_EACH_ROW,
    "subcenter_arcface": ONE_OF_EACH_ROW,
}
"""Why a card's training needs values. All but `histogram` train on the device with values."""

NOTHING_WRONG = {
    "circle",
    "lifted_structure_generalized",
    "multi_similarity_miner",
    "supcon",
    "threshold_consistent_margin",
}
"""These ask whether any pair is both positive and negative: `any()` is assumed to be false."""

FEWER_WAITS = {"fastap": 3, "pnp": 3, "supcon": 4}
"""Waits in a step where the assumed values lead to a shorter way than real ones."""

MONITOR = 2 * STEPS
FLOAT64 = {
    # exp(nll) of every sample, which overflows float32.
    **dict.fromkeys(["nir_proxy_anchor", "nir_proxy_nca", "nir_soft_triple"], 8),
    # The queue's sum of each class, which is carried on for the whole training.
    "proxy_isa": 64,
}
"""The most numbers in float64 of one operation; elsewhere two for each step, which the validation reads at once."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - NOT_SIMULATED.keys()))
def test_a_training_stays_on_the_device(dataset: Dataset, name: str) -> None:
    """Steps with hooks, backward and optimizer, and the validations before and after them."""
    spec, data = toy_fold(dataset, METHODS[name], settings(lr=1e-3, iterations_per_epoch=STEPS, max_epochs=1))
    with pretended_device(fake=True, assumed_any=name not in NOTHING_WRONG) as mode, waits_of_steps(mode) as steps:
        result = train_fold(spec, data, device=DEVICE).result
    assert result.status == "ok", result.reason
    assert len(steps) == (STEPS if spec.method.loss else 0)
    waits = FEWER_WAITS.get(name, WAITS_PER_STEP.get(name, 0))
    assert [step.total() for step in steps[1:]] == [waits] * (len(steps) - 1), steps
    assert max(mode.float64.values(), default=0) <= FLOAT64.get(name, MONITOR), mode.float64


def test_every_card_that_is_not_simulated_exists() -> None:
    assert NOT_SIMULATED.keys() | NOTHING_WRONG <= METHODS.keys()


def test_the_test_evaluation_stays_on_the_device(dataset: Dataset) -> None:
    data = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    specs = [toy_fold(dataset, METHODS["contrastive"], fold=fold, seed=fold)[0] for fold in range(2)]
    weights = [EmbeddingModel(spec.trunk, spec.embedding_size).state_dict() for spec in specs]
    with pretended_device(fake=True) as mode:
        record = evaluate_run(EvaluateJob(tuple(specs), "mlrc", {}, 0, 1, 1.0, (), 1), weights, data, device=DEVICE)
    assert record.concatenated is not None
    assert not mode.float64


def test_retrieval_waits_for_large_parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # All masks are assumed true, so every row seems to end in a tie.
    monkeypatch.setattr(neighbours, "_SORTED_ROWS", 60_502)
    n = 60_502
    with pretended_device(fake=True) as mode:
        embeddings = torch.zeros(n, 512, device=DEVICE)
        parts = list(nearest_in_parts(embeddings, embeddings, torch.full((n,), 4), exclude_self=True))
    assert sum(len(rows) for rows, _ in parts) == n
    assert len(parts) == 28
    # The indices of the queries go there, ties are looked for, the neighbours come back.
    assert +mode.waits == {"copy": 2 * len(parts), "nonzero": len(parts)}
    assert not mode.float64


@pytest.mark.parametrize("resident", [False, True])
def test_crops_on_the_device_need_no_wait(dataset: Dataset, resident: bool) -> None:
    _, data = toy_fold(dataset)
    images = ImageSettings(resize=None, crop=8, augmentation="device")
    with pretended_device(fake=True) as mode:
        source = BatchSource(data.train, images, torch.device(DEVICE), resident=resident)
        before = mode.waits.total()
        rows = [np.arange(8), np.arange(8, 16)]
        crops = [crops for _, crops in source.training_batches(rows, torch.Generator().manual_seed(0))]
    assert [tuple(each.shape) for each in crops] == [(8, 3, 8, 8)] * 2
    assert all(each.device.type == "cuda" for each in crops)
    assert mode.waits.total() == before


def test_a_step_of_full_size_stays_on_the_device() -> None:
    with pretended_device(fake=True) as mode:
        model = (
            EmbeddingModel(TrunkSpec(name="bn_inception", weights="random"), 128).place(torch.device(DEVICE)).train()
        )
        waits = mode.waits.total()
        embeddings = model(torch.zeros(32, 3, 227, 227, dtype=torch.uint8, device=DEVICE))
        embeddings.sum().backward()
    assert embeddings.shape == (32, 128)
    assert all(p.grad is not None and p.grad.device.type == "cuda" for p in model.parameters())
    assert mode.waits.total() == waits
    assert not mode.float64


def test_a_step_of_nir_starts_few_operations() -> None:
    """805 before the flow's halves had gradients of their own, each in few operations."""
    loss = NIRLoss.from_card(base_loss="proxy_anchor", embedding_size=128, num_classes=50)
    with pretended_device(fake=True) as mode, values_are_checked():
        loss.to(DEVICE)
        embeddings = torch.zeros(32, 128, device=DEVICE).requires_grad_()
        labels = torch.zeros(32, dtype=torch.int64, device=DEVICE)
        before = mode.operations
        loss(embeddings, labels).backward()
    assert mode.operations - before <= 690
