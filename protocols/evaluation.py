"""Test evaluation of a reproduction: separated and concatenated (specification, section 8).

Test images meet a model here and in `protocols.test_curves`, and nowhere else.
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from losses.plugin import Normalization, TrainingPlugin
from protocols.embedding import BATCH, embed
from protocols.folds import TestData
from protocols.methods import component_class
from protocols.metrics.registry import check_metric_names, measure
from protocols.metrics.retrieval import QueryScores, normalized, query_scores, sides
from protocols.training import device_name
from protocols.trunks.build import EmbeddingModel
from protocols.work import EvaluateJob
from results.provenance import provenance
from results.records import ClassScores, RunRecord, Scores
from results.specs import FoldSpec, MethodSpec


def evaluate_run(
    job: EvaluateJob, weights: Sequence[dict[str, Tensor]], data: TestData, *, device: str = "cpu"
) -> RunRecord:
    """Scores of one reproduction on the test classes.

    `weights`: of the specs' models, fold by fold. Separated: every fold's model by itself, then the mean.
    Concatenated: each model's normalised embeddings behind one another, normalised again, scored once; with a single
    model the two are the same. Raises SplitError if a model was trained or selected on a test class, ValueError for
    metrics that are not known.
    """
    started = time.perf_counter()
    check_metric_names(job.metrics)
    labels = torch.from_numpy(data.images.labels)
    kind = normalization_of(job.specs[0].method)
    raw = []
    for spec, state in zip(job.specs, weights, strict=True):
        raw.append(embed_test_images(spec, state, data, torch.device(device)))
    embeddings = [normalized(e, kind) for e in raw]
    joined = concatenated(raw, kind) if len(raw) > 1 else embeddings[0]
    found = [query_scores(*sides(e, labels, data.is_query)) for e in embeddings]
    found_joined = query_scores(*sides(joined, labels, data.is_query)) if len(raw) > 1 else found[0]
    folds = [queries.mean().scores for queries in found]
    further = [measure(job.metrics, e, labels, data.is_query) for e in embeddings]
    further_joined = measure(job.metrics, joined, labels, data.is_query) if len(raw) > 1 else further[0]
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
        concatenated=found_joined.mean().scores,
        dimensions=embeddings[0].shape[1],
        test_classes=len(labels.unique()),
        test_images=len(labels),
        flags=job.flags,
        steps=job.steps,
        metrics_separated={name: sum(fold[name] for fold in further) / len(further) for name in job.metrics},
        metrics_concatenated=further_joined,
        class_scores=class_scores(found, found_joined, labels.unique()),
        wall_time=job.training_time + time.perf_counter() - started,
        provenance=provenance(device_name(torch.device(device)), torch.get_num_threads()),
    )


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


def normalization_of(method: MethodSpec) -> Normalization:
    """How the method's embeddings are compared, as its loss's class says."""
    if method.loss is None:
        return "unit"
    loss = component_class("loss", method.loss.name)
    return loss.needs.normalization if issubclass(loss, TrainingPlugin) else "unit"


def embed_test_images(
    spec: FoldSpec, weights: dict[str, Tensor], data: TestData, device: torch.device, batch: int = BATCH
) -> Tensor:
    """Raw embeddings (n, d) of the test images by a model, on `device`; raises SplitError if it was trained or selected
    on a test class.
    """
    data.check_unseen(spec)
    with torch.random.fork_rng([]):
        model = EmbeddingModel(spec.trunk, spec.embedding_size, embedder_bias=spec.embedder_bias)
    model.load_state_dict(weights)
    return embed(model.to(device), data.images, spec.images, device, batch)


def _mean(scores: Sequence[Scores]) -> Scores:
    rows = [s.model_dump() for s in scores]
    return Scores(**{key: sum(row[key] for row in rows) / len(rows) for key in rows[0]})


def _rounded(rows: Tensor) -> tuple[Scores, ...]:
    return tuple(
        Scores(precision_at_1=round(first, 6), r_precision=round(r_precision, 6), map_at_r=round(map_at_r, 6))
        for first, r_precision, map_at_r in rows.tolist()
    )
