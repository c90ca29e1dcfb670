"""Test scores at every validation of a training. They show what a choice of the epoch by test scores would give.

Nothing selects by these scores.
"""

from typing import final

import torch

from protocols.evaluation.evaluate_run import normalization_of
from protocols.evaluation.test_data import TestData
from protocols.metrics.retrieval import normalized, query_scores, sides
from protocols.samples import evaluation_batches_of
from protocols.trunks.embed import embed_crops
from protocols.trunks.embedding_model import EmbeddingModel
from results.records.records import TestCurve, TestPoint
from results.spec.training_spec import FoldSpec


@final
class CurveRecorder:
    """Scores a model on the test classes at every validation, without an effect on its training.

    Pass it to `train_fold` as `observe`. It uses no random numbers, restores the model's mode and returns nothing.

    Args:
        spec: The training.
        data: Images of the test classes.
        device: `cpu`, `cuda` or `cuda:N`.

    Raises:
        SplitError: The training uses a test class.
    """

    def __init__(self, spec: FoldSpec, data: TestData, device: str = "cpu") -> None:
        data.check_unseen(spec)
        self.spec, self.data = spec, data
        self.crops = evaluation_batches_of(data.images, spec.images, torch.device(device))
        self.labels = torch.from_numpy(data.images.labels)
        self.normalization = normalization_of(spec)
        self.points: list[TestPoint] = []

    def __call__(self, model: EmbeddingModel, iteration: int) -> None:
        """Add a point to the curve. There is none for embeddings that are not finite; they end the training anyway."""
        embeddings = embed_crops(model, self.crops)
        if torch.isfinite(embeddings).all():
            query_sides = sides(normalized(embeddings, self.normalization), self.labels, self.data.is_query)
            self.points.append(TestPoint(iteration=iteration, scores=query_scores(*query_sides).mean().scores))

    def curve(self) -> TestCurve:
        """The points recorded up to now."""
        return TestCurve(fingerprint=self.spec.fingerprint, points=tuple(self.points))
