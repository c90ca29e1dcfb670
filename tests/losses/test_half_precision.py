"""With embeddings in half precision every loss computes in float32: no sum ends at float16's 65,504."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from protocols.training.build_method import BuiltMethod, build_method
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_names
from reproduce.config.open_method import load_card, open_method

pytestmark = pytest.mark.late

C, D, B = 40, 64, 160
EARLY = {
    "c1_xbm": {"loss.start_iteration": 0, "loss.memory_size": 512},
    "c2_xbm": {"loss.start_iteration": 0, "loss.memory_size": 512},
    "proxy_isa": {"loss.memory_size": 512},
}


def near_collapse(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Embeddings of which all pairs are close, as early in a training: nearly every pair has a loss."""
    generator = torch.Generator().manual_seed(0)
    embeddings = 2 * (1 + 0.05 * torch.randn(B, D, generator=generator))
    return embeddings.to(dtype), torch.arange(B) % C


def built(name: str) -> BuiltMethod | None:
    (experiment,) = load_experiments("quickstart", {}).values()
    method = open_method(experiment, load_card(name)).at(EARLY.get(name, {}))
    torch.manual_seed(0)
    return build_method(method, [5000 // C] * C, D, B) if method.loss else None


def value_and_gradient(
    compute: Callable[[Tensor, Tensor], Tensor], embeddings: Tensor, labels: Tensor, *, autocast: bool = False
) -> list[Tensor]:
    embeddings = embeddings.detach().clone().requires_grad_()
    torch.manual_seed(0)  # Some draw pairs.
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


@pytest.mark.parametrize("name", card_names())
def test_every_card_on_the_host(name: str) -> None:
    method = built(name)
    if method is None:
        return
    embeddings, labels = near_collapse(torch.float16)
    single = value_and_gradient(copy.deepcopy(method), embeddings.float(), labels)
    compared(value_and_gradient(copy.deepcopy(method), embeddings, labels, autocast=True), single)
    # A network whose last layer is in float32.
    compared(value_and_gradient(method, embeddings.float(), labels, autocast=True), single)
