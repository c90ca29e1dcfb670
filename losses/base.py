"""What losses share: their bases, sums, sub-losses as PML's reducers take them, and checks of their inputs.

A check gives a clear `ValueError` in place of a wrong number or an index error.
"""

from itertools import chain
from typing import Any, get_args

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from torch import Tensor, nn

from .bridge import BridgedLoss, term
from .mined import weights_of
from .plugin import TrainingPlugin


def at_least_float32(x: Tensor) -> Tensor:
    """Cast float16 and bfloat16 to float32; float32 and float64 stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def float32_sum(x: Tensor) -> Tensor:
    """The sum of all entries, in float32 or float64. In float16 a sum ends at 65,504."""
    return x.sum(dtype=torch.promote_types(x.dtype, torch.float32))


def log_one_plus_sum(exponents: Tensor, mask: Tensor, dim: int = 0) -> Tensor:
    """`log(1 + sum exp)` over the entries of a dimension that are in the mask; exactly 0 where none is."""
    one = torch.zeros_like(exponents.narrow(dim, 0, 1))
    masked = exponents.masked_fill(~mask, torch.finfo(exponents.dtype).min)
    return torch.cat([masked, one], dim).logsumexp(dim).masked_fill(~mask.any(dim), 0)


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which torch casts nothing on the device of `x`."""
    return torch.autocast(x.device.type, enabled=False)


class MetricLoss(BridgedLoss):
    """Base of all losses: PML's, with `forward` without autocast, on embeddings in float32 or float64.

    The cast is around the whole `forward`, because PML's `MultipleReducers` collects the sub-losses in the dtype of the
    embeddings. Parameters keep their dtype: a loss reads them through `parameter.to(embeddings.dtype)` and never
    assigns to `parameter.data`. The loss moves itself and the labels to the device of the embeddings.
    """

    takes_references = False
    """Whether the loss compares a batch with other rows, `ref_emb`."""

    @property
    def learns(self) -> bool:
        """Whether queues, counters and statistics move: in training mode, and not under `torch.no_grad`.

        So a validation that forgets `loss.eval()` changes nothing.
        """
        return bool(self.training) and torch.is_grad_enabled()

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
            ValueError: for labels or references that do not fit the embeddings, and for reference embeddings other than
                the batch itself, unless the loss takes them.
        """
        if ref_emb is embeddings and ref_labels is labels:  # Version 3 would take them for other rows.
            ref_emb = ref_labels = None
        if not self.takes_references and (ref_emb is not None or ref_labels is not None):
            raise ValueError("ref_emb is not supported for this loss function")
        device = embeddings.device
        if next(chain(self.parameters(), self.buffers()), embeddings).device != device:
            self.to(device)
        embeddings, labels = _fitting(embeddings, labels, device)
        if ref_emb is not None:
            ref_emb, ref_labels = _fitting(ref_emb, ref_labels, device)
        with without_autocast(embeddings):
            value = super().forward(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        return value.to(embeddings.dtype) if isinstance(value, Tensor) else value


def _fitting(embeddings: Tensor, labels: Tensor | None, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Rows (B, d) in float32 or float64, and their labels (B,) on this device."""
    _require_shapes(embeddings, labels)
    return at_least_float32(embeddings), None if labels is None else labels.to(device)


class ByCosine(MetricLoss):
    """A loss that compares embeddings by their cosines unless it is given another distance."""

    distance: Any

    def default_distance(self) -> CosineSimilarity:
        """Cosine similarity, which normalises what it compares."""
        return CosineSimilarity()


class WeightedLoss(ByCosine):
    """A loss with learned vectors for classes, which it may penalise.

    Args:
        weight_regularizer: PML's regularizer of these vectors; default None.
        weight_reg_weight: its weight; default 1.
        weight_init_func: function that starts them in place; default None, `default_weight_init`.
        **kwargs: PML's `distance` (default cosine), `reducer`, `embedding_regularizer` and `embedding_reg_weight`.
    """

    def __init__(
        self,
        *,
        weight_regularizer: Any = None,
        weight_reg_weight: float = 1.0,
        weight_init_func: Any = None,
        **kwargs: Any,
    ) -> None:
        self.weight_regularizer: Any = weight_regularizer is not None  # Version 2.9's constructor asks for the names.
        super().__init__(**kwargs)
        self.weight_regularizer, self.weight_reg_weight = weight_regularizer, weight_reg_weight
        self.weight_init_func = weight_init_func

    def start_weights(self, weight: Tensor) -> None:
        """Start the vectors in place, as the constructor was told to."""
        (self.weight_init_func or self.default_weight_init)(weight)

    def default_weight_init(self, weight: Tensor) -> None:
        """Start the vectors in place: normal with variance 1."""
        nn.init.normal_(weight)

    def class_weights(self) -> Tensor:
        """The learned vectors, one in each row."""
        raise NotImplementedError

    def penalties(self) -> list[str]:
        """Names of the regularizers that there are."""
        return [*(["weight_reg_loss"] if self.weight_regularizer else []), *super().penalties()]

    def regularization_terms(self, embeddings: Tensor) -> dict[str, Any]:
        """PML's hook: the regularizers of the vectors and of embeddings (B, d), if there are any."""
        terms: dict[str, Any] = super().regularization_terms(embeddings)
        if self.weight_regularizer is None:
            return terms
        return {
            "weight_reg_loss": term(self.weight_regularizer(self.class_weights()) * self.weight_reg_weight),
            **terms,
        }


