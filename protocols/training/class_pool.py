"""Embeddings of a few training images of every class, for losses that choose their proxies among samples (CCP)."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.images.batch_source import BatchSource
from protocols.trunks.embedding_model import EmbeddingModel


@dataclass
class ClassPool:
    """Draws images without replacement inside each class until the class is used up, then reshuffles it.

    Has random numbers of its own: drawing a pool must not disturb the training's stream of batches.
    """

    model: EmbeddingModel
    source: BatchSource
    targets: NDArray[np.int64]
    seed: int
    _left: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._order = np.random.default_rng(self.seed)
        self._crops = torch.Generator().manual_seed(self.seed)

    def __call__(self, per_class: int) -> Tensor:
        """Raw embeddings (C, per_class, d) in class order, model in eval mode, no gradient; its mode is restored."""
        n_classes = int(self.targets.max()) + 1
        rows = np.stack([self._draw(target, per_class) for target in range(n_classes)])
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            parts = [
                self.model(self.source.training_batch(part, self._crops))
                for part in np.array_split(rows.reshape(-1), max(1, rows.size // 64))
            ]
        self.model.train(was_training)
        return torch.cat(parts).reshape(n_classes, per_class, -1)

    def _draw(self, target: int, count: int) -> NDArray[np.int64]:
        drawn: list[int] = []
        left = self._left.setdefault(target, [])
        while len(drawn) < count:
            if not left:
                left.extend(self._order.permutation(np.flatnonzero(self.targets == target)).tolist())
            drawn.append(left.pop())
        return np.asarray(drawn, dtype=np.int64)
