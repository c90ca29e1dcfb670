"""What keeps the host from waiting for a GPU: known values of buffers, reducers, and pair losses without lists.

pytorch-metric-learning (PML) lists pairs or triplets, whose number depends on the labels, and reads on the host how
many losses are above 0. On a CPU that is the fastest way, and there these parts do as PML does, to the bit. Elsewhere
every entry of a whole matrix of distances has a loss, and masks say which entries are pairs. Value and gradient are
those of PML up to rounding errors.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.reducers import AvgNonZeroReducer, DivisorReducer, MeanReducer, MultipleReducers
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor, nn

from .checks import at_least_float32, float32_sum, without_autocast
from .pair_losses import BatchSumReducer, CosineContrastiveLoss, SignalToNoiseRatioContrastiveLoss
from .sub_losses import already_reduced

_TRIPLETS = 2**26
"""Largest number of entries (B, R, R) for triplets: 256 MiB in float32."""


class BufferValues:
    """Values of buffers, as the host last read or wrote them.

    A buffer stays the truth: if anybody else changes or replaces it, it is read again. Copies and pickles of a loss
    begin without known values.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Tensor, int, Any]] = {}

    def __reduce__(self) -> tuple[type["BufferValues"], tuple[()]]:
        return BufferValues, ()

    def read(self, name: str, buffer: Tensor) -> Any:
        """The value of a buffer, a Python number or list; waits for the device only after a change of the buffer."""
        if not self._is_known(name, buffer):
            self._known[name] = (buffer, buffer._version, buffer.tolist())
        return self._known[name][2]

    def write(self, name: str, buffer: Tensor, value: Any) -> None:
        """Set a buffer of one element; a buffer that is known to have the value is not written."""
        if not self._is_known(name, buffer) or self._known[name][2] != value:
            buffer.fill_(value)
            self._known[name] = (buffer, buffer._version, value)

    def _is_known(self, name: str, buffer: Tensor) -> bool:
        known = self._known.get(name)
        return known is not None and known[0] is buffer and known[1] == buffer._version


class MeanAboveZero(AvgNonZeroReducer):
    """PML's `AvgNonZeroReducer`: the mean of the losses above 0, or 0 if there are none."""

    def element_reduction_helper(self, losses: Tensor, embeddings: Tensor) -> Tensor:
        """Mean of the losses (n,) above 0; embeddings (B, d) give the zero its gradient."""
        if losses.device.type == "cpu" or self.collect_stats:
            mean: Tensor = super().element_reduction_helper(losses, embeddings)
            return mean
        return _mean(losses, losses > 0)


class SumOverDivisor(DivisorReducer):
    """PML's `DivisorReducer`, also for tensors as divisors: sum of the losses / divisor, 0 for a divisor of 0."""

    def sum_and_divide(self, losses: Tensor, embeddings: Tensor, divisor: Any) -> Tensor:
        """Sum of the losses (n,) divided by `divisor`; embeddings (B, d) give the zero its gradient."""
        if not isinstance(divisor, Tensor):
            quotient: Tensor = float32_sum(losses) / divisor if divisor else self.zero_loss(embeddings)
            return quotient
        empty = divisor == 0
        # A divisor of 0 must not reach the gradient.
        return torch.where(empty, 0.0, float32_sum(losses) / torch.where(empty, 1, divisor))


def replace_reducers(loss: nn.Module) -> None:
    """Replace PML's reducers in a loss, and in the losses inside it, by those of this module.

    Reducers of other classes, and those that keep statistics, stay as they are.
    """
    replacements = {AvgNonZeroReducer: MeanAboveZero, DivisorReducer: SumOverDivisor}
    for module in list(loss.modules()):
        for name, child in list(module.named_children()):
            replacement = replacements.get(type(child))
            if replacement is not None and not child.collect_stats:
                setattr(module, name, replacement(collect_stats=False))


