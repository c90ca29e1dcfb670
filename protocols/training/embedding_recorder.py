"""Records embeddings and proxies at some moments of a training, for figures. The training does not notice it."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from losses.ccp import CCPLoss
from losses.class_vectors import class_vectors
from losses.plugin import Normalization
from protocols.metrics.covering import class_distance, covering_radius
from protocols.metrics.retrieval import normalized, query_scores
from protocols.samples import evaluation_batches_of
from protocols.training.fold_data import FoldData
from protocols.trunks.embed import embed_crops
from protocols.trunks.embedding_model import EmbeddingModel
from results.records.artifacts import Recording, Snapshot
from results.spec.experiment_spec import RecordingSettings
from results.spec.training_spec import FoldSpec
from results.values import derive_seed


@dataclass(frozen=True)
class EpochEnd:
    """A training after one of its epochs, as a recorder gets it.

    Attributes:
        loss: Its loss; None for the untrained trunk.
        epoch: Number of epochs done, 0 before the training.
        map_at_r: MAP@R on the validation classes; None if there was no validation after this epoch.
    """

    model: EmbeddingModel
    loss: nn.Module | None
    epoch: int
    map_at_r: float | None
    normalization: Normalization


EpochObserver = Callable[[EpochEnd], None]
"""Receives a training after each of its epochs and before the first. It returns nothing to the training."""


@final
class EmbeddingRecorder:
    """Keeps embeddings and proxies after given epochs, and the solutions of CCP's problems.

    Pass it to `train_fold` as `record`. The images are chosen by its own random numbers, and it restores the model's
    mode, so a recorded training gives the same result as one without a recorder.

    A problem of CCP ends when the loss raises its `instance`.
    The solution of a problem is the network with the
    problem's best validation score: CCP carries this solution over to the next problem. Other losses have no problems.
    """

    def __init__(self, settings: RecordingSettings, spec: FoldSpec, data: FoldData, device: str = "cpu") -> None:
        self.settings = settings
        on_training = settings.images == "training"
        images, targets = (data.train, data.train_targets) if on_training else (data.validation, data.validation.labels)
        rows = _chosen(targets, settings, derive_seed("recording", spec.seed))
        self.crops = evaluation_batches_of(images.select(rows), spec.conditions.images, torch.device(device))
        self.labels = targets[rows]
        # Proxies belong to training classes. None is kept beside validation images.
        self.proxy_classes = set(self.labels.tolist()) if on_training else set()
        self.snapshots: list[Snapshot] = []
        self.problem, self.best_score = 0, -np.inf
        self.best: tuple[int, Tensor] | None = None

    def __call__(self, end: EpochEnd) -> None:
        """Keep what the settings ask for after this epoch."""
        if end.epoch in self.settings.epochs:
            vectors = None if end.loss is None else class_vectors(end.loss)
            proxies, proxy_labels = self._proxies(vectors, end)
            none = np.empty((0, proxies.shape[1]), np.float32)
            embeddings = self._embeddings(end).numpy()
            self.snapshots.append(Snapshot(end.epoch, -1, embeddings, self.labels, proxies, proxy_labels, none))
        if self.settings.problems and isinstance(end.loss, CCPLoss) and end.map_at_r is not None:
            self._follow_problems(end, end.loss, end.map_at_r)

    def recording(self) -> Recording:
        """The snapshots up to now. The problem that is not solved yet is left out."""
        return Recording(tuple(self.snapshots))

    def _follow_problems(self, end: EpochEnd, loss: CCPLoss, score: float) -> None:
        """Keep the best network of the present problem; if the problem has ended, keep its solution."""
        if score > self.best_score:
            self.best_score, self.best = score, (end.epoch, self._embeddings(end))
        if int(loss.instance) == self.problem:
            return
        if self.best is not None and torch.isfinite(self.best[1]).all():
            self.snapshots.append(self._solution(end, loss, *self.best))
        self.problem, self.best_score, self.best = int(loss.instance), -np.inf, None

    def _solution(self, end: EpochEnd, loss: CCPLoss, epoch: int, embeddings: Tensor) -> Snapshot:
        labels = torch.from_numpy(self.labels)
        owners = loss.proxy_labels.cpu()
        # The loss has picked the first proxies of the next problem already.
        next_proxies, _ = self._proxies((loss.proxies.detach().cpu(), owners), end)
        proxies, proxy_labels = self._proxies((loss.best_proxies.cpu(), owners), end)
        return Snapshot(
            epoch=epoch,
            problem=self.problem,
            embeddings=embeddings.numpy(),
            labels=self.labels,
            proxies=proxies,
            proxy_labels=proxy_labels,
            next_proxies=next_proxies,
            map_at_r=query_scores(embeddings, labels).mean().map_at_r,
            covering_radius=covering_radius(embeddings, labels),
            class_distance=class_distance(embeddings, labels),
        )

    def _proxies(self, vectors: tuple[Tensor, Tensor] | None, end: EpochEnd) -> tuple[Any, Any]:
        return proxies_of_classes(vectors, self.proxy_classes, end.model.dimensions, end.normalization)

    def _embeddings(self, end: EpochEnd) -> Tensor:
        return normalized(embed_crops(end.model, self.crops), end.normalization).float().cpu()


def proxies_of_classes(
    vectors: tuple[Tensor, Tensor] | None, classes: Set[int], dimensions: int, kind: Normalization
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the normalised proxies (p, d) of some classes, and their classes (p,).

    Args:
        vectors: The loss's proxies (k, d) and their classes (k,); None if it has none.
        dimensions: Dimensions of the embeddings. Proxies of others cannot be shown beside them.
    """
    if vectors is None or vectors[0].shape[1] != dimensions:
        return np.empty((0, dimensions), np.float32), np.empty(0, np.int64)
    proxies, owners = vectors
    keep = torch.tensor([owner in classes for owner in owners.tolist()], dtype=torch.bool)
    return normalized(proxies[keep].float(), kind).numpy(), owners[keep].numpy().astype(np.int64)


def _chosen(targets: NDArray[np.int64], settings: RecordingSettings, seed: int) -> NDArray[np.int64]:
    """Positions of the recorded images, sorted by class: classes at equal intervals, random images of each."""
    ranks = np.unique(targets)
    count = len(ranks) if settings.classes is None else min(settings.classes, len(ranks))
    ranks = ranks[np.linspace(0, len(ranks) - 1, count).round().astype(int)]
    draw = np.random.default_rng(seed)
    rows = [draw.permutation(np.flatnonzero(targets == rank))[: settings.per_class] for rank in ranks]
    return np.concatenate([np.sort(chosen) for chosen in rows])
