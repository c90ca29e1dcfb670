"""What trainings and evaluations read: images, or features in their place."""

import torch

from protocols.images.batch_source import BatchSource, EvaluationCrops
from protocols.images.feature_rows import FeatureSource, LabelledFeatures
from protocols.images.packed_images import LabelledImages
from results.spec.conditions import ImageSettings

Samples = LabelledImages | LabelledFeatures
"""A selection of a dataset's images, or of their features, with classes. It gives no access to others."""

TrainingBatches = BatchSource | FeatureSource
EvaluationBatches = EvaluationCrops | FeatureSource


def training_batches_of(samples: Samples, settings: ImageSettings, device: torch.device) -> TrainingBatches:
    """Return the source of a training's batches: random crops of images, or rows of features."""
    if isinstance(samples, LabelledFeatures):
        return FeatureSource(samples, device)
    return BatchSource(samples, settings, device)


def evaluation_batches_of(
    samples: Samples, settings: ImageSettings, device: torch.device, *, keep: bool = True
) -> EvaluationBatches:
    """Return the batches of an evaluation, in the order of the samples: centre crops of images, or rows of features."""
    if isinstance(samples, LabelledFeatures):
        return FeatureSource(samples, device, keep=keep)
    return EvaluationCrops(samples, settings, device, keep=keep)
