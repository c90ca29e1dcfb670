"""Embeddings of images by a model, in evaluation mode."""

import torch
from torch import Tensor

from protocols.images.packed import LabelledImages
from protocols.images.prepared import EvaluationCrops
from protocols.trunks.build import EmbeddingModel
from results.specs import ImageSettings


def embed(model: EmbeddingModel, images: LabelledImages, settings: ImageSettings, device: torch.device) -> Tensor:
    """Raw embeddings (n, d) of the images' centre crops, on `device`; the model's mode is restored afterwards."""
    return embed_crops(model, EvaluationCrops(images, settings, device, keep=False))


def embed_crops(model: EmbeddingModel, crops: EvaluationCrops) -> Tensor:
    """The same for crops that are kept from one call to the next."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [model(batch) for batch in crops.batches()]
    model.train(was_training)
    return torch.cat(parts)
