"""When a training's steps are replayed as graphs, and that everything else goes on as it was."""

import logging

import pytest
import torch
from torch import nn

from protocols.machine.torch_state import isolated_random_numbers, use_precision
from protocols.training.step_network import StepNetwork
from protocols.trunks.bn_inception import BNInception
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.trunk_spec import TrunkSpec
from tests.support.pretended_device import DEVICE, pretended_device
from tests.support.toys import settings

GPU = torch.device(DEVICE)


@pytest.fixture
def device():
    with pretended_device():
        yield


def model_on_device(batch_norm="training", dropout=0.0, trunk="small_conv"):
    torch.manual_seed(0)
    spec = TrunkSpec(name=trunk, weights="random", batch_norm=batch_norm)
    model = EmbeddingModel(spec, 8)
    if trunk == "small_conv":
        features = int(model.trunk.features)
        model.trunk = nn.Sequential(model.trunk, nn.BatchNorm2d(features), nn.Dropout(dropout))
    return model.place(GPU).train()


def batch(number, side=16):
    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, 256, (4, 3, side, side), dtype=torch.uint8, generator=generator).to(GPU)


def trained(model, network, steps=4, side=16, backwards=1):
    """Take some steps; return what the model embeds afterwards."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(1)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        embeddings = network(batch(step, side), warmup=False)
        for left in reversed(range(backwards)):
            (embeddings[:2] - embeddings[2:]).square().sum().backward(retain_graph=left > 0)
        # A graph of autograd that lives on would be part of the capture.
        del embeddings
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model(batch(99, side)).cpu()


def eager(model):
    return StepNetwork(model, settings(gradient_cache=100), GPU)


def test_steps_are_replayed_from_the_second_on_and_running_statistics_count_them_once(device):
    model, other = model_on_device(), model_on_device()
    network = StepNetwork(model, settings(), GPU)
    assert torch.equal(trained(model, network, steps=1), trained(other, eager(other), steps=1))
    assert not network.uses_graphs
    model.train(), other.train()
    assert torch.equal(trained(model, network), trained(other, eager(other)))
    assert network.uses_graphs
    counts = [module.num_batches_tracked for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {int(count) for count in counts if count is not None} == {5}
    network.release()
    assert not network.uses_graphs


@pytest.mark.parametrize("why", ["dropout", "not captured", "two backwards"])
def test_what_graphs_do_not_take_is_trained_eagerly_with_the_same_numbers(device, why, monkeypatch, caplog):
    if why == "not captured":

        def refused(*_, **__):
            raise RuntimeError("operation not permitted when stream is capturing\nlong")

        monkeypatch.setattr(torch.cuda, "make_graphed_callables", refused)
    dropout, backwards = 0.5 if why == "dropout" else 0.0, 2 if why == "two backwards" else 1
    model, other = model_on_device(dropout=dropout), model_on_device(dropout=dropout)
    network = StepNetwork(model, settings(), GPU)
    with caplog.at_level(logging.WARNING):
        found = trained(model, network, backwards=backwards)
    assert torch.equal(found, trained(other, eager(other), backwards=backwards))
    assert not network.uses_graphs
    said = {"dropout": "gradients differ by", "not captured": "not permitted when stream is capturing"}
    assert [said[why] in record.message for record in caplog.records] == ([True] if why in said else [])


def test_a_frozen_trunk_waits_and_another_shape_is_eager(device):
    model = model_on_device("frozen")
    network = StepNetwork(model, settings(), GPU)
    for step in range(3):
        network(batch(step), warmup=True)
    assert not network.uses_graphs
    for step in range(2):
        network(batch(step), warmup=False).sum().backward()
    assert network.uses_graphs
    assert network(batch(0)[:3], warmup=False).shape == (3, 8)


def test_a_loss_that_goes_back_twice_only_later_is_stopped(device):
    model = model_on_device()
    network = StepNetwork(model, settings(), GPU)
    trained(model, network)
    with pytest.raises(RuntimeError, match="back through the network twice"):
        trained(model.train(), network, backwards=2)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "ieee", "amp"])
@pytest.mark.parametrize(("trunk", "side", "norms"), [("bn_inception", 96, "frozen"), ("small_conv", 32, "training")])
def test_a_gpu_replays_what_it_computes_eagerly(precision, trunk, side, norms):
    use_precision(precision)
    found = []
    with isolated_random_numbers(DEVICE):
        for graphs, merges in ((True, True), (True, True), (False, True), (False, False)):
            model = model_on_device(norms, trunk=trunk)
            model.precision = precision
            if isinstance(model.trunk, BNInception):
                model.trunk.merges_layers = merges
            network = StepNetwork(model, settings(precision=precision), GPU) if graphs else eager(model)
            found.append(trained(model, network, steps=6, side=side))
            assert network.uses_graphs == graphs
    assert torch.equal(found[0], found[1])
    # Merged layers round weights to bfloat16 behind the norm, plain ones before it.
    for other, most in ((found[2], 1e-3), (found[3], 0.03 if precision == "amp" else 1e-3)):
        assert (other - found[0]).norm() <= most * found[0].norm()


@pytest.mark.gpu
def test_a_gpu_trains_a_network_with_dropout_eagerly():
    model, other = model_on_device(dropout=0.5), model_on_device(dropout=0.5)
    network = StepNetwork(model, settings(), GPU)
    torch.testing.assert_close(trained(model, network), trained(other, eager(other)), rtol=1e-3, atol=1e-4)
    assert not network.uses_graphs
