"""Trains the setting that an experiment found on all classes, and exports the model. Nothing goes into the store."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import classes_of
from protocols.fit import fit
from protocols.images.packing import Progress
from protocols.trunks.embedding_model import weights_with_trunk
from reproduce.errors import InputError, WorkFailedError, as_input_errors
from reproduce.outputs.export_models import expected_score, models_normalization, run_description
from reproduce.outputs.find_runs import StoredRun
from reproduce.outputs.portable_model import SEEN, write_portable
from reproduce.run.open_data import OpenedData
from results.records.records import FoldResult
from results.spec.data_choice import samples_word
from results.store.store import Store
from results.wording import counted

UNTESTED = (
    "Nothing tests this model: it has seen all classes, those of the test too, so no class is left to measure it on. "
    "The scores of the experiment are those of models that have seen a part of the classes."
)
_OF_A_FOLD = {*("fold", "split", "train_classes", "validation_classes", "n_classes", "checkpoint_epoch", "fingerprint")}


def checkpoint_epochs(trainings: Sequence[FoldResult], dataset: Dataset) -> list[int]:
    """Return the epochs of the checkpoints of the trainings that did not diverge; raise InputError if all did.

    Epochs carry over to more classes. Iterations do not, where an epoch is a pass over the images.
    """
    kept = [_checkpoint_epoch(result, dataset) for result in trainings if result.status == "ok"]
    if not kept:
        raise InputError("all trainings of the found setting diverged, so there is no length to train for")
    return kept


def _checkpoint_epoch(result: FoldResult, dataset: Dataset) -> int:
    spec = result.spec
    if spec.checkpoint_epoch is not None:
        return spec.checkpoint_epoch
    samples = len(dataset.images.of_classes(classes_of(spec).train).labels)
    return result.best_iteration // spec.conditions.training.steps_per_epoch(samples)


def fit_model(
    store: Store,
    runs: Sequence[StoredRun],
    data: OpenedData,
    folder: Path,
    training: Progress | None = None,
) -> tuple[str, float]:
    """Train the setting of some runs on all classes and write the model, as `export_model` writes that of a fold.

    Args:
        store: The store, which is only read.
        runs: All runs of the setting that a search found.
        data: The data that they were trained on.
        folder: Where to write.
        training: Called with the number of iterations that are done, and that of all.

    Returns:
        What was trained, in words, and the largest difference of the exported embeddings to the suite's.
    """
    run = runs[0]
    like = run.trainings[min(run.trainings)].spec
    normalization = models_normalization(store, like)
    dataset = data.of_training(like, run.summary.experiment, f"that {run.called} was tested on")
    trainings = [one for each in runs for one in each.trainings.values()]
    kept = checkpoint_epochs(trainings, dataset)
    epochs = max(int(like.method.loss is not None), round(fmean(kept)))
    with as_input_errors():
        trained, failure, provenance = fit(like, epochs, dataset, data.device, training)
        weights = weights_with_trunk(like, trained)
    if failure is not None:
        raise WorkFailedError(f"{run.called}: the training on all classes diverged ({failure})")
    samples, classes = len(dataset.images), dataset.n_classes
    description = {
        "note": f"{UNTESTED} {expected_score(store, run, 'separated')}",
        **run_description(run),
        "run": [one.record.run + 1 for one in runs],
        "run_fingerprint": [one.record.fingerprint for one in runs],
        "trained_on": {"data_fingerprint": dataset.fingerprint, "classes": classes, "samples": samples},
        "epochs": epochs,
        "epochs_are_the_mean_of": kept,
        "normalization": normalization,
        "spec": {key: value for key, value in like.model_dump(mode="json").items() if key not in _OF_A_FOLD},
        "provenance": provenance.model_dump(mode="json"),
    }
    dataset.contents.to_csv(folder / SEEN, index=False, columns=["class", "sha256"])
    difference = write_portable([like], [weights], description, folder)
    of_what = f"all {classes} classes ({samples:,} {samples_word(like.dataset)})"
    if like.method.loss is None:
        return f"the setting of search {run.record.search + 1}, computed from {of_what}; nothing is trained", difference
    said = (
        f"the setting of search {run.record.search + 1}, trained on {of_what} for {counted(epochs, 'epoch')}: the mean "
        f"of the epochs that its {len(kept)} trainings kept ({min(kept)} to {max(kept)})"
    )
    if worse := sum(not one.beats_untrained for one in trainings):
        said += f"; {worse} of its {len(trainings)} trainings did not beat the untrained network (`--method untrained`)"
    return said, difference
