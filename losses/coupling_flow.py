"""A conditional normalizing flow of affine coupling blocks: invertible, with a cheap log-determinant."""

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .base import require_one_of

Condition = Literal["dense", "start", "mid", "end"]

# Brings atan into (-1, 1), rounded as in the framework the authors used: not exactly 2 / pi.
_ATAN_SCALE = 0.636


def _subnet(n_in: int, n_out: int, width: int, depth: int) -> nn.Sequential:
    """`depth` linear layers with ReLU between them, in torch's default initialisation."""
    sizes = [n_in, *[width] * (depth - 1), n_out]
    layers: list[nn.Module] = []
    for size, next_size in pairwise(sizes):
        layers += [nn.Linear(size, next_size), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class _Permuted(torch.autograd.Function):
    """Columns of x (B, d) in another order. torch's own gradient of an index sorts and adds, which is not needed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, permutation: Tensor) -> Tensor:
        ctx.save_for_backward(permutation)
        return x.index_select(1, permutation)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (permutation,) = ctx.saved_tensors
        return gradient.index_select(1, permutation.argsort()), None


class _Coupled(torch.autograd.Function):
    """`a exp(s) + t` and `s = bound atan(r)` for rows [r, t] of a subnet's output, in few operations both ways.

    The constants are the numbers 0 and 1 as tensors without a dimension.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, output: Tensor, bound: float, constants: Tensor) -> tuple[Tensor, Tensor]:
        raw, shift = output.chunk(2, dim=1)
        scale = raw.atan().mul_(bound)
        factor = scale.exp()
        ctx.bound = bound
        ctx.save_for_backward(a, raw, factor, constants)
        return torch.addcmul(shift, a, factor), scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, of_scale: Tensor) -> tuple[Tensor, Tensor, None, None]:
        a, raw, factor, (zero, one) = ctx.saved_tensors
        of_a = gradient * factor
        of_scale = torch.addcmul(of_scale, of_a, a)
        of_raw = torch.addcdiv(zero, of_scale, torch.addcmul(one, raw, raw), value=ctx.bound)
        return of_a, torch.cat([of_raw, gradient], dim=1), None, None


# torch's type hints say nothing of the arguments of `apply`.
_permuted: Any = _Permuted.apply
_coupled: Any = _Coupled.apply


