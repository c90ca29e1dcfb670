"""Embeddings of images by a model, in evaluation mode."""

import torch
from torch import Tensor

from protocols.images.evaluation_crops import EvaluationCrops
from protocols.images.packed_images import LabelledImages
from protocols.trunks.embedding_model import EmbeddingModel
from results.training_spec import ImageSettings


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
