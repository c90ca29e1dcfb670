"""Embeddings of images by a model, in evaluation mode."""

import numpy as np
import torch
from torch import Tensor

from protocols.images.crops import evaluation_batch
from protocols.images.packed import LabelledImages
from protocols.trunks.build import EmbeddingModel
from results.specs import ImageSettings

BATCH = 64
"""Images embedded at once."""


def embed(
    model: EmbeddingModel, images: LabelledImages, settings: ImageSettings, device: torch.device, batch: int = BATCH
) -> Tensor:
    """Raw embeddings (n, d) of the images' centre crops, on `device`; the model's mode is restored afterwards."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [
            model(evaluation_batch(images, np.arange(first, min(first + batch, len(images))), settings).to(device))
            for first in range(0, len(images), batch)
        ]
    model.train(was_training)
    return torch.cat(parts)
