"""Embeddings of a few training images of every class, with the random crops of the training."""

import numpy as np
import torch
from numpy.typing import NDArray

from losses.sample_pool import SamplePool
from protocols.samples import TrainingBatches
from protocols.trunks.embedding_model import EmbeddingModel


def class_pool(model: EmbeddingModel, source: TrainingBatches, targets: NDArray[np.int64], seed: int) -> SamplePool:
    """Return a pool of a fold's training images.

    Args:
        model: The model in training.
        source: The training images.
        targets: Class of every training image as 0..C-1, (n,).
        seed: Seed of the draws and of the random crops.
    """
    crops = torch.Generator().manual_seed(seed)
    return SamplePool(model, lambda rows: source.training_batch(rows, crops), targets, seed)
