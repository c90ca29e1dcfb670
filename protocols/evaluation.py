"""Test evaluation of a reproduction: separated and concatenated (specification, section 8).

The only place where test images meet a model.
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from losses.plugin import Normalization, TrainingPlugin
from protocols.embedding import embed_crops
from protocols.folds import TestData
from protocols.images.prepared import EvaluationCrops
from protocols.methods import component_class
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.splits import SplitError, from_ranges
from protocols.training import device_name
from protocols.trunks.build import EmbeddingModel
from protocols.work import EvaluateJob
from results.provenance import provenance
from results.records import RunRecord, Scores
from results.specs import FoldSpec, MethodSpec


def evaluate_run(
    job: EvaluateJob, weights: Sequence[dict[str, Tensor]], data: TestData, *, device: str = "cpu"
) -> RunRecord:
    """Scores of one reproduction on the test classes.

    `weights`: of the specs' models, fold by fold. Separated: every fold's model by itself, then the mean.
    Concatenated: each model's normalised embeddings behind one
    another, normalised again, scored once. Raises SplitError if a model was trained or selected on a test class.
    """
    started = time.perf_counter()
    labels = torch.from_numpy(data.images.labels)
    kind = normalization_of(job.specs[0].method)
    # The folds of one run look at the same crops.
    crops = {s.images: EvaluationCrops(data.images, s.images, torch.device(device)) for s in job.specs}
    embeddings = []
    for spec, state in zip(job.specs, weights, strict=True):
        _check_unseen(spec, set(data.images.labels.tolist()))
        embeddings.append(_embeddings(spec, state, crops[spec.images], torch.device(device)))
    folds = [retrieval_scores(normalized(e, kind), labels).scores for e in embeddings]
    joint = retrieval_scores(concatenated(embeddings, kind), labels).scores
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
        concatenated=joint,
        dimensions=embeddings[0].shape[1],
        test_classes=len(labels.unique()),
        test_images=len(labels),
        flags=job.flags,
        wall_time=job.training_time + time.perf_counter() - started,
        provenance=provenance(device_name(torch.device(device)), torch.get_num_threads()),
    )


def concatenated(embeddings: Sequence[Tensor], kind: Normalization) -> Tensor:
    """The ensemble's embeddings (n, sum of d): each model's normalised, joined, normalised again.

    Under `ball` the raw embeddings are joined (CCP supplement): shorter vectors keep their lengths.
    """
    parts = embeddings if kind == "ball" else [normalized(e, kind) for e in embeddings]
    return normalized(torch.cat(list(parts), dim=1), kind)


def normalization_of(method: MethodSpec) -> Normalization:
    """How the method's embeddings are compared, as its loss's class says."""
    if method.loss is None:
        return "unit"
    loss = component_class("loss", method.loss.name)
    return loss.needs.normalization if issubclass(loss, TrainingPlugin) else "unit"


def _embeddings(spec: FoldSpec, weights: dict[str, Tensor], crops: EvaluationCrops, device: torch.device) -> Tensor:
    with torch.random.fork_rng([]):
        model = EmbeddingModel(spec.trunk, spec.embedding_size, precision=spec.training.precision)
    model.load_state_dict(weights)
    return embed_crops(model.place(device), crops)


def _check_unseen(spec: FoldSpec, test_classes: set[int]) -> None:
    seen = set(from_ranges(spec.train_classes)) | set(from_ranges(spec.validation_classes))
    if seen & test_classes:
        raise SplitError(f"fold {spec.fold}: test class {min(seen & test_classes)} was trained or validated on")


def _mean(scores: Sequence[Scores]) -> Scores:
    rows = [s.model_dump() for s in scores]
    return Scores(**{key: sum(row[key] for row in rows) / len(rows) for key in rows[0]})
