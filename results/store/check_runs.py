"""What the record of a test evaluation says twice, and what its trainings say too."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from results.records.epoch_choice import choose_epoch
from results.records.records import ClassScores, RunRecord, Scores
from results.spec.hyperparameters import HyperparameterError, method_at
from results.spec.seeds import training_seed
from results.spec.training_spec import FoldSpec
from results.store.check_trainings import SLACK, CheckedTraining, score_faults

_ROUNDED = 1e-6
"""Scores of classes are written with six digits."""

_FRACTIONS = re.compile(r"recall@\d+|map@\d+|nmi")
"""The further metrics that are fractions of 1."""

_CONVENTIONAL = ("mlrc_conventional", "conventional")
"""Splits that can have queries and a gallery."""


def run_faults(run: RunRecord) -> Iterator[str]:
    """Yield how the record of a test evaluation contradicts itself."""
    yield from _score_faults(run)
    if len(run.fold_scores) != len(run.fold_fingerprints) or not run.fold_scores:
        yield f"{len(run.fold_scores)} fold scores of {len(run.fold_fingerprints)} trainings"
    elif not _close(run.separated, _mean(run.fold_scores), SLACK):
        yield "separated is not the mean of fold_scores"
    elif len(run.fold_scores) == 1 and run.concatenated != run.separated:
        yield "one model has other concatenated than separated scores"
    if run.class_scores is not None:
        yield from _class_faults(run, run.class_scores)
    if not 0 <= run.wall_time < math.inf:
        yield f"wall_time {run.wall_time:g} is no duration"
    yield from _metric_faults(run)
    is_standard = run.protocol == "standard"
    if not is_standard and (run.chosen_by or run.last_epoch is not None):
        yield f"protocol {run.protocol} chooses no epoch"
    if is_standard and len(run.fold_fingerprints) != 1:
        yield "protocol standard tests one model"
    if run.last_epoch is not None and run.steps == run.iterations and run.last_epoch != run.separated:
        yield "the last epoch is the tested one, and last_epoch has other scores"


def _score_faults(run: RunRecord) -> Iterator[str]:
    several = (run.separated, run.concatenated, *run.fold_scores, *([run.last_epoch] if run.last_epoch else []))
    for scores in several:
        yield from score_faults(scores)
    if run.class_scores is not None:
        for scores in (*run.class_scores.separated, *run.class_scores.concatenated):
            yield from score_faults(scores, 2 * _ROUNDED)


def _class_faults(run: RunRecord, classes: ClassScores) -> Iterator[str]:
    if not len(classes.queries) == len(classes.separated) == len(classes.concatenated) == run.test_classes:
        yield f"class_scores are not of {run.test_classes} test classes"
        return
    if min(classes.queries, default=0) < 0 or not 0 < sum(classes.queries) <= run.test_images:
        yield f"class_scores has {sum(classes.queries)} queries of {run.test_images} test images"
        return
    for name, of_classes in (("separated", classes.separated), ("concatenated", classes.concatenated)):
        if not _close(_mean(of_classes, classes.queries), getattr(run, name), 2 * _ROUNDED):
            yield f"{name} is not the mean of class_scores"


def _metric_faults(run: RunRecord) -> Iterator[str]:
    separated, concatenated = run.metrics_separated, run.metrics_concatenated
    if separated.keys() != concatenated.keys():
        yield "metrics_separated and metrics_concatenated have other names"
        return
    if len(run.fold_fingerprints) == 1 and any(
        not math.isclose(separated[name], concatenated[name], rel_tol=SLACK, abs_tol=SLACK) for name in separated
    ):
        yield "one model has other concatenated than separated metrics"
    for metrics, scores in ((separated, run.separated), (concatenated, run.concatenated)):
        for name, value in metrics.items():
            if _FRACTIONS.fullmatch(name) and not -SLACK <= value <= 1 + SLACK:
                yield f"{name} {value:g} is no fraction of 1"
            elif name.startswith("recall@") and value < scores.precision_at_1 - SLACK:
                yield f"{name} is below precision@1"


def _mean(scores: Sequence[Scores], weights: Sequence[int] | None = None) -> Scores:
    weights = weights or [1] * len(scores)
    return Scores(
        **{
            name: sum(weight * getattr(score, name) for weight, score in zip(weights, scores, strict=True))
            / sum(weights)
            for name in Scores.model_fields
        }
    )


def _close(first: Scores, second: Scores, slack: float) -> bool:
    return all(abs(getattr(first, name) - getattr(second, name)) <= slack for name in Scores.model_fields)


def run_and_training_faults(run: RunRecord, trainings: Mapping[str, CheckedTraining]) -> Iterator[str]:
    """Yield how a test evaluation contradicts the trainings that it was made from.

    Args:
        run: The record.
        trainings: The whole trainings by fingerprint. Nothing is compared with those that are not there.
    """
    choosing = [trainings[name] for name in run.chosen_by if name in trainings]
    tested = [trainings[name] for name in run.fold_fingerprints if name in trainings]
    for training in (*tested, *choosing):
        spec = training.spec
        if named := _differing(run, spec):
            yield f"{', '.join(named)} differ from training {spec.fingerprint}"
        if training_seed(run.seed, run.search, "reproduction", run.run, spec.fold) != spec.seed:
            yield f"its seed, search and run do not give the seed of training {spec.fingerprint}"
    if len(tested) < len(run.fold_fingerprints) or len(choosing) < len(run.chosen_by) or not tested:
        return
    yield from _fold_faults(run, [training.spec for training in tested], [training.spec for training in choosing])
    for name in ("steps", "iterations"):
        total = sum(getattr(training, name) for training in tested)
        if getattr(run, name) not in (None, total):
            yield f"{name} is {getattr(run, name)}, and {total} in its trainings"
    chosen: tuple[str, ...] = ()
    if run.chosen_by:
        choice = choose_epoch([training.whole for training in choosing if training.whole], tested[0].spec.training)
        chosen = choice.flags
        if choice.epoch != tested[0].spec.checkpoint_epoch:
            yield f"the trainings in chosen_by choose epoch {choice.epoch}, not {tested[0].spec.checkpoint_epoch}"
    names = [f"fold {t.spec.fold}" if run.protocol == "mlrc" else "training on all classes" for t in tested]
    flags = tuple(f"{name}: {training.flag}" for name, training in zip(names, tested, strict=True) if training.flag)
    if run.flags != (*chosen, *flags):
        yield "its flags are not those of its trainings"


def _differing(run: RunRecord, spec: FoldSpec) -> list[str]:
    """Return the fields that a run has in common with each of its trainings and that differ."""
    trained = {
        "dataset": spec.dataset,
        "data_fingerprint": spec.data_fingerprint,
        "method": spec.method.name,
        "training_version": spec.training_version,
        # Features without an embedder have their own width; that of a trunk is not in the specification.
        "dimensions": spec.embedding_size or spec.trunk.width or run.dimensions,
    }
    differing = [name for name, value in trained.items() if getattr(run, name) != value]
    try:
        same = method_at(spec.method, run.hyperparameters) == spec.method
    except HyperparameterError:
        same = False
    return differing if same else [*differing, "hyperparameters"]


def _fold_faults(run: RunRecord, tested: Sequence[FoldSpec], choosing: Sequence[FoldSpec]) -> Iterator[str]:
    """Yield how the folds do not fit: they differ in their classes, and in nothing else."""
    folds = choosing if run.protocol == "standard" else tested
    if [spec.fold for spec in folds] != list(range(len(folds))):
        yield "its trainings are not the folds in order"
    is_final = run.protocol == "standard"
    if any((spec.checkpoint_epoch is not None) != is_final for spec in tested):
        yield f"its trainings are not those of protocol {run.protocol}"
    own = ("fold", "seed", "train_classes", "validation_classes", "checkpoint_epoch")
    if len({tuple(repr(getattr(spec, name)) for name in FoldSpec.model_fields if name not in own)
            for spec in (*tested, *choosing)}) > 1:  # fmt: skip
        yield "its trainings have other settings than one another"
    if len({trainval(spec) for spec in (*tested, *choosing)}) > 1:
        yield "its trainings do not divide the same classes"
    queries = sum(run.class_scores.queries) if run.class_scores else run.test_images
    if queries != run.test_images and tested[0].split not in _CONVENTIONAL:
        yield f"class_scores has {queries} queries of {run.test_images} test images"


def trainval(spec: FoldSpec) -> tuple[tuple[int, int], ...]:
    """Return the classes that a training sees, for training and for validation, as inclusive ranges in order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*spec.train_classes, *spec.validation_classes)):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
