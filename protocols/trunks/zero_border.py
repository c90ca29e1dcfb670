"""Zero padding that fills only the border. torch's `pad` on a CPU first fills the whole result with zeros."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


def with_zero_border(images: Tensor, before: int, after: int) -> Tensor:
    """Pad images with zeros; the values and the memory layout are those of torch's `pad`.

    Args:
        images: Images or feature maps, (n, c, h, w).
        before: Rows above and columns to the left.
        after: Rows below and columns to the right.

    Returns:
        The padded images, (n, c, before + h + after, before + w + after).
    """
    if images.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.pad(images, (before, after, before, after))
    if not (torch.is_grad_enabled() and images.requires_grad):
        return _padded(images, before, after)
    result: Tensor = _ZeroBorder.apply(images, before, after)  # type: ignore[no-untyped-call]
    return result


def _layout(images: Tensor) -> torch.memory_format:
    channels_last = images.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if channels_last and not images.is_contiguous() else torch.contiguous_format


def _padded(images: Tensor, before: int, after: int) -> Tensor:
    n, channels, height, width = images.shape
    padded = torch.empty(
        (n, channels, before + height + after, before + width + after),
        dtype=images.dtype,
        device=images.device,
        memory_format=_layout(images),
    )
    padded[:, :, :before] = 0
    padded[:, :, before + height :] = 0
    middle = padded[:, :, before : before + height]
    middle[..., :before] = 0
    middle[..., before + width :] = 0
    middle[..., before : before + width] = images
    return padded


class _ZeroBorder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, before: int, after: int) -> Tensor:
        ctx.before, ctx.side, ctx.layout = before, images.shape[2:], _layout(images)
        return _padded(images, before, after)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_padded: Tensor) -> tuple[Tensor, None, None]:
        height, width = ctx.side
        inner = by_padded[:, :, ctx.before : ctx.before + height, ctx.before : ctx.before + width]
        return inner.contiguous(memory_format=ctx.layout), None, None
