"""How much runs vary in measured settings.

A printed number is often a single run of a single model. Its deviation is estimated from the folds' models: trainings
of one method at one setting on one fold differ in their seeds alone. The deviation of the mean over folds follows from
it. Concatenated embeddings are compared run by run.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from results.published.tables import Kind
from results.records.records import RunRecord, Scores
from results.spec.trunk_spec import NO_TRUNK
from results.statistics.run_values import value_of
from results.store.experiment_results import MeasuredExperiment

_FEWEST_DEGREES = 2


@dataclass(frozen=True)
class MeasuredNoise:
    """A measured run-to-run deviation.

    Attributes:
        deviation: Standard deviation between runs, a fraction of 1.
        setting: The experiment's setting as a phrase.
    """

    deviation: float
    degrees: int
    name: str
    setting: str


def measured_noise(
    candidates: Iterable[tuple[str, MeasuredExperiment]], dataset: str, metric: str, kind: Kind
) -> MeasuredNoise | None:
    """Return a run-to-run deviation on a whole dataset, of candidates with their names.

    Of several it is the one with the most degrees of freedom. Runs on a part of the dataset do not fit, nor do those on
    features, such as those of a frozen trunk: they vary less than runs that train a network. None if no candidate has
    repeated runs with this metric.
    """
    found = []
    for name, measured in candidates:
        experiment = measured.summary.experiment
        fits = experiment.dataset.name == dataset and not experiment.dataset.subset
        if fits and not experiment.conditions.trunk.is_input_features:
            variance, degrees = _variance(measured.records, metric, kind)
            if degrees >= _FEWEST_DEGREES and variance > 0:
                found.append(MeasuredNoise(float(np.sqrt(variance)), degrees, name, setting_phrase(measured)))
    return max(found, key=lambda noise: noise.degrees, default=None)


def setting_phrase(measured: MeasuredExperiment) -> str:
    """Describe an experiment by dataset, trunk, image size and protocol."""
    experiment = measured.summary.experiment
    dataset = f"a part of {experiment.dataset.name}" if experiment.dataset.subset else experiment.dataset.name
    trunk, protocol = experiment.conditions.trunk, f"protocol {experiment.protocol}"
    if trunk.name == NO_TRUNK:
        return f"{dataset}, no trunk, {protocol}"
    name = f"frozen {trunk.name}" if trunk.frozen else trunk.name
    weights = {"imagenet": "ImageNet", "random": "random"}.get(trunk.weights, "other") + " weights"
    return f"{dataset}, {name} from {weights}, images of {experiment.conditions.images.crop} pixels, {protocol}"


def _variance(records: Sequence[RunRecord], metric: str, kind: Kind) -> tuple[float, int]:
    """Variance between runs that differ in their seeds alone, and its degrees of freedom."""
    trained = [record for record in records if record.method != "untrained"]
    folds = {len(record.fold_scores) for record in trained}
    if kind == "concatenated" or metric not in Scores.model_fields or len(folds) != 1:
        single = kind == "single" and folds != {1}
        return (0.0, 0) if single else pooled_variance(_run_samples(trained, metric, kind))
    variance, degrees = pooled_variance(_fold_samples(trained, metric))
    # The folds' models are trained independently, so their mean has the variance of one model over their number.
    return variance / (folds.pop() if kind == "separated" else 1), degrees


def _fold_samples(records: Sequence[RunRecord], metric: str) -> list[list[float]]:
    groups: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        for fold, scores in enumerate(record.fold_scores):
            groups.setdefault((*_group(record), fold), []).append(float(getattr(scores, metric)))
    return list(groups.values())


def _run_samples(records: Sequence[RunRecord], metric: str, kind: Kind) -> list[list[float]]:
    groups: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        with suppress(ValueError):  # The run was not evaluated with this metric.
            value = value_of(record, metric, "concatenated" if kind == "concatenated" else "separated")
            groups.setdefault(_group(record), []).append(value)
    return list(groups.values())


def _group(record: RunRecord) -> tuple[object, ...]:
    """What runs have in common that differ in their seeds alone."""
    return record.dataset, record.method, record.search, record.seed


def pooled_variance(samples: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Return the variance within samples, and its degrees of freedom; a sample of one has none."""
    repeated = [values for values in samples if len(values) > 1]
    degrees = sum(len(values) - 1 for values in repeated)
    squares = sum(float(np.var(values)) * len(values) for values in repeated)
    return (squares / degrees if degrees else 0.0), degrees
