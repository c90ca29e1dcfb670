"""Pair and triplet losses of pytorch-metric-learning on whole matrices of distances, for a GPU.

pytorch-metric-learning (PML) lists the pairs or triplets first. The length of such a list depends on the labels, so the
host waits for the GPU. Here every entry of the matrix has a loss, and masks say which entries are pairs. Value and
gradient are those of PML up to rounding errors. On a CPU the lists are shorter than the matrix, and PML's own form is
used, to the bit.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.reducers import AvgNonZeroReducer, DivisorReducer, MeanReducer, MultipleReducers
from pytorch_metric_learning.utils import common_functions as c_f
from torch import Tensor

from .pair_losses import BatchSumReducer, CosineContrastiveLoss, SignalToNoiseRatioContrastiveLoss

_TRIPLETS = 2**26
"""Largest number of entries (B, R, R) for triplets: 256 MiB in float32."""


def has_dense_form(base_loss: Any, embeddings: Tensor) -> bool:
    """Return whether `pair_loss` may answer for these embeddings: not on a CPU, and only for losses known here."""
    return _dense_form(base_loss, embeddings) is not None


def pair_loss(
    base_loss: Any,
    embeddings: Tensor,
    labels: Tensor,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    ignored: Tensor | None = None,
) -> Tensor | None:
    """A pair loss over all pairs, or all triplets, without lists of them.

    Args:
        base_loss: A loss of pytorch-metric-learning or one of `losses.pair_losses`.
        embeddings: (B, d).
        labels: (B,).
        ref_emb: (R, d), the rows to compare with; None, the default, for the batch itself.
        ref_labels: (R,).
        ignored: Mask (B, R) of pairs to leave out; None, the default, leaves out those of a sample with itself, and
            with `ref_emb` none.

    Returns:
        The loss, a scalar. None on a CPU, and for a loss that has no dense form here.
    """
    dense = _dense_form(base_loss, embeddings)
    others = embeddings if ref_emb is None else ref_emb
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
    distances = base_loss.distance(embeddings, others)
    terms = {
        name: {"losses": value, "indices": None, "reduction_type": "already_reduced"}
        for name, value in dense(base_loss, distances, positive, negative, labels).items()
    }
    base_loss.add_embedding_regularization_to_loss_dict(terms, embeddings)
    value: Tensor = base_loss.reducer(terms, embeddings, labels)
    return value


Terms = dict[str, Tensor]


def _mean(losses: Tensor, mask: Tensor) -> Tensor:
    """Mean of the losses in the mask; 0 without any."""
    return torch.where(mask, losses, 0.0).sum() / mask.sum().clamp(min=1)


def _contrastive(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> Terms:
    by_kind = {
        "pos_loss": torch.where(positive, loss.pos_calc(distances, loss.pos_margin), 0.0),
        "neg_loss": torch.where(negative, loss.neg_calc(distances, loss.neg_margin), 0.0),
    }
    summed = isinstance(_reducers(loss)[0], BatchSumReducer)
    return {
        name: losses.sum() / len(losses) if summed else _mean(losses, losses > 0) for name, losses in by_kind.items()
    }


def _triplet(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> Terms:
    margins = loss.distance.margin(distances.unsqueeze(2), distances.unsqueeze(1)) + loss.margin
    losses = torch.where(positive.unsqueeze(2) & negative.unsqueeze(1), margins, 0.0).relu()
    return {"loss": _mean(losses, losses > 0)}


def _multi_similarity(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> Terms:
    mean: Tensor = loss._compute_loss(distances, positive, negative)["loss"]["losses"].mean()
    # Without any pair PML's loss is 0; so is this one, because its sums are empty.
    return {"loss": mean}


def _ntxent(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> Terms:
    similarity = (distances if loss.distance.is_inverted else -distances) / loss.temperature
    others = similarity.masked_fill(~negative, c_f.neg_inf(similarity.dtype))
    nearest = others.detach().amax(1, keepdim=True)
    largest = torch.maximum(similarity.detach(), nearest)
    numerator = (similarity - largest).exp()
    repulsion = (others - nearest).exp().sum(1, keepdim=True) * (nearest - largest).exp()
    losses = -(numerator / (repulsion + numerator) + c_f.small_val(similarity.dtype)).log()
    # Without a single negative pair PML's loss is 0.
    return {"loss": torch.where(negative.any(), _mean(losses, positive), 0.0)}


def _margin(loss: Any, distances: Tensor, positive: Tensor, negative: Tensor, labels: Tensor) -> Terms:
    of_class = len(loss.beta) > 1
    beta = (loss.beta[labels].unsqueeze(1) if of_class else loss.beta).to(distances.dtype)
    # Each positive pair is in as many triplets as its anchor has negatives, and the other way round.
    triplets_of = {"positive": negative.sum(1, keepdim=True), "negative": positive.sum(1, keepdim=True)}
    pull = torch.where(positive, loss.distance.margin(distances, beta) + loss.margin, 0.0).relu()
    push = torch.where(negative, loss.distance.margin(beta, distances) + loss.margin, 0.0).relu()
    total = (pull * triplets_of["positive"]).sum() + (push * triplets_of["negative"]).sum()
    active = ((pull > 0) * triplets_of["positive"]).sum() + ((push > 0) * triplets_of["negative"]).sum()
    triplets = triplets_of["positive"] * triplets_of["negative"]
    if of_class:
        regularizer = (beta * loss.nu * triplets).sum() / active.clamp(min=1) * (active > 0)
    else:
        regularizer = (beta * loss.nu * triplets.any()).squeeze(0)
    return {"margin_loss": total / active.clamp(min=1), "beta_reg_loss": regularizer}


_Form = Callable[[Any, Tensor, Tensor, Tensor, Tensor], Terms]
_FORMS: Mapping[type, tuple[_Form, tuple[type, ...]]] = MappingProxyType(
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


def _reducers(loss: Any) -> list[Any]:
    """The reducers of the loss itself; that of its regularizer, if there is one, comes after them."""
    reducer = loss.reducer
    return [reducer.reducers[n] for n in loss._sub_loss_names()] if isinstance(reducer, MultipleReducers) else [reducer]


def _dense_form(loss: Any, embeddings: Tensor) -> _Form | None:
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
