"""What losses share: their bases, sub-losses as PML's reducers take them, and checks of their inputs.

A check gives a clear `ValueError` in place of a wrong number or an index error.
"""

from itertools import chain
from typing import Any, get_args

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses.base_metric_loss_function import BaseMetricLossFunction
from pytorch_metric_learning.losses.mixins import WeightRegularizerMixin
from pytorch_metric_learning.utils import common_functions as c_f
from pytorch_metric_learning.utils import loss_and_miner_utils as lmu
from torch import Tensor, nn

from .plugin import TrainingPlugin


def at_least_float32(x: Tensor) -> Tensor:
    """Cast float16 and bfloat16 to float32; float32 and float64 stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def float32_sum(x: Tensor) -> Tensor:
    """The sum of all entries, in float32 or float64. In float16 a sum ends at 65,504."""
    return x.sum(dtype=torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which torch casts nothing on the device of `x`."""
    return torch.autocast(x.device.type, enabled=False)


class FullPrecisionForward:
    """Mix-in, first among the bases of a loss: `forward` without autocast, on embeddings in float32 or float64.

    The cast is around the whole `forward`, because PML's `MultipleReducers` collects the sub-losses in the dtype of the
    embeddings. Parameters keep their dtype: a loss reads them through `parameter.to(embeddings.dtype)` and never
    assigns to `parameter.data`. As in PML, the loss moves itself to the device of the embeddings.
    """

    takes_references = False
    """Whether the loss compares a batch with other rows, `ref_emb`."""

    sub_losses: tuple[str, ...] = ()
    """Names of what `compute_loss` returns, without regularizers; empty where PML's class says them."""

    def sub_loss_names(self) -> list[str]:
        """PML's method: the names of all sub-losses, for each of which it makes a reducer."""
        loss: Any = self
        if not self.sub_losses:
            return super().sub_loss_names()  # type: ignore[misc, no-any-return]
        return [*self.sub_losses, *loss.all_regularization_loss_names()]

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """PML's `forward`: from embeddings (B, d) and labels (B,) to the output of the reducer, by default a scalar.

        Raises:
            ValueError: for reference embeddings other than the batch itself, unless the loss takes them.
        """
        assert isinstance(self, nn.Module)
        references: tuple[Any, ...] = ()
        if self.takes_references:
            references = (None if ref_emb is None else at_least_float32(ref_emb), ref_labels)
        elif ref_emb is not None or ref_labels is not None:
            c_f.ref_not_supported(embeddings, labels, ref_emb, ref_labels)
        state = next(chain(self.parameters(), self.buffers()), embeddings)
        if state.device != embeddings.device:
            self.to(embeddings.device)
        with without_autocast(embeddings):
            # `forward` of the next class in the order of resolution, which is PML's loss.
            return super().forward(at_least_float32(embeddings), labels, indices_tuple, *references)  # type: ignore[misc]


class ByCosine(FullPrecisionForward):
    """Mix-in for a loss that compares embeddings by their cosines unless it is given another distance."""

    def get_default_distance(self) -> CosineSimilarity:
        """Cosine similarity, which normalises what it compares."""
        return CosineSimilarity()