def loss_in_batch(base_loss: Any, embeddings: Tensor, labels: Tensor, indices_tuple: Any = None) -> Tensor:
    """A loss of a batch in float32 or float64, without lists of pairs where that is possible.

    Args:
        base_loss: any loss of pytorch-metric-learning or of this package.
        embeddings: (B, d).
        labels: (B,).
        indices_tuple: what a miner chose; None, the default, for all pairs or triplets.
    """
    embeddings = at_least_float32(embeddings)
    with without_autocast(embeddings):
        value = pair_loss(base_loss, embeddings, labels) if indices_tuple is None else None
        return base_loss(embeddings, labels, indices_tuple) if value is None else value


def mean_margin_violations(
    similarity: Tensor, positive: Tensor, negative: Tensor, pos_margin: float, neg_margin: float
) -> Tensor:
    """Mean of `pos_margin - s` over positive pairs with a smaller s, plus that of `s - neg_margin` over negative ones.

    PML's `ContrastiveLoss` with its default reducer, on whole matrices: it makes the host wait for no device.

    Args:
        similarity: s, (B, R).
        positive: mask (B, R) of the positive pairs.
        negative: mask (B, R) of the negative pairs.
        pos_margin: smallest similarity of a positive pair that costs nothing.
        neg_margin: largest similarity of a negative pair that costs nothing.

    Returns:
        A scalar. A side without a violation counts 0.
    """
    pull = torch.where(positive, pos_margin - similarity, 0.0).relu()
    push = torch.where(negative, similarity - neg_margin, 0.0).relu()
    return _mean(pull, pull > 0) + _mean(push, push > 0)


def pair_loss(
    base_loss: Any,
    embeddings: Tensor,
    labels: Tensor,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    ignored: Tensor | None = None,
) -> Tensor | None:
    """A pair loss over all pairs, or all triplets, in float32 or float64 and without lists of them.

    Args:
        base_loss: a loss of pytorch-metric-learning or one of `losses.pair_losses`.
        embeddings: (B, d).
        labels: (B,).
        ref_emb: (R, d), the rows to compare with; None, the default, for the batch itself.
        ref_labels: (R,).
        ignored: mask (B, R) of pairs to leave out; None, the default, leaves out those of a sample with itself, and
            with `ref_emb` none.

    Returns:
        The loss, a scalar. None on a CPU, and for a loss that has no dense form here.
    """
    dense = dense_form(base_loss, embeddings)
    embeddings = at_least_float32(embeddings)
    others = embeddings if ref_emb is None else at_least_float32(ref_emb)
    # PML's loss of a single pair is 0; so few pairs are left to PML.
    if dense is None or len(labels) * len(others) <= 4:
        return None
    if dense is _triplet and len(labels) * len(others) ** 2 > _TRIPLETS:
        return None
    same = labels.unsqueeze(1) == (labels if ref_labels is None else ref_labels)
    positive, negative = same, ~same
    if ref_emb is None:
        positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    if ignored is not None:
        positive, negative = positive & ~ignored, negative & ~ignored
    with without_autocast(embeddings):
        distances = base_loss.distance(embeddings, others)
        terms = already_reduced(**dense(base_loss, distances, positive, negative, labels))
        base_loss.add_embedding_regularization_to_loss_dict(terms, embeddings)
        value: Tensor = base_loss.reducer(terms, embeddings, labels)
    return value


DenseForm = Callable[[Any, Tensor, Tensor, Tensor, Tensor], dict[str, Tensor]]
"""From a loss, distances (B, R), masks of positive and negative pairs (B, R) and labels (B,) to its reduced terms."""


def dense_form(loss: Any, embeddings: Tensor) -> DenseForm | None:
    """The dense form of a loss with its usual reducers; None on a CPU, and if there is none."""
    if embeddings.device.type == "cpu":
        return None
    form, usual = _FORMS.get(type(loss), (None, ()))
    if form is None or loss.collect_stats or not all(isinstance(r, usual) for r in _reducers(loss)):
        return None
    if form is _triplet and (loss.swap or loss.smooth_loss):
        return None
    if form is _margin and not loss.learn_beta:
        return None
    return form if getattr(loss, "triplets_per_anchor", "all") == "all" else None


def _reducers(loss: Any) -> list[Any]:
    """The reducers of the loss itself; that of its regularizer, if there is one, is left out."""
    reducer = loss.reducer
    return [reducer.reducers[n] for n in loss._sub_loss_names()] if isinstance(reducer, MultipleReducers) else [reducer]


