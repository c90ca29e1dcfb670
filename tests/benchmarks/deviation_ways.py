"""The ways of the authors' and the library's code that are no options of the suite, for `tests.benchmarks.deviations`.

Source: the authors' released code, as docs/deviations.md describes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor
from torch.nn import functional

from losses.ccp import CCPLoss
from losses.hist import HISTLoss
from losses.memory_queue import MemoryQueue, SummedMemoryQueue
from losses.pair_losses import EuclideanDistance
from losses.plugin import Clock, TrainingContext
from losses.proxy_gml import ProxyGMLLoss
from losses.soft_triple import SoftTripleLoss
from protocols.trunks.embedding_model import EmbeddingModel, model_of
from results.spec.training_spec import FoldSpec

RawSNR = pml_losses.SignalToNoiseRatioContrastiveLoss
LibraryProxyNCA = pml_losses.ProxyNCALoss


class LibraryXBM(pml_losses.CrossBatchMemory):
    """The library's cross-batch memory, built from the card of C2-XBM."""

    def __init__(
        self, embedding_size: int, base: str, memory_size: int, pos_margin: float, neg_margin: float, **_: Any
    ):
        loss = pml_losses.ContrastiveLoss(pos_margin, neg_margin, distance=EuclideanDistance())
        super().__init__(loss, embedding_size, memory_size)


class _OverwritesNewer(MemoryQueue):
    """When a batch does not fit behind the position, it goes to the last slots, and the position restarts at 0."""

    @torch.no_grad()
    def push(self, embeddings: Tensor, labels: Tensor, keep: Tensor | None = None) -> Tensor:
        if keep is not None:
            embeddings, labels = embeddings[keep], labels[keep]
        number, first = len(labels), int(self.position)
        overflows = first + number > self.memory_size
        first = self.memory_size - number if overflows else first
        slots = torch.arange(first, first + number)
        self._write(slots, embeddings, labels, torch.ones(number, dtype=torch.bool))
        self.position.fill_(0 if overflows else first + number)
        self.filled.clamp_(min=first + number)
        return slots


class NewestRows(_OverwritesNewer):
    """The queue of XBM's code."""


class NewestSummed(_OverwritesNewer, SummedMemoryQueue):
    """The memory of Proxy-ISA's code."""


class FrozenSecondPass(ProxyGMLLoss):
    """ProxyGML's code trains only embedder and proxies in the second pass."""

    def bind(self, context: TrainingContext) -> None:
        *self.of_trunk, _, _ = context.trunk_parameters  # The embedder's weight and bias come last.

    def on_step_start(self, clock: Clock) -> None:
        for parameter in self.of_trunk:
            parameter.requires_grad_(clock.passes != 1)


class LateCCP(CCPLoss):
    """The callback of CCP's code sees the evaluation before the current one, 0 at first."""

    before = 0.0

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        super().on_evaluation(clock, {**metrics, "map_at_r": self.before})
        self.before = metrics["map_at_r"]


class DroppingHIST(HISTLoss):
    """HIST's code leaves out the samples whose probability is 0 in float32."""

    def compute_loss(self, *args: Any) -> dict[str, Any]:
        terms = super().compute_loss(*args)
        for term in terms.values():
            kept = (-term["losses"]).exp() > 0
            term |= {"losses": term["losses"][kept], "indices": term["indices"][kept]}
        return terms


def model_with_layer_norm(spec: FoldSpec) -> EmbeddingModel:
    """The suite's model, whose embeddings end with a layer normalisation as HIST's."""
    model = model_of(spec)
    model.embedder.register_forward_hook(lambda _, __, rows: functional.layer_norm(rows, rows.shape[1:]))
    return model


def nearest_centers(self: SoftTripleLoss, embeddings: Tensor, labels: Tensor) -> Tensor:
    """The centre of its class that is nearest to each sample, (B, d)."""
    centers = self.centers(embeddings.dtype)[labels]
    nearest = (functional.normalize(embeddings, dim=1).unsqueeze(1) * centers).sum(2).argmax(1)
    return centers[torch.arange(len(labels)), nearest]


def batches_with_the_rest(
    labels: NDArray[np.int64], batch_size: int, _: int, seed: int, *, whole_passes: bool
) -> Iterator[NDArray[np.int64]]:
    """Shuffled passes, each with its incomplete last batch."""
    generator = np.random.default_rng(seed)
    while True:
        rows = generator.permutation(len(labels))
        yield from (rows[first : first + batch_size] for first in range(0, len(rows), batch_size))