class ProxyLoss(ByCosine, TrainingPlugin, WeightRegularizerMixin, BaseMetricLossFunction):
    """Base of losses with proxies, that is, vectors of classes in the embedding space, `proxies` (C N, d).

    Args:
        num_classes: C.
        embedding_size: d.
        **kwargs: PML's `distance` (a similarity; default cosine), `weight_init_func` of the proxies (default normal
            with variance 2/(C N) per entry, as in Proxy-Anchor's code), `weight_regularizer` of the proxies, ...
    """

    proxies_per_class = 1
    """N. A loss with several sets it before this constructor."""

    distance: Any
    weight_init_func: Any

    def __init__(self, num_classes: int, embedding_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        self.num_classes, self.embedding_size = num_classes, embedding_size
        self.proxies = nn.Parameter(torch.empty(num_classes * self.proxies_per_class, embedding_size))
        self.weight_init_func(self.proxies)

    def get_default_weight_init_func(self) -> c_f.TorchInitWrapper:
        """Normal with variance 2/(C N)."""
        return c_f.TorchInitWrapper(nn.init.kaiming_normal_, mode="fan_out")

    def add_embedding_regularization_to_loss_dict(self, loss_dict: dict[str, Any], embeddings: Tensor) -> None:
        """PML's hook after `compute_loss`: add the regularisers of proxies and embeddings (B, d), if there are any."""
        self.add_weight_regularization_to_loss_dict(loss_dict, self.proxies)
        super().add_embedding_regularization_to_loss_dict(loss_dict, embeddings)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, C N) between embeddings (B, d) and the proxies, without any scale."""
        embeddings = at_least_float32(embeddings)
        similarity: Tensor = self.distance(embeddings, self.proxies.to(embeddings.dtype))
        return similarity


def elements(losses: Tensor) -> dict[str, Any]:
    """Losses (n,) for a reducer, with their positions."""
    indices = torch.arange(len(losses), device=losses.device)
    return {"losses": losses, "indices": indices, "reduction_type": "element"}


def of_samples(losses: Tensor, labels: Tensor, indices_tuple: Any) -> dict[str, Any]:
    """Losses (B,) of the samples of a batch, weighted by what a miner found."""
    weights = lmu.convert_to_weights(indices_tuple, labels, dtype=losses.dtype)
    return elements(losses * weights)


def of_classes(losses: Tensor, divisor: Tensor | int) -> dict[str, Any]:
    """Losses (C,) of classes, whose sum is to be divided by `divisor`."""
    return {**elements(losses), "divisor": divisor}


def already_reduced(**losses: Tensor | float) -> dict[str, dict[str, Any]]:
    """Losses by name that are numbers already."""
    return {name: {"losses": v, "indices": None, "reduction_type": "already_reduced"} for name, v in losses.items()}


def checked_labels(
    embeddings: Tensor, labels: Tensor | None, num_classes: int | None = None, embedding_size: int | None = None
) -> Tensor:
    """Check a batch and return its labels as int64. Nothing is transferred from a GPU.

    Args:
        embeddings: (B, d), B >= 1.
        labels: (B,) integers in 0..num_classes-1; on a GPU torch itself ends a program with others.
        num_classes: C; None, the default, leaves the range of the labels unchecked.
        embedding_size: d; None, the default, leaves d unchecked.

    Returns:
        The labels (B,) as int64.

    Raises:
        ValueError: for a batch without a valid loss; the message names the fault.
    """
    if labels is None:
        raise ValueError("labels are required for this loss function")
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"expected embeddings (B, d) and labels (B), got {tuple(embeddings.shape)} and {tuple(labels.shape)}"
        )
    if embedding_size is not None and embeddings.shape[1] != embedding_size:
        raise ValueError(f"embeddings have {embeddings.shape[1]} dimensions, the loss was made for {embedding_size}")
    if len(labels) == 0:
        raise ValueError("the batch is empty")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    if num_classes is not None and labels.device.type == "cpu" and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(f"labels must be in 0..{num_classes - 1}, got {labels.min()}..{labels.max()}")
    return labels.long()


def require_one_of(names: Any, argument: str, value: str) -> None:
    """Raise ValueError unless the value of an argument is one of the names of a `Literal`."""
    if value not in (known := get_args(names)):
        raise ValueError(f"{argument} must be one of {', '.join(known)}, got {value!r}")


def require_similarity(distance: Any) -> None:
    """Raise ValueError for a distance of PML that is no similarity, which grows with likeness."""
    if not distance.is_inverted:
        raise ValueError(f"{type(distance).__name__} is a distance; this loss needs a similarity (CosineSimilarity)")
