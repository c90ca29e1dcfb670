"""CUDA graphs are only a way to execute: without CUDA a training says so and goes on, with CUDA the bits stay."""

from contextlib import nullcontext

import pytest
import torch

from protocols.datasets.dataset import Dataset
from protocols.training.torch_state import record_graph
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import PROXIES, pattern_dataset, same_weights, settings, toy_fold


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


def test_without_cuda_a_training_warns_once_and_goes_on(dataset: Dataset) -> None:
    spec, data = toy_fold(dataset, PROXIES, settings())
    plain = train_fold(spec, data)
    with pytest.warns(UserWarning, match="no CUDA graphs on cpu: the training goes on without them") as caught:
        graphed = train_fold(spec, data, cuda_graphs=True)
    assert len(caught) == 1
    assert same_weights(graphed.weights, plain.weights)
    assert graphed.result.curve == plain.result.curve


def test_a_model_that_cannot_be_recorded_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EmbeddingModel(TrunkSpec(name="small_conv", weights="random"), 8)
    before = {name: value.clone() for name, value in model.state_dict().items()}

    class OnGPU:
        device = torch.device("cuda")

        def clone(self) -> torch.Tensor:
            return torch.zeros(2, 3, 8, 8, dtype=torch.uint8)

    def fails(module: EmbeddingModel, samples: tuple[torch.Tensor]) -> None:
        module(*samples).sum().backward()
        module.forward = None
        raise RuntimeError("operation not permitted\nmore lines")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", fails)
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: nullcontext())
    with pytest.warns(UserWarning, match="no CUDA graph of SmallConv: operation not permitted$"):
        assert not record_graph(model, OnGPU())  # type: ignore[arg-type]
    assert same_weights(model.state_dict(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)).shape == (2, 8)


@pytest.mark.gpu
def test_a_graph_keeps_the_bits(dataset: Dataset) -> None:
    spec, data = toy_fold(dataset, PROXIES, settings())
    plain = train_fold(spec, data, device="cuda")
    graphed = train_fold(spec, data, device="cuda", cuda_graphs=True)
    assert same_weights(graphed.weights, plain.weights)
