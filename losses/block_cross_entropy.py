"""Mean cross entropy of a product of two matrices, in blocks of rows: the product is never stored as a whole."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

_ENTRIES = 2**21
"""Entries of a block's logits: 8 MiB in float32."""


def product_cross_entropy(rows: Tensor, columns: Tensor, classes: Tensor) -> Tensor:
    """Mean cross entropy of the logits `rows @ columns`, with at most a few blocks of logits in memory.

    If the logits fit into one block, this is torch's cross entropy. Otherwise the gradient is computed together with
    the value, block by block, so there is no second gradient.

    Args:
        rows: (n, d).
        columns: (d, C).
        classes: (n,), the right class of every row.

    Returns:
        The mean, a scalar.
    """
    if len(rows) * columns.shape[1] <= _ENTRIES:
        return cross_entropy(rows @ columns, classes)
    mean: Tensor = _BlockCrossEntropy.apply(rows, columns, classes)  # type: ignore[no-untyped-call]
    return mean


class _BlockCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, classes: Tensor) -> Tensor:
        size = max(1, _ENTRIES // columns.shape[1])
        total = rows.new_zeros(())
        row_gradient, column_gradient = torch.empty_like(rows), torch.zeros_like(columns)
        # All blocks use this memory; new tensors per block leave holes that the allocator does not fill again.
        logits = rows.new_empty(size, columns.shape[1])
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            block, right = rows[part], classes[part].unsqueeze(1)
            p = torch.mm(block, columns, out=logits[: len(block)])
            p -= p.amax(1, keepdim=True)
            of_right = p.gather(1, right)
            sums = p.exp_().sum(1, keepdim=True)
            total += (sums.log() - of_right).sum()
            p /= sums * len(rows)
            p.scatter_add_(1, right, p.new_full(right.shape, -1 / len(rows)))
            row_gradient[part] = p @ columns.t()
            column_gradient.addmm_(block.t(), p)
        ctx.save_for_backward(row_gradient, column_gradient)
        return total / len(rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, None]:
        row_gradient, column_gradient = ctx.saved_tensors
        return scale * row_gradient, scale * column_gradient, None
