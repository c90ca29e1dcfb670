"""Embeddings of a few training images of every class, for losses that choose their proxies among samples (CCP)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

_EMBEDDED_AT_ONCE = 64


class SamplePool:
    """Draws training images of every class and embeds them.

    Draws are without replacement inside a class until all its images were drawn; then the class is shuffled again. The
    pool has its own random numbers, so that it does not change the training's batches.

    Args:
        model: the network in training; it maps a batch of inputs to raw embeddings (n, d).
        images: function that takes row numbers (n,) and returns the inputs of these training images as one batch.
        labels: class of every training image as 0..C-1, (n,).
        seed: seed of the draws.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Callable[[NDArray[np.int64]], Any],
        labels: NDArray[np.int64] | Sequence[int] | Tensor,
        seed: int,
    ) -> None:
        self.model, self.images, self.labels = model, images, np.asarray(labels)
        self._order = np.random.default_rng(seed)
        self._remaining: dict[int, list[int]] = {}

    def __call__(self, per_class: int) -> Tensor:
        """Embed `per_class` images of every class, without gradient and with the model in evaluation mode.

        Returns:
            Raw embeddings (C, per_class, d) in class order. The model's mode is restored.
        """
        n_classes = int(self.labels.max()) + 1
        rows = np.stack([self._draw(label, per_class) for label in range(n_classes)])
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            parts = [
                self.model(self.images(part))
                for part in np.array_split(rows.reshape(-1), max(1, rows.size // _EMBEDDED_AT_ONCE))
            ]
        self.model.train(was_training)
        return torch.cat(parts).reshape(n_classes, per_class, -1)

    def _draw(self, label: int, count: int) -> NDArray[np.int64]:
        """Draw rows of images of one class."""
        rows: list[int] = []
        remaining = self._remaining.setdefault(label, [])
        while len(rows) < count:
            if not remaining:
                remaining.extend(self._order.permutation(np.flatnonzero(self.labels == label)).tolist())
                if not remaining:
                    raise ValueError(f"class {label} has no training image; labels must be 0..C-1 without gaps")
            rows.append(remaining.pop())
        return np.asarray(rows, dtype=np.int64)
