"""Cosines to the centres of classes and the spread of the centres, with the gradient written out.

Both need the norms of the centres and the products of the centres of a class. Together, with raw centres in their own
layout, they take five matrix products a step, where automatic differentiation takes six and copies of the centres.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_ROOT_OFFSET = 1e-5  # from the authors' code; keeps the gradient finite where two centres coincide
_SMALLEST_SQUARE = 1e-24  # the bound of torch's `normalize`


def root_distances(cosines: Tensor) -> Tensor:
    """Distances `sqrt(2 + 1e-5 - 2 cos)` between unit vectors."""
    return (2 + _ROOT_OFFSET - 2 * cosines).sqrt()


def cosines_and_spread(
    embeddings: Tensor, centers: Tensor, per_class: int, *, with_spread: bool
) -> tuple[Tensor, Tensor]:
    """Compute the cosines between embeddings and centres, and the regulariser R of `center_spread`.

    Args:
        embeddings: unit vectors (B, d).
        centers: raw centres (d, C K); the K centres of a class lie side by side.
        per_class: K.
        with_spread: whether R is wanted; K must then be at least 2.

    Returns:
        Cosines (B, C K), and R, a scalar, which is 0 if it is not wanted.
    """
    cosines, spread = _CosinesAndSpread.apply(  # type: ignore[no-untyped-call]
        embeddings, centers, per_class, with_spread
    )
    return cosines, spread


class _CosinesAndSpread(torch.autograd.Function):
    """With `P = c c^T` inside a class: `n_k = sqrt(P_kk)`, `s_k = x . c_k / n_k`, `cos_kl = P_kl / (n_k n_l)`."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, centers: Tensor, per_class: int, with_spread: bool) -> tuple[Any, ...]:
        squares = centers.square().sum(0)
        inverse = squares.clamp(min=_SMALLEST_SQUARE).rsqrt()
        cosines = (embeddings @ centers).mul_(inverse)
        # A unit centre cannot move along its own direction. A centre shorter than the bound is divided by a constant.
        turning = inverse.square().masked_fill_(squares < _SMALLEST_SQUARE, 0)
        spread, of_class, pulls = centers.new_zeros(()), None, None
        if with_spread:
            # Products of a strided view of the centres are slower than this copy.
            of_class = centers.t().contiguous().view(-1, per_class, len(centers))
            spread, pulls = _spread_and_pulls(of_class, inverse.view(-1, per_class), turning.view(-1, per_class))
        ctx.save_for_backward(embeddings, centers, inverse, turning, cosines, of_class, pulls)
        return cosines, spread

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_cosines: Tensor, by_spread: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        embeddings, centers, inverse, turning, cosines, of_class, pulls = ctx.saved_tensors
        by_products = by_cosines * inverse
        by_embeddings = by_products @ centers.t() if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return by_embeddings, None, None, None
        along = (by_cosines * cosines).sum(0).mul_(turning)
        by_centers = torch.addcmul(embeddings.t() @ by_products, centers, along, value=-1)
        if pulls is not None:
            by_centers += ((pulls * by_spread) @ of_class).view_as(centers.t()).t().contiguous()
        return by_embeddings, by_centers, None, None


def _spread_and_pulls(of_class: Tensor, inverse: Tensor, turning: Tensor) -> tuple[Tensor, Tensor]:
    """R, and the matrices (C, K, K) whose products with the centres of a class are the gradient of R.

    Args:
        of_class: the centres (C, K, d).
        inverse: 1 / n (C, K).
        turning: 1 / n^2 (C, K), or 0 for centres that are too short to be divided by their norms.
    """
    outer = inverse.unsqueeze(1) * inverse.unsqueeze(2)
    cosines = (of_class @ of_class.transpose(1, 2)).mul_(outer)
    distances = root_distances(cosines)
    pairs = inverse.numel() * (inverse.shape[1] - 1)
    spread = distances.triu(1).sum() / pairs
    pulls = distances.reciprocal_().div_(-pairs)
    diagonal = torch.diagonal(pulls, dim1=1, dim2=2)
    diagonal.zero_()
    along = (pulls * cosines).sum(2).mul_(turning)
    pulls.mul_(outer)
    diagonal.copy_(along.neg_())
    return spread, pulls