def _mean(losses: Tensor, mask: Tensor) -> Tensor:
    return float32_sum(torch.where(mask, losses, 0.0)) / mask.sum().clamp(min=1)


def _contrastive(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> dict[str, Tensor]:
    by_kind = {
        "pos_loss": torch.where(positive, loss.pos_calc(distances, loss.pos_margin), 0.0),
        "neg_loss": torch.where(negative, loss.neg_calc(distances, loss.neg_margin), 0.0),
    }
    summed = isinstance(_reducers(loss)[0], BatchSumReducer)
    return {
        name: float32_sum(losses) / len(losses) if summed else _mean(losses, losses > 0)
        for name, losses in by_kind.items()
    }


def _triplet(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> dict[str, Tensor]:
    margins = loss.distance.margin(distances.unsqueeze(2), distances.unsqueeze(1)) + loss.margin
    losses = torch.where(positive.unsqueeze(2) & negative.unsqueeze(1), margins, 0.0).relu()
    return {"loss": _mean(losses, losses > 0)}


def _multi_similarity(
    loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor
) -> dict[str, Tensor]:
    # Without any pair PML's loss is 0; so is this one, because its sums are empty.
    return {"loss": loss._compute_loss(distances, positive, negative)["loss"]["losses"].mean()}


def _ntxent(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> dict[str, Tensor]:
    similarity = (distances if loss.distance.is_inverted else -distances) / loss.temperature
    others = similarity.masked_fill(~negative, c_f.neg_inf(similarity.dtype))
    nearest = others.detach().amax(1, keepdim=True)
    largest = torch.maximum(similarity.detach(), nearest)
    numerator = (similarity - largest).exp()
    repulsion = (others - nearest).exp().sum(1, keepdim=True) * (nearest - largest).exp()
    losses = -(numerator / (repulsion + numerator) + c_f.small_val(similarity.dtype)).log()
    # Without a single negative pair PML's loss is 0.
    return {"loss": torch.where(negative.any(), _mean(losses, positive), 0.0)}


def _margin(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> dict[str, Tensor]:
    of_class = len(loss.beta) > 1
    beta = (loss.beta[labels].unsqueeze(1) if of_class else loss.beta).to(distances.dtype)
    # Each positive pair is in as many triplets as its anchor has negatives, and the other way round.
    n_negative, n_positive = negative.sum(1, keepdim=True), positive.sum(1, keepdim=True)
    pull = torch.where(positive, loss.distance.margin(distances, beta) + loss.margin, 0.0).relu()
    push = torch.where(negative, loss.distance.margin(beta, distances) + loss.margin, 0.0).relu()
    total = (pull * n_negative).sum() + (push * n_positive).sum()
    active = ((pull > 0) * n_negative).sum() + ((push > 0) * n_positive).sum()
    triplets = n_negative * n_positive
    if of_class:
        regularizer = (beta * loss.nu * triplets).sum() / active.clamp(min=1) * (active > 0)
    else:
        regularizer = (beta * loss.nu * triplets.any()).squeeze(0)
    return {"margin_loss": total / active.clamp(min=1), "beta_reg_loss": regularizer}


_FORMS: Mapping[type, tuple[DenseForm, tuple[type, ...]]] = MappingProxyType(
    {
        pml_losses.ContrastiveLoss: (_contrastive, (AvgNonZeroReducer, BatchSumReducer)),
        pml_losses.SignalToNoiseRatioContrastiveLoss: (_contrastive, (AvgNonZeroReducer,)),
        CosineContrastiveLoss: (_contrastive, (AvgNonZeroReducer, BatchSumReducer)),
        SignalToNoiseRatioContrastiveLoss: (_contrastive, (AvgNonZeroReducer,)),
        pml_losses.TripletMarginLoss: (_triplet, (AvgNonZeroReducer,)),
        pml_losses.MarginLoss: (_margin, (DivisorReducer,)),
        pml_losses.MultiSimilarityLoss: (_multi_similarity, (MeanReducer,)),
        pml_losses.NTXentLoss: (_ntxent, (MeanReducer,)),
    }
)
