"""Depthwise 5 x 5 convolution whose weight gradient is fast on a CPU.

oneDNN has a fast weight gradient of depthwise convolutions for kernels of 3 x 3 only; for 5 x 5 it uses its reference
code. Four 3 x 3 corners cover a 5 x 5 kernel, and the gradient of each is that of a 3 x 3 convolution of the image from
the corner's offset on.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from protocols.trunks.zero_border import with_zero_border

_CORNERS = ((0, 0), (0, 2), (2, 0), (2, 2))


def has_fast_gradient(images: Tensor, weight: Tensor, groups: int) -> bool:
    """Tell whether `depthwise_5x5` replaces a convolution: depthwise, 5 x 5, float32, on a CPU, without autocast."""
    depthwise = groups == weight.shape[0] and weight.shape[1:] == (1, 5, 5)
    plain = images.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return depthwise and plain and images.device.type == "cpu" and weight.requires_grad


def depthwise_5x5(images: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """Convolve images (n, c, h, w) with a kernel (c, 1, 5, 5) per channel; equal to torch's `conv2d`."""
    result: Tensor = _Depthwise.apply(images, weight, stride, padding)  # type: ignore[no-untyped-call]
    return result


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        ctx.save_for_backward(images, weight)
        ctx.stride, ctx.padding = stride, padding
        return functional.conv2d(images, weight, None, stride, padding, 1, len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_result: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        images, weight = ctx.saved_tensors
        by_images = by_weight = None
        if ctx.needs_input_grad[0]:
            by_images = _gradients(by_result, images, weight, ctx.stride, ctx.padding, (True, False))[0]
        if ctx.needs_input_grad[1]:
            by_weight = torch.empty_like(weight)
            padded = with_zero_border(images, ctx.padding, ctx.padding) if ctx.padding else images
            height, width = ((side - 1) * ctx.stride + 3 for side in by_result.shape[2:])
            for top, left in _CORNERS:
                window = padded[:, :, top : top + height, left : left + width]
                corner = weight[:, :, top : top + 3, left : left + 3]
                gradient = _gradients(by_result, window, corner, ctx.stride, 0, (False, True))[1]
                by_weight[:, :, top : top + 3, left : left + 3] = gradient
        return by_images, by_weight, None, None


def _gradients(
    by_result: Tensor, images: Tensor, weight: Tensor, stride: int, padding: int, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    """Gradients of a depthwise convolution by its images and its weight; only those that are `wanted`."""
    by_images, by_weight, _ = torch.ops.aten.convolution_backward(
        *(by_result, images.contiguous(memory_format=torch.channels_last), weight, None),
        *([stride, stride], [padding, padding], [1, 1], False, [0, 0], len(weight), [*wanted, False]),
    )
    return by_images, by_weight
