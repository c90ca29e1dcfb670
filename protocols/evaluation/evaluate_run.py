"""The test evaluation of a reproduction: separated and concatenated scores (specification, section 8).

Only here are the images of the test classes seen, and only here do models embed them.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losses.plugin import Normalization
from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import ClassSplit, SplitError, classes_of, trainval_of
from protocols.images.samples import Samples, evaluation_batches_of
from protocols.jobs import EvaluateJob
from protocols.machine.torch_state import torch_provenance, use_precision
from protocols.metrics.metric_registry import check_metric_names, measure
from protocols.metrics.retrieval import QueryScores, is_collapsed, normalized, query_scores
from protocols.training.build_method import RefusedError, normalization_of
from protocols.training.closed_forms import reduced_by_themselves
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops, embedding_size_of, trained_model
from protocols.users_code.sources import SourceError
from results.records.records import (
    ClassScores,
    EarlyScores,
    Event,
    RunRecord,
    Scores,
    TestCurve,
    TestPoint,
    mean_scores,
)
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class TestData:
    """Images of the test classes, or their features.

    Attributes:
        images: The images or their features, with their labels.
        is_query: For each image whether it is a query, (n,); the others are the gallery. With None every image is a
            query, and it is compared with all others.
    """

    images: Samples
    is_query: NDArray[np.bool_] | None = None

    def check_unseen(self, spec: FoldSpec) -> None:
        """Check that a training uses no test class."""
        overlap = used_classes(spec) & set(self.images.labels.tolist())
        if overlap:
            raise SplitError(f"fold {spec.fold}: test class {min(overlap)} was used for training or validation")


def used_classes(spec: FoldSpec) -> set[int]:
    """Return the ranks of the classes that a model was trained or selected on."""
    return set(trainval_of(classes_of(spec)))


def test_data(dataset: Dataset, split: ClassSplit) -> TestData:
    """Select the images of the test classes, for the test of reproductions."""
    images = dataset.images.of_classes(split.test)
    is_query = None if dataset.is_query is None else dataset.is_query[np.isin(dataset.images.labels, split.test)]
    return TestData(images, is_query)


@dataclass(frozen=True)
class Embedded:
    """The normalised embeddings of the test images.

    Attributes:
        kind: The normalisation, `unit` or `ball`.
        by_model: Embeddings (n, d) of every fold's model.
        concatenated: Concatenated embeddings (n, sum of d) of all models.
    """

    kind: Normalization
    by_model: tuple[Tensor, ...]
    concatenated: Tensor


def evaluate_run(
    job: EvaluateJob,
    weights: Sequence[dict[str, Tensor]],
    data: TestData,
    *,
    device: str = "cpu",
    last_weights: Sequence[dict[str, Tensor] | None] = (),
    early_weights: Sequence[dict[str, Tensor] | None] = (),
) -> RunRecord:
    """Score one reproduction on the test classes.

    Separated scores are the mean of the scores of the folds' models. Concatenated scores are those of the ensemble: the
    normalised embeddings of all models are concatenated, normalised again and scored once. With a single model both are
    the same. Models of a chosen epoch are also scored after the last epoch of their trainings (protocol `standard`).

    Args:
        job: The trainings whose models are tested, and the reproduction they belong to.
        weights: State dicts of the trained models, in the order of the folds.
        data: Images of the test classes.
        device: `cpu`, `cuda` or `cuda:N`.
        last_weights: State dicts after the last epochs of the trainings, in the order of the folds; None where there is
            none.
        early_weights: State dicts of the best models up to the trainings' early epoch, likewise.

    Returns:
        The record of the run, with scores as fractions of 1.

    Raises:
        SplitError: A model was trained or selected on a test class.
        ValueError: A metric is unknown. RefusedError: a user's metric fails on these embeddings.
    """
    started = time.perf_counter()
    check_metric_names(job.metrics)
    embedded = embed_test(job.specs, weights, data, torch.device(device))
    last = _embedded_last(job, embedded, last_weights, data, torch.device(device))
    labels = torch.from_numpy(data.images.labels)
    embeddings, concatenated, several = embedded.by_model, embedded.concatenated, len(embedded.by_model) > 1
    queries = [query_scores(e, labels, data.is_query) for e in embeddings]
    concatenated_queries = query_scores(concatenated, labels, data.is_query) if several else queries[0]
    folds = [fold.mean() for fold in queries]
    last_folds = folds if last is embeddings else [query_scores(e, labels, data.is_query).mean() for e in last or ()]
    whole = mean_scores(folds), concatenated_queries.mean()
    early = _early_scores(job, whole, weights, early_weights, data, torch.device(device))
    metrics = [_measured(job, e, labels, data) for e in embeddings]
    concatenated_metrics = _measured(job, concatenated, labels, data) if several else metrics[0]
    return RunRecord(
        protocol=job.protocol,
        specs=job.specs,
        hyperparameters=job.hyperparameters,
        run=job.run,
        search=job.search,
        study=job.study,
        seed=job.seed,
        fold_scores=tuple(folds),
        concatenated=whole[1],
        dimensions=embeddings[0].shape[1],
        test_classes=len(labels.unique()),
        test_images=len(labels),
        events=(*job.events, *_of_the_embeddings(job, embedded)),
        steps=job.steps,
        iterations=job.iterations,
        metrics_separated={name: fmean(fold[name] for fold in metrics) for name in job.metrics},
        metrics_concatenated=concatenated_metrics,
        class_scores=class_scores(queries, concatenated_queries, labels.unique()),
        chosen_by=job.chosen_by,
        last_epoch=mean_scores(last_folds) if last_folds else None,
        early=early,
        wall_time=job.wall_time + time.perf_counter() - started,
        provenance=torch_provenance(torch.device(device)),
    )


def _early_scores(
    job: EvaluateJob,
    whole: tuple[Scores, Scores],
    weights: Sequence[dict[str, Tensor]],
    early_weights: Sequence[dict[str, Tensor] | None],
    data: TestData,
    device: torch.device,
) -> EarlyScores | None:
    """Score the best models up to the early epoch of their trainings; None where these have none.

    Args:
        whole: Separated and concatenated scores of the models, which are those of the early ones if all are the same.
    """
    if (steps := job.early_steps) is None:
        return None
    if not any(early_weights):
        return EarlyScores(steps=steps, separated=whole[0], concatenated=whole[1])
    models = [own if early is None else early for own, early in zip(weights, early_weights, strict=True)]
    embedded, labels = embed_test(job.specs, models, data, device), torch.from_numpy(data.images.labels)
    folds = [query_scores(rows, labels, data.is_query).mean() for rows in embedded.by_model]
    joined = query_scores(embedded.concatenated, labels, data.is_query).mean() if len(folds) > 1 else folds[0]
    return EarlyScores(steps=steps, separated=mean_scores(folds), concatenated=joined)


def _of_the_embeddings(job: EvaluateJob, embedded: Embedded) -> Iterator[Event]:
    """Name the models whose test embeddings are equal up to rounding, or some of them zeros: they score 0."""
    for spec, rows in zip(job.specs, embedded.by_model, strict=True):
        if is_collapsed(rows):
            yield Event(kind="collapsed", fold=spec.fold)
        elif not rows.any(1).all():
            yield Event(kind="zeros", fold=spec.fold)


def _embedded_last(
    job: EvaluateJob,
    embedded: Embedded,
    last_weights: Sequence[dict[str, Tensor] | None],
    data: TestData,
    device: torch.device,
) -> tuple[Tensor, ...] | None:
    """Embed the test images with the models of the last epoch; None without a chosen epoch or without such models."""
    if any(spec.checkpoint_epoch is None for spec in job.specs):
        return None
    if job.steps == job.iterations > 0:
        return embedded.by_model  # The last epoch was chosen.
    weights = [state for state in last_weights if state is not None]
    return embed_test(job.specs, weights, data, device).by_model if len(weights) == len(job.specs) else None


def embed_test(
    specs: Sequence[FoldSpec],
    weights: Sequence[dict[str, Tensor]],
    data: TestData,
    device: torch.device,
) -> Embedded:
    """Embed the test images with every model of a run, in the precision of its training."""
    use_precision(specs[0].conditions.training.precision)
    kind = normalization_of(specs[0])
    # All folds of a run use the same crops.
    crops = {s.conditions.images: evaluation_batches_of(data.images, s.conditions.images, device) for s in specs}
    raw = []
    for spec, state in zip(specs, weights, strict=True):
        data.check_unseen(spec)
        raw.append(embed_crops(trained_model(spec, state, device), crops[spec.conditions.images]))
    if specs[0].method.embedder == "test_components":
        size = embedding_size_of(specs[0])
        by_model = tuple(normalized(reduced_by_themselves(e, size), kind) for e in raw)
        return Embedded(kind, by_model, normalized(reduced_by_themselves(torch.cat(raw, 1), size * len(raw)), kind))
    by_model = tuple(normalized(e, kind) for e in raw)
    return Embedded(kind, by_model, concatenated(raw, kind) if len(raw) > 1 else by_model[0])


def concatenated(embeddings: Sequence[Tensor], kind: Normalization) -> Tensor:
    """Concatenate the embeddings of an ensemble.

    `unit` normalises each model's embeddings before. `ball` concatenates raw embeddings (CCP supplement), so that short
    vectors keep their length.

    Args:
        embeddings: Raw embeddings (n, d) of each model.

    Returns:
        Normalised embeddings (n, sum of d).
    """
    parts = embeddings if kind == "ball" else [normalized(e, kind) for e in embeddings]
    return normalized(torch.cat(list(parts), dim=1), kind)


def class_scores(folds: Sequence[QueryScores], joined: QueryScores, classes: Tensor) -> ClassScores:
    """Average the query scores of each test class, rounded to six digits; zeros for a class without a query."""
    counts, concatenated = joined.of_classes(classes)
    separated = torch.stack([fold.of_classes(classes)[1] for fold in folds]).mean(0)
    return ClassScores(
        queries=tuple(counts.tolist()), separated=_rounded(separated), concatenated=_rounded(concatenated)
    )


def _measured(job: EvaluateJob, embeddings: Tensor, labels: Tensor, data: TestData) -> dict[str, float]:
    try:
        return measure(job.metrics, embeddings, labels, data.is_query)
    except SourceError as error:
        # The file was loaded by the check of the names, so it is the user's function that fails on these embeddings.
        raise RefusedError(str(error)) from error


def _rounded(rows: Tensor) -> tuple[Scores, ...]:
    return tuple(
        Scores(precision_at_1=round(precision_at_1, 6), r_precision=round(r_precision, 6), map_at_r=round(map_at_r, 6))
        for precision_at_1, r_precision, map_at_r in rows.tolist()
    )


@final
class CurveRecorder:
    """Scores a model on the test classes at every validation, without an effect on its training.

    The scores show what a choice of the epoch by test scores would give. Nothing selects by them.

    Pass it to `train_fold` as `observe`. It uses no random numbers, restores the model's mode and returns nothing.
    """

    def __init__(self, spec: FoldSpec, data: TestData, device: str = "cpu") -> None:
        data.check_unseen(spec)
        self.spec, self.data = spec, data
        self.crops = evaluation_batches_of(data.images, spec.conditions.images, torch.device(device))
        self.labels = torch.from_numpy(data.images.labels)
        self.normalization = normalization_of(spec)
        self.points: list[TestPoint] = []

    def __call__(self, model: EmbeddingModel, iteration: int) -> None:
        """Add a point to the curve. There is none for embeddings that are not finite; they end the training anyway."""
        embeddings = embed_crops(model, self.crops)
        if torch.isfinite(embeddings).all():
            scores = query_scores(normalized(embeddings, self.normalization), self.labels, self.data.is_query).mean()
            self.points.append(TestPoint(iteration=iteration, scores=scores))

    def curve(self) -> TestCurve:
        """The points recorded up to now."""
        return TestCurve(fingerprint=self.spec.fingerprint, points=tuple(self.points))
