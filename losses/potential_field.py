"""PFML: samples and proxies as charges, of which those of one class attract and close ones of two classes repel."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from .base import ProxyLoss, already_reduced, checked_labels, require_one_of
from .mined import refuse_mined

FieldReduction = Literal["sum", "mean"]

_SMALLEST_SQUARE = 1e-8
_ROWS, _ROWS_ON_GPU = 64, 256
"""Points whose pairs with all others are one block. Small ones leave most pairs out, large ones need fewer launches."""

_MARGIN = 0.01
"""More than the rounding error of a cosine in float32, or in TF32 on a GPU."""


class _Potential(torch.autograd.Function):
    """The sum over all pairs of different points, each once, with the gradient computed beside it, block by block.

    Both potentials are a power of the distance that is held at delta on one side: `-max(d, delta)^-alpha` within a
    class, `min(d, delta)^-alpha` between two. Where it is held it has no gradient. So a point of another class that is
    farther than delta from a whole block adds a constant. Float32 is enough to find such points.

    Points come by class, in float64, since in float32 the distances of close ones, where the field is strongest, are
    rounding errors. What follows from the distances is computed in `dtype`, float32 in half the time.
    """

    @staticmethod
    def forward(ctx: Any, points: Tensor, labels: Tensor, alpha: float, delta: float, dtype: torch.dtype) -> Tensor:
        total, unit = points.new_zeros(()), points.to(dtype)
        gradient = torch.zeros_like(unit)
        farthest = 1 - delta**2 / 2 - _MARGIN
        size = _ROWS if points.device.type == "cpu" else _ROWS_ON_GPU
        for start in range(0, len(points), size):
            rows, rest = slice(start, start + size), slice(start, None)
            close = torch.mm(unit[rows], unit[rest].t()).amax(0) > farthest
            columns = start + (close | (labels[rest] <= labels[rows][-1])).nonzero().squeeze(1)
            squares = torch.mm(points[rows], points[columns].t()).mul_(-2).add_(2)
            squares = squares.clamp_(min=_SMALLEST_SQUARE).to(dtype)
            same = labels[rows].unsqueeze(1) == labels[columns]
            held = same == (squares < delta**2)
            squares.masked_fill_(held, delta**2)
            terms = squares.pow(-alpha / 2)
            terms = torch.where(same, -terms, terms)
            # The first columns are the rows themselves.
            terms[:, : len(terms)].triu_(1)
            far = len(points) - start - len(columns)
            total += terms.sum() + len(terms) * far * delta**-alpha
            terms.div_(squares).masked_fill_(held | (squares == _SMALLEST_SQUARE), 0)
            gradient[rows] += terms @ unit[columns]
            gradient[columns] += terms.t() @ unit[rows]
        ctx.save_for_backward(gradient.mul_(alpha))
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return scale * gradient, None, None, None, None


class PotentialFieldLoss(ProxyLoss):
    """The potential of a field that decays with distance, of samples and several proxies for each class (PFML).

    Points are the unit embeddings of the batch and all unit proxies. With the Euclidean distance d of two points::

        att(d) = -delta^-alpha if d < delta, else -d^-alpha         same class
        rep(d) =  d^-alpha     if d < delta, else  delta^-alpha     different classes
        L      = sum over ordered pairs of different points of att or rep

    Unlike that of most losses the pull fades with distance. The push acts only below delta, for 0.2 where a cosine is
    above 0.98, so that at a random start almost nothing repels. Distances below 1e-4 count as 1e-4 and have no
    gradient. The sum of 1,500 proxies is about 3e8: beside it the weight decay that Adam adds to a gradient counts
    millions of times less than beside the mean.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; the sub-loss `loss` is a scalar. `proxies` is
    (C M, d), row j of class j // M. Time and pairs grow with (B + C M)^2, memory with B + C M.

    Args:
        num_classes: C.
        embedding_size: d.
        proxies_per_class: M; default 15 (the paper: 2 for Stanford Online Products).
        alpha: how fast the field decays, without unit; at 0 the loss is a constant. Default 3.
        delta: distance at which both potentials are cut; default 0.2.
        reduction: `sum`, or `mean` over the ordered pairs. The paper leaves this open. Default `sum`.
        **kwargs: PML's `weight_init_func` (default normal with variance 2/(C M) per entry), `weight_regularizer`,
            `embedding_regularizer` and their weights.

    Raises:
        ValueError: for a setting out of range, pairs of a miner, and every batch that `checked_labels` refuses.

    Source: Bhatnagar and Ahuja, Potential Field Based Deep Metric Learning, CVPR 2025, Eqs. 1, 2 and 6, as three public
    re-implementations quote them; the authors published no code.
    """

    sub_losses = ("loss",)

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        proxies_per_class: int = 15,
        alpha: float = 3.0,
        delta: float = 0.2,
        reduction: FieldReduction = "sum",
        **kwargs: Any,
    ) -> None:
        require_one_of(FieldReduction, "reduction", reduction)
        if proxies_per_class < 1 or alpha < 0 or delta <= 0:
            raise ValueError(
                "proxies_per_class must be at least 1, alpha at least 0 and delta positive, got "
                f"{proxies_per_class}, {alpha} and {delta}"
            )
        self.proxies_per_class = proxies_per_class
        super().__init__(num_classes, embedding_size, **kwargs)
        self.alpha, self.delta, self.reduction = alpha, delta, reduction

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss `loss`, already reduced, for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        refuse_mined(indices_tuple)
        owners = torch.cat([labels, torch.arange(len(self.proxies), device=labels.device) // self.proxies_per_class])
        owners, order = owners.sort(stable=True)
        points = normalize(torch.cat([embeddings, self.proxies.to(embeddings.dtype)])[order].double())
        value: Tensor = _Potential.apply(  # type: ignore[no-untyped-call]
            points, owners, self.alpha, self.delta, embeddings.dtype
        )
        pairs = len(points) * (len(points) - 1) / 2
        value = value / pairs if self.reduction == "mean" else 2 * value
        return already_reduced(loss=value.to(embeddings.dtype))
