"""Trains the setting that an experiment found on all classes, and exports the model. Nothing goes into the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from protocols.datasets.dataset import DataError, Dataset
from protocols.fit import FitSpec, fit
from protocols.images.decoding import BrokenImageError
from protocols.progress import Progress
from protocols.splits import from_ranges
from protocols.training.build_method import MethodError
from protocols.trunks.embedding_model import weights_with_trunk
from protocols.trunks.weights import TrunkError
from reproduce.errors import InputError, WorkFailedError
from reproduce.outputs.export_models import (
    Images,
    Portable,
    models_normalization,
    opened_dataset,
    run_description,
    write_portable,
)
from reproduce.outputs.find_runs import StoredRun, find_experiment, find_run
from results.records.records import FoldResult
from results.spec.training_spec import FoldSpec
from results.store.store import Store

UNTESTED = (
    "Nothing tests this model: it was trained on all classes, those of the test too, so no class is left to measure it "
    "on. The scores of the experiment are those of models that were trained on a part of the classes."
)


@dataclass(frozen=True)
class FittedModel:
    """What was written.

    Attributes:
        epochs: For how many epochs it was trained.
        epochs_of: The epoch of the checkpoint of each training of the setting.
        classes: Number of classes.
        samples: Number of images or rows.
        difference: Largest difference of the exported embeddings to the suite's.
    """

    epochs: int
    epochs_of: list[int]
    classes: int
    samples: int
    difference: float


def best_search(store: Store, name: str, method: str) -> int:
    """Return the search of a method that found the best validation score; of equal ones the first.

    Tests have no say: a setting that is chosen by its test score would be chosen by luck.
    """
    experiment = find_experiment(store, name).fingerprint
    trials, tested = store.experiment(experiment).trials, store.experiment_runs(experiment)
    with_runs = {record.search for record in tested if record.method == method}
    scores = {
        search: max((t.score or 0.0 for t in study.finished(trials) if t.state == "complete"), default=0.0)
        for (key, search), study in store.searches.of_experiment(experiment).items()
        if key == method and search in with_runs
    }
    return max(scores, key=lambda search: (scores[search], -search), default=0)


def found_runs(store: Store, name: str, method: str, search: int) -> list[StoredRun]:
    """Return the tested runs of the setting that a search found; raise InputError if there is none."""
    experiment = find_experiment(store, name).fingerprint
    numbers = [
        record.run for record in store.experiment_runs(experiment) if (record.method, record.search) == (method, search)
    ]
    return [find_run(store, name, method, run, search) for run in numbers or [0]]


def checkpoint_epochs(trainings: Sequence[tuple[FoldSpec, FoldResult]], dataset: Dataset) -> list[int]:
    """Return the epochs of the checkpoints of the trainings that did not diverge; raise InputError if all did.

    Epochs carry over to more classes. Iterations do not, where an epoch is a pass over the images.
    """
    kept = [_checkpoint_epoch(spec, result, dataset) for spec, result in trainings if result.status == "ok"]
    if not kept:
        raise InputError("all trainings of the found setting diverged, so there is no length to train for")
    return kept


def _checkpoint_epoch(spec: FoldSpec, result: FoldResult, dataset: Dataset) -> int:
    if spec.checkpoint_epoch is not None:
        return spec.checkpoint_epoch
    samples = len(dataset.images.of_classes(from_ranges(spec.train_classes)).labels)
    return result.best_iteration // spec.conditions.training.steps_per_epoch(samples)


def fit_model(
    store: Store,
    runs: Sequence[StoredRun],
    images: Images,
    folder: Path,
    *,
    onnx: bool = False,
    training: Progress | None = None,
) -> FittedModel:
    """Train the setting of some runs on all classes and write the model, as `export_model` writes that of a fold.

    Args:
        store: The store, which is only read.
        runs: All runs of the setting that a search found.
        images: The data that they were trained on.
        folder: Where to write.
        onnx: Whether to write `model.onnx` too.
        training: Called with the number of iterations that are done, and that of all.
    """
    run = runs[0]
    like, _ = run.trainings[min(run.trainings)]
    normalization = models_normalization(store, like)
    try:
        dataset = opened_dataset(run, like, images)
        kept = checkpoint_epochs([one for each in runs for one in each.trainings.values()], dataset)
        epochs = max(int(like.method.loss is not None), round(fmean(kept)))
        fitted = fit(FitSpec(like=like, epochs=epochs), dataset, images.device, training)
        weights = weights_with_trunk(like, fitted.weights)
    except (DataError, BrokenImageError, MethodError, TrunkError) as error:
        raise InputError(str(error)) from error
    if fitted.failure is not None:
        raise WorkFailedError(f"{run.called}: the training on all classes diverged ({fitted.failure})")
    of_a_fold = {"fold", "split", "train_classes", "validation_classes", "checkpoint_epoch"}
    description = {
        **run_description(run),
        "run": [one.record.run for one in runs],
        "run_fingerprint": [one.record.fingerprint for one in runs],
        "trained_on": {
            "data_fingerprint": dataset.fingerprint,
            "classes": dataset.n_classes,
            "samples": len(dataset.images),
        },
        "epochs": epochs,
        "epochs_are_the_mean_of": kept,
        "normalization": normalization,
        "spec": {key: value for key, value in like.model_dump(mode="json").items() if key not in of_a_fold},
        "provenance": fitted.provenance.model_dump(mode="json"),
    }
    portable = Portable((like,), (weights,), normalization, description, UNTESTED)
    difference = write_portable(portable, folder, onnx=onnx)
    return FittedModel(epochs, kept, dataset.n_classes, len(dataset.images), difference)
