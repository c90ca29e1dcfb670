"""Embeddings of a few training images of every class, for losses that choose their proxies among samples (CCP)."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocols.samples import TrainingBatches
from protocols.trunks.embedding_model import EmbeddingModel


@dataclass
class ClassPool:
    """Draws training images of every class and embeds them.

    Draws are without replacement inside a class until all its images were drawn; then the class is shuffled again. The
    pool has its own random numbers, so that it does not change the training's batches.

    Attributes:
        model: The model in training.
        source: The training images.
        targets: Class of every training image as 0..C-1, (n,).
        seed: Seed of the draws and of the random crops.
    """

    model: EmbeddingModel
    source: TrainingBatches
    targets: NDArray[np.int64]
    seed: int
    _remaining: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._order = np.random.default_rng(self.seed)
        self._crops = torch.Generator().manual_seed(self.seed)

    def __call__(self, per_class: int) -> Tensor:
        """Embed `per_class` images of every class, without gradient and with the model in evaluation mode.

        Returns:
            Raw embeddings (C, per_class, d) in class order. The model's mode is restored.
        """
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
        """Draw positions of images of one class."""
        positions: list[int] = []
        remaining = self._remaining.setdefault(target, [])
        while len(positions) < count:
            if not remaining:
                remaining.extend(self._order.permutation(np.flatnonzero(self.targets == target)).tolist())
            positions.append(remaining.pop())
        return np.asarray(positions, dtype=np.int64)
