"""Test evaluation of a reproduction: separated and concatenated (specification, section 8).

Test images meet a model here and in `protocols.evaluation.curve_recorder`, and nowhere else.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from losses.plugin import Normalization, TrainingPlugin
from protocols.evaluation.test_data import TestData
from protocols.images.evaluation_crops import BATCH, EvaluationCrops
from protocols.jobs import EvaluateJob
from protocols.metrics.metric_registry import check_metric_names, measure
from protocols.metrics.retrieval import QueryScores, normalized, query_scores, sides
from protocols.training.build_method import component_class
from protocols.training.train_fold import device_name
from protocols.trunks.embed import embed_crops
from protocols.trunks.embedding_model import trained_model
from results.provenance import provenance
from results.records import ClassScores, RunRecord, Scores
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class Embedded:
    """The test images as a run's models see them, normalised as `kind` says.

    by_model: (n, d) of every fold's model. joint: (n, sum of d), all models together.
    """

    kind: Normalization
    by_model: tuple[Tensor, ...]
    joint: Tensor


Show = Callable[[RunRecord, Embedded], None]
"""Is given what a run was scored on, to keep something to look at."""


def evaluate_run(
    job: EvaluateJob,
    weights: Sequence[dict[str, Tensor]],
    data: TestData,
    *,
    device: str = "cpu",
    show: Show | None = None,
) -> RunRecord:
    """Scores one reproduction on the test classes.

    Separated scores are the mean over the folds' models. Concatenated scores are those of the ensemble: the models'
    normalised embeddings are joined, normalised again and scored once. With a single model both are the same.

    Args:
        job: Which trainings are tested, and what they were made with.
        weights: State dicts of the trained models, fold by fold.
        data: Images of the test classes.
        device: cpu, cuda or cuda:N.
        show: Given the record and the test embeddings, to keep something to look at.

    Returns:
        The record of the run, with scores as fractions of 1.

    Raises:
        SplitError: A model was trained or selected on a test class.
        ValueError: A metric's name is not known.
    """
    started = time.perf_counter()
    check_metric_names(job.metrics)
    embedded = embed_test(job.specs, weights, data, torch.device(device))
    record = _record(job, data, embedded, device, started)
    if show is not None:
        show(record, embedded)
    return record


def _record(job: EvaluateJob, data: TestData, embedded: Embedded, device: str, started: float) -> RunRecord:
    """The record of a run, scored here. started: when its evaluation began, by `time.perf_counter`."""
    labels = torch.from_numpy(data.images.labels)
    embeddings, joint, several = embedded.by_model, embedded.joint, len(embedded.by_model) > 1
    queries = [query_scores(*sides(e, labels, data.is_query)) for e in embeddings]
    joint_queries = query_scores(*sides(joint, labels, data.is_query)) if several else queries[0]
    folds = [fold.mean().scores for fold in queries]
    metrics = [measure(job.metrics, e, labels, data.is_query) for e in embeddings]
    joint_metrics = measure(job.metrics, joint, labels, data.is_query) if several else metrics[0]
    first = job.specs[0]
    return RunRecord(
        fingerprint=job.fingerprint,
        protocol=job.protocol,
        dataset=first.dataset,
        data_fingerprint=first.data_fingerprint,
        method=first.method.name,
        hyperparameters=job.hyperparameters,
        run=job.run,
        seed=job.seed,
        fold_fingerprints=tuple(spec.fingerprint for spec in job.specs),
        fold_scores=tuple(folds),
        separated=_mean(folds),
        concatenated=joint_queries.mean().scores,
        dimensions=embeddings[0].shape[1],
        test_classes=len(labels.unique()),
        test_images=len(labels),
        flags=job.flags,
        steps=job.steps,
        iterations=job.iterations,
        metrics_separated={name: sum(fold[name] for fold in metrics) / len(metrics) for name in job.metrics},
        metrics_concatenated=joint_metrics,
        class_scores=class_scores(queries, joint_queries, labels.unique()),
        wall_time=job.training_time + time.perf_counter() - started,
        provenance=provenance(device_name(torch.device(device)), torch.get_num_threads()),
    )


def embed_test(
    specs: Sequence[FoldSpec],
    weights: Sequence[dict[str, Tensor]],
    data: TestData,
    device: torch.device,
    batch: int = BATCH,
) -> Embedded:
    """The test images by every model of a run; raises SplitError if one was trained or selected on a test class."""
    kind = normalization_of(specs[0])
    # The folds of one run look at the same crops.
    crops = {s.images: EvaluationCrops(data.images, s.images, device, batch=batch) for s in specs}
    raw = []
    for spec, state in zip(specs, weights, strict=True):
        data.check_unseen(spec)
        raw.append(embed_crops(trained_model(spec, state, device), crops[spec.images]))
    by_model = tuple(normalized(e, kind) for e in raw)
    return Embedded(kind, by_model, concatenated(raw, kind) if len(raw) > 1 else by_model[0])


def concatenated(embeddings: Sequence[Tensor], kind: Normalization) -> Tensor:
    """The ensemble's embeddings (n, sum of d): each model's normalised, joined, normalised again.

    Under `ball` the raw embeddings are joined (CCP supplement): shorter vectors keep their lengths.
    """
    parts = embeddings if kind == "ball" else [normalized(e, kind) for e in embeddings]
    return normalized(torch.cat(list(parts), dim=1), kind)


def class_scores(folds: Sequence[QueryScores], joined: QueryScores, classes: Tensor) -> ClassScores:
    """Mean scores of each of the sorted `classes`, to six digits; zeros for a class without a query.

    folds: of each fold's model, averaged for `separated`. joined: of all models together.
    """
    counts, concatenated = joined.of_classes(classes)
    separated = torch.stack([fold.of_classes(classes)[1] for fold in folds]).mean(0)
    return ClassScores(
        queries=tuple(counts.tolist()), separated=_rounded(separated), concatenated=_rounded(concatenated)
    )


def normalization_of(spec: FoldSpec) -> Normalization:
    """How the embeddings of a training's model are compared: as the training says, or else as its loss's class says."""
    if spec.normalization is not None:
        return spec.normalization
    if spec.method.loss is None:
        return "unit"
    loss = component_class("loss", spec.method.loss.name)
    return loss.needs.normalization if issubclass(loss, TrainingPlugin) else "unit"


def _mean(scores: Sequence[Scores]) -> Scores:
    rows = [s.model_dump() for s in scores]
    return Scores(**{key: sum(row[key] for row in rows) / len(rows) for key in rows[0]})


def _rounded(rows: Tensor) -> tuple[Scores, ...]:
    return tuple(
        Scores(precision_at_1=round(first, 6), r_precision=round(r_precision, 6), map_at_r=round(map_at_r, 6))
        for first, r_precision, map_at_r in rows.tolist()
    )