class ProxyLoss(WeightedLoss, TrainingPlugin):
    """Base of losses with proxies, that is, vectors of classes in the embedding space, `proxies` (C N, d).

    Args:
        num_classes: C.
        embedding_size: d.
        **kwargs: PML's `distance` (a similarity; default cosine), `weight_init_func` of the proxies (default normal
            with variance 2/(C N) per entry, as in Proxy-Anchor's code), `weight_regularizer` of the proxies, ...
    """

    proxies_per_class = 1
    """N. A loss with several sets it before this constructor."""

    def __init__(self, num_classes: int, embedding_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_similarity(self.distance)
        self.num_classes, self.embedding_size = num_classes, embedding_size
        self.proxies = nn.Parameter(torch.empty(num_classes * self.proxies_per_class, embedding_size))
        self.start_weights(self.proxies)

    def default_weight_init(self, weight: Tensor) -> None:
        """Start the proxies in place: normal with variance 2/(C N)."""
        nn.init.kaiming_normal_(weight, mode="fan_out")

    def class_weights(self) -> Tensor:
        """The proxies (C N, d)."""
        return self.proxies

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Cosines (B, C N) between embeddings (B, d) and the proxies, without any scale."""
        embeddings = at_least_float32(embeddings)
        similarity: Tensor = self.distance(embeddings, self.proxies.to(embeddings.dtype))
        return similarity


def elements(losses: Tensor, **more: Any) -> dict[str, Any]:
    """Losses (n,) for a reducer, with their positions."""
    return term(losses, torch.arange(len(losses), device=losses.device), "element", **more)


def of_samples(losses: Tensor, labels: Tensor, indices_tuple: Any) -> dict[str, Any]:
    """Losses (B,) of the samples of a batch, weighted by what a miner found."""
    return elements(losses * weights_of(indices_tuple, labels, losses.dtype))


def of_classes(losses: Tensor, divisor: Tensor | int) -> dict[str, Any]:
    """Losses (C,) of classes, whose sum is to be divided by `divisor`."""
    return elements(losses, divisor=divisor)


def already_reduced(**losses: Tensor) -> dict[str, dict[str, Any]]:
    """Losses by name that are numbers already."""
    return {name: term(value) for name, value in losses.items()}


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
    _require_shapes(embeddings, labels)
    if embedding_size is not None and embeddings.shape[1] != embedding_size:
        raise ValueError(f"embeddings have {embeddings.shape[1]} dimensions, the loss was made for {embedding_size}")
    if len(labels) == 0:
        raise ValueError("the batch is empty")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    if num_classes is not None and labels.device.type == "cpu" and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(f"labels must be in 0..{num_classes - 1}, got {labels.min()}..{labels.max()}")
    return labels.long()


def _require_shapes(embeddings: Tensor, labels: Tensor | None) -> None:
    if embeddings.ndim != 2 or (labels is not None and labels.shape != embeddings.shape[:1]):
        given = "none" if labels is None else tuple(labels.shape)
        raise ValueError(f"expected embeddings (B, d) and labels (B), got {tuple(embeddings.shape)} and {given}")


def require_one_of(names: Any, argument: str, value: str) -> None:
    """Raise ValueError unless the value of an argument is one of the names of a `Literal`."""
    if value not in (known := get_args(names)):
        raise ValueError(f"{argument} must be one of {', '.join(known)}, got {value!r}")


def require_cosine(loss: Any) -> None:
    """Raise ValueError for a loss whose distance is not the cosine."""
    if not isinstance(loss.distance, CosineSimilarity):
        raise ValueError(f"{type(loss).__name__} needs CosineSimilarity")


def require_similarity(distance: Any) -> None:
    """Raise ValueError for a distance of PML that is no similarity, which grows with likeness."""
    if not distance.is_inverted:
        raise ValueError(f"{type(distance).__name__} is a distance; this loss needs a similarity (CosineSimilarity)")
