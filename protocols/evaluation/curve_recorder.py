"""Test scores all along a training: what choosing the epoch by them would have been worth. Nothing selects by them."""

from typing import final

import torch

from protocols.evaluation.evaluate_run import normalization_of
from protocols.evaluation.test_data import TestData
from protocols.images.evaluation_crops import EvaluationCrops
from protocols.metrics.retrieval import normalized, query_scores, sides
from protocols.trunks.embed import embed_crops
from protocols.trunks.embedding_model import EmbeddingModel
from results.records import TestCurve, TestPoint
from results.training_spec import FoldSpec


@final
class CurveRecorder:
    """Scores a training's model on the test classes at every validation, and leaves the training as it is.

    To be handed to `train_fold` as `observe`. It uses no random numbers, restores the model's mode and hands nothing
    back. Raises SplitError if the training sees a test class.
    """

    def __init__(self, spec: FoldSpec, data: TestData, device: str = "cpu") -> None:
        data.check_unseen(spec)
        self.spec, self.data = spec, data
        self.crops = EvaluationCrops(data.images, spec.images, torch.device(device))
        self.labels = torch.from_numpy(data.images.labels)
        self.normalization = normalization_of(spec)
        self.points: list[TestPoint] = []

    def __call__(self, model: EmbeddingModel, iteration: int) -> None:
        """Adds a point; none where embeddings are not finite, which ends the training by itself."""
        embeddings = embed_crops(model, self.crops)
        if torch.isfinite(embeddings).all():
            compared = sides(normalized(embeddings, self.normalization), self.labels, self.data.is_query)
            self.points.append(TestPoint(iteration=iteration, scores=query_scores(*compared).mean().scores))

    def curve(self) -> TestCurve:
        """The points so far."""
        return TestCurve(fingerprint=self.spec.fingerprint, points=tuple(self.points))
