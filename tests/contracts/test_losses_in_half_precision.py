"""With embeddings in half precision every loss computes in float32: no sum ends at float16's 65,504."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import losses
from protocols.training.build_method import BuiltMethod, build_method
from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.method_on_dataset import open_method
from results.spec.training_spec import MethodSpec

C, D, B = 40, 128, 160
EARLY = {
    "c1_xbm": {"loss.start_iteration": 0, "loss.memory_size": 512},
    "c2_xbm": {"loss.start_iteration": 0, "loss.memory_size": 512},
    "proxy_isa": {"loss.memory_size": 512},
}


def trained_methods() -> dict[str, MethodSpec]:
    (experiment,) = load_experiments("quickstart", {}).values()
    methods = {name: open_method(experiment, load_card(name)).at(EARLY.get(name, {})) for name in card_names()}
    return {name: method for name, method in methods.items() if method.loss is not None}


METHODS = trained_methods()


def near_collapse(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Embeddings of which all pairs are close, as early in a training: nearly every pair has a loss."""
    generator = torch.Generator().manual_seed(0)
    embeddings = 2 * (1 + 0.05 * torch.randn(B, D, generator=generator))
    return embeddings.to(dtype), torch.arange(B) % C


def built(name: str) -> BuiltMethod:
    torch.manual_seed(0)
    return build_method(METHODS[name], C, D, 5000, B)


def value_and_gradient(
    compute: Callable[[Tensor, Tensor], Tensor], embeddings: Tensor, labels: Tensor, *, autocast: bool = False
) -> list[Tensor]:
    embeddings = embeddings.detach().clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.float16, enabled=autocast):
        value = compute(embeddings, labels)
    value.backward()
    gradient = embeddings.grad
    assert gradient is not None
    return [value.detach().cpu(), gradient.cpu()]


def compared(half: list[Tensor], single: list[Tensor]) -> None:
    value, gradient = half
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, single[0], rtol=1e-5, atol=1e-6)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient.float(), single[1].to(gradient.dtype).float(), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_every_card_on_the_host(name: str) -> None:
    embeddings, labels = near_collapse(torch.float16)
    single = value_and_gradient(built(name), embeddings.float(), labels)
    compared(value_and_gradient(built(name), embeddings, labels), single)
    compared(value_and_gradient(built(name), embeddings, labels, autocast=True), single)
    # A network whose last layer is in float32.
    compared(value_and_gradient(built(name), embeddings.float(), labels, autocast=True), single)


OWN: dict[str, Callable[[], Any]] = {
    "ArcFaceLoss": lambda: losses.ArcFaceLoss(C, D),
    "CosFaceLoss": lambda: losses.CosFaceLoss(C, D),
    "CosineContrastiveLoss": losses.CosineContrastiveLoss,
    "SignalToNoiseRatioContrastiveLoss": losses.SignalToNoiseRatioContrastiveLoss,
    "CosineContrastiveLoss in a queue": lambda: losses.XBMLoss(losses.CosineContrastiveLoss(), D, 512, 0),
}


@pytest.mark.parametrize("name", OWN)
def test_losses_in_loops_of_others(name: str) -> None:
    embeddings, labels = near_collapse(torch.float16)
    torch.manual_seed(0)
    single = value_and_gradient(OWN[name](), embeddings.float(), labels)
    torch.manual_seed(0)
    loss: nn.Module = OWN[name]()
    dtypes = [parameter.dtype for parameter in loss.parameters()]
    compared(value_and_gradient(loss, embeddings, labels), single)
    assert [parameter.dtype for parameter in loss.parameters()] == dtypes


def test_references_in_half_precision() -> None:
    embeddings, labels = near_collapse(torch.float16)
    loss = losses.CosineContrastiveLoss()
    others, other_labels = embeddings.flip(0), labels.flip(0)
    expected = loss(embeddings.float(), labels, None, others.float(), other_labels)
    assert loss(embeddings, labels, None, others, other_labels) == expected


def test_the_sum_over_a_batch() -> None:
    many, batch = torch.full((5000,), 40.0, dtype=torch.float16), torch.ones(100, 2)
    assert losses.pair_losses.BatchSumReducer().pos_pair_reduction(many, None, batch, torch.ones(100)) == 2000
