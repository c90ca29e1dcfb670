"""Embeddings of images by a model, in evaluation mode."""

from collections.abc import Callable

import torch
from torch import Tensor

from protocols.samples import EvaluationBatches, Samples, evaluation_batches_of
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.conditions import ImageSettings


def embed(model: EmbeddingModel, images: Samples, settings: ImageSettings, device: torch.device) -> Tensor:
    """Embed the centre crops of images, or their features; returns raw embeddings (n, d) on the device."""
    return embed_crops(model, evaluation_batches_of(images, settings, device, keep=False))


def embed_crops(model: EmbeddingModel, crops: EvaluationBatches) -> Tensor:
    """Embed crops, which several calls can use; returns raw embeddings (n, d) in their order."""
    return _in_evaluation_mode(model, model, crops)


def features_of_crops(model: EmbeddingModel, crops: EvaluationBatches) -> Tensor:
    """Compute the trunk's pooled features (n, c) of crops, in their order."""
    return _in_evaluation_mode(model, model.features, crops)


def _in_evaluation_mode(model: EmbeddingModel, compute: Callable[[Tensor], Tensor], crops: EvaluationBatches) -> Tensor:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [compute(batch) for batch in crops.batches()]
    model.train(was_training)
    return torch.cat(parts)