class CouplingBlock(nn.Module):
    """Permute the input, split it in two halves, and scale and shift each half by functions of the other half.

    With `[a, b]` the permuted input, c the condition, and `soft(r) = clamp 0.636 atan(r)`::

        (r, t) = s2([b, c]);    a' = a exp(soft(r)) + t
        (r, t) = s1([a', c]);   b' = b exp(soft(r)) + t        log-determinant: sum soft(r) over both

    The first half has `round(d / 2)` coordinates; a fraction of 0.5 rounds to the even number.

    Args:
        dim: d.
        condition_dim: size of c, 0 for a block without condition.
        clamp: the log-scale stays within about +-clamp.
        depth: linear layers of a subnet.
        width: units of a hidden layer.
        permutation: (d,) of int64, saved with the weights.
    """

    permutation: Tensor

    def __init__(self, dim: int, condition_dim: int, depth: int, width: int, clamp: float, permutation: Tensor) -> None:
        super().__init__()
        self.clamp = clamp
        self.conditioned = condition_dim > 0
        self.first = round(0.5 * dim)
        second = dim - self.first
        self.s1 = _subnet(self.first + condition_dim, 2 * second, width, depth)
        self.s2 = _subnet(second + condition_dim, 2 * self.first, width, depth)
        self.register_buffer("permutation", permutation)

    def forward(self, x: Tensor, condition: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Output (B, d) and log-scales of both halves for inputs (B, d) and conditions (B, condition_dim)."""
        bound, constants = self.clamp * _ATAN_SCALE, torch.arange(2, dtype=x.dtype, device=x.device)
        a, b = _permuted(x, self.permutation).split([self.first, x.shape[1] - self.first], dim=1)
        a, scale_a = _coupled(a, self._output(self.s2, b, condition), bound, constants)
        b, scale_b = _coupled(b, self._output(self.s1, a, condition), bound, constants)
        return torch.cat([a, b], dim=1), (scale_a, scale_b)

    def inverse(self, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Input (B, d) that gives the output `z` (B, d), and the log-determinant (B,) of this direction."""
        a, b = z[:, : self.first], z[:, self.first :]
        scale_b, shift = self._affine(self.s1, a, condition)
        b = (b - shift) * (-scale_b).exp()
        scale_a, shift = self._affine(self.s2, b, condition)
        a = (a - shift) * (-scale_a).exp()
        x = torch.cat([a, b], dim=1)[:, self.permutation.argsort()]
        return x, -scale_a.sum(dim=1) - scale_b.sum(dim=1)

    def _output(self, subnet: nn.Sequential, half: Tensor, condition: Tensor) -> Tensor:
        output: Tensor = subnet(torch.cat([half, condition], dim=1) if self.conditioned else half)
        return output

    def _affine(self, subnet: nn.Sequential, half: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        raw, shift = self._output(subnet, half, condition).chunk(2, dim=1)
        return self.clamp * _ATAN_SCALE * raw.atan(), shift


class CouplingFlow(nn.Module):
    """`n_blocks` coupling blocks in a row: a density of x (B, d) given c (B, condition_dim).

    The permutation of block k is `numpy.random.RandomState(k).permutation(d)`; numpy's global state is not used.

    Args:
        dim: d, at least 2.
        condition_dim: size of c.
        n_blocks: number of blocks; default 8.
        depth: linear layers of a subnet; default 3.
        width: units of a hidden layer; default 128.
        clamp: the log-scale of a block stays within about +-clamp; default 2.
        condition: which blocks get c: `dense` all, `start` the first, `mid` number `n_blocks // 2`, `end` the last;
            default `dense`.

    Raises:
        ValueError: for fewer than two dimensions, an empty flow or an unknown `condition`.

    Source: Roth et al., CVPR 2022, section 3.2; conditional affine coupling as in FrEIA 0.2 (`GLOWCouplingBlock`).
    """

    def __init__(
        self,
        dim: int,
        condition_dim: int,
        n_blocks: int = 8,
        depth: int = 3,
        width: int = 128,
        clamp: float = 2.0,
        condition: Condition = "dense",
    ) -> None:
        super().__init__()
        if dim < 2 or n_blocks < 1 or depth < 1:
            raise ValueError(f"a flow needs dim >= 2, n_blocks >= 1, depth >= 1, got {dim}, {n_blocks}, {depth}")
        require_one_of(Condition, "condition", condition)
        conditioned_blocks = {"dense": range(n_blocks), "start": [0], "mid": [n_blocks // 2], "end": [n_blocks - 1]}
        self.blocks = nn.ModuleList(
            CouplingBlock(
                dim,
                condition_dim if k in conditioned_blocks[condition] else 0,
                depth,
                width,
                clamp,
                torch.tensor(np.random.RandomState(k).permutation(dim)),
            )
            for k in range(n_blocks)
        )

    def forward(self, x: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Residuals z (B, d) and `log |det dz/dx|` (B,)."""
        log_scales: list[Tensor] = []
        # Views of one tensor: their gradients are added in one operation instead of one for each subnet.
        conditions = condition.expand(len(self.blocks), *condition.shape).unbind()
        for block, of_block in zip(self.blocks, conditions, strict=True):
            x, scales = block(x, of_block)
            log_scales += scales
        return x, torch.cat(log_scales, dim=1).sum(dim=1)

    def inverse(self, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Samples x (B, d) with `forward(x) = z`, and `log |det dx/dz|` (B,)."""
        total = z.new_zeros(len(z))
        for block in reversed(self.blocks):
            assert isinstance(block, CouplingBlock)
            z, log_det = block.inverse(z, condition)
            total = total + log_det
        return z, total
