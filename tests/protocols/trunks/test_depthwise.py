"""The depthwise convolution with a fast weight gradient against torch's own."""

import pytest
import torch
from torch.nn import functional

from protocols.trunks.depthwise import depthwise_5x5, has_fast_gradient


@pytest.mark.parametrize(
    ("side", "stride", "padding"), [(3, 1, 2), (6, 1, 2), (7, 1, 2), (9, 2, 0), (27, 2, 0), (5, 1, 0)]
)
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_result_and_gradients_are_torchs(side: int, stride: int, padding: int, layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    images, weight = torch.randn(4, 24, side, side).contiguous(memory_format=layout), torch.randn(24, 1, 5, 5)
    weight = weight.contiguous(memory_format=layout)
    outcomes = []
    for convolve in (
        lambda x, w: depthwise_5x5(x, w, stride, padding),
        lambda x, w: functional.conv2d(x, w, None, stride, padding, 1, 24),
    ):
        inputs = [images.clone().requires_grad_(), weight.clone().requires_grad_()]
        result = convolve(*inputs)
        outcomes.append([result.detach(), *torch.autograd.grad((result**2).sum(), inputs)])
    for value, expected in zip(*outcomes, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-3)


def test_only_depthwise_5x5_kernels_with_gradients_are_replaced() -> None:
    images = torch.randn(1, 8, 6, 6)
    kernel = torch.randn(8, 1, 5, 5, requires_grad=True)
    assert has_fast_gradient(images, kernel, 8)
    assert not has_fast_gradient(images, kernel.detach(), 8)
    assert not has_fast_gradient(images, torch.randn(8, 1, 3, 3, requires_grad=True), 8)
    assert not has_fast_gradient(images, torch.randn(8, 8, 5, 5, requires_grad=True), 1)
    with torch.autocast("cpu", torch.bfloat16):
        assert not has_fast_gradient(images, kernel, 8)
