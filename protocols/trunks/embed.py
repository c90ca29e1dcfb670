"""Embeddings of images by a model, in evaluation mode."""

import torch
from torch import Tensor

from protocols.images.evaluation_crops import EvaluationCrops
from protocols.images.packed_images import LabelledImages
from protocols.trunks.embedding_model import EmbeddingModel
from results.training_spec import ImageSettings


def embed(model: EmbeddingModel, images: LabelledImages, settings: ImageSettings, device: torch.device) -> Tensor:
    """Embed the centre crops of images.

    Args:
        model: The model. It is set to evaluation mode; its mode is restored afterwards.
        images: The images.
        settings: Resizing and cropping.
        device: The device that the model is on.

    Returns:
        Raw embeddings (n, d) on `device`, in the order of the images.
    """
    return embed_crops(model, EvaluationCrops(images, settings, device, keep=False))


def embed_crops(model: EmbeddingModel, crops: EvaluationCrops) -> Tensor:
    """Embed crops that can be used by several calls.

    Args:
        model: The model. It is set to evaluation mode; its mode is restored afterwards.
        crops: Centre crops, on the model's device.

    Returns:
        Raw embeddings (n, d), in the order of the crops.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [model(batch) for batch in crops.batches()]
    model.train(was_training)
    return torch.cat(parts)
