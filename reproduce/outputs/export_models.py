"""Exports models and test embeddings of stored runs as files for other programs; says what to expect of a model.

The setting that an experiment found can also be trained on all classes. Nothing of that goes into the store.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from losses.plugin import Normalization
from protocols.datasets.dataset import Dataset
from protocols.datasets.feature_files import write_labels
from protocols.datasets.splits import classes_of
from protocols.evaluation.evaluate_run import embed_test, test_data, used_classes
from protocols.fit import fit
from protocols.images.packing import Progress
from protocols.images.samples import FEATURES_FILE
from protocols.training.build_method import normalization_of
from protocols.trunks.embedding_model import weights_with_trunk, without_published_weights
from protocols.users_code.kept import remember_kept_sources
from reproduce.errors import InputError, WorkFailedError
from reproduce.outputs.find_runs import StoredRun
from reproduce.outputs.portable_model import SEEN, check_exportable, check_onnx, write_json, write_portable
from reproduce.run.open_data import OpenedData
from results.answer.answer_question import answer_frame, intervals_on
from results.answer.answers import Answer
from results.answer.over_classes import score_over_classes
from results.answer.question import question_of
from results.numbers import ONE_DIGIT
from results.records.artifacts import contents_path, read_contents, weights_path
from results.records.frame import EmbeddingKind
from results.records.records import FoldResult, RunRecord
from results.spec.data_choice import samples_word
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.training_spec import FoldSpec, sources_of_training
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from results.wording import counted, every, span

_MODELS = {"separated": "single models", "concatenated": "joined models"}

UNTESTED = (
    "Nothing tests this model: it has seen all classes, those of the test too, so no class is left to measure it on. "
    "The scores of the experiment are those of models that have seen a part of the classes."
)
_OF_A_FOLD = {*("fold", "split", "train_classes", "validation_classes", "n_classes", "checkpoint_epoch", "fingerprint")}


def export_model(
    store: Store,
    run: StoredRun,
    folds: Sequence[int],
    folder: Path,
    *,
    onnx: bool = False,
    writing: Progress | None = None,
) -> float:
    """Write the best model of a fold, or those of several folds as one, as `write_portable` does.

    The embeddings of several are those of the concatenated scores.
    """
    trainings = [run.training(fold) for fold in folds]
    specs = [training.spec for training in trainings]
    if onnx:
        check_onnx(specs[0])
    first, *others = [spec.model_dump(mode="json") for spec in specs]
    description: dict[str, Any] = {
        **run_description(run),
        "normalization": models_normalization(store, specs[0]),
        # What the specifications of the models have in common.
        "spec": {key: value for key, value in first.items() if all(part.get(key) == value for part in others)},
        "models": [_fold_description(run, training) for training in trainings],
    }
    if others:
        description["test"] = run.record.concatenated.model_dump()
        test = description["test"]
        own = ", ".join(f"{title} {ONE_DIGIT.text(test[name])} %" for name, title in HEADLINE_METRICS.items())
        description["note"] = (
            f"The ensemble of {counted(len(specs), 'model')} of {run.called}, one per fold: it concatenates their "
            f"normalised embeddings. Its own test scores: {own}. The table has the mean of all runs."
        )
    else:
        description["note"] = (
            f"The model of fold {folds[0]} of {run.called}. It was trained on a part of the classes; the table's "
            "separated scores are the mean of all folds' models, each alone."
        )
    description["note"] += f" {expected_score(store, run, 'concatenated' if others else 'separated')}"
    if (contents := contents_path(store.artifacts, specs[0].data_fingerprint)).is_file():
        table, used = read_contents(contents), set[int]().union(*map(used_classes, specs))
        table[table["rank"].isin(used)].to_csv(folder / SEEN, index=False, columns=["class", "sha256"])
    weights = [weights_with_trunk(spec, kept_weights(store, run, spec)) for spec in specs]
    return write_portable(specs, weights, description, folder, onnx=onnx, writing=writing)


def expected_score(store: Store, run: StoredRun, kind: EmbeddingKind) -> str:
    """Say which scores the models of a run's method have on the test classes, and warn if they lose to no training.

    A score has its interval over the test classes, as far as it is known, and that over searches or runs.

    Args:
        kind: `separated` for a single model, `concatenated` for the joined ones of a run.
    """
    measured, method = MeasuredExperiment.from_store(store, run.start.fingerprint), run.record.method
    question = question_of(measured)
    compare = method if method in question.compared else "all"
    asked = replace(question.on(question.score, kind, question.alpha), compare=compare)
    trunk = measured.plan.experiment.conditions.trunk
    return " ".join(_said(answer_frame(measured.frame, asked), measured.runs[method], kind, trunk.weights != "random"))


def _said(found: Answer, runs: Sequence[RunRecord], kind: EmbeddingKind, pretrained: bool) -> Iterator[str]:
    method = runs[0].method
    metrics, values = dict.fromkeys((found.question.score, *HEADLINE_METRICS)), found.values[method]
    unit = counted(len(values.units), "search") if values.planned.by_search else counted(values.runs, "run")
    scores, scaling = [], found.scaling
    for (metric, _), intervals in intervals_on(found, [(metric, kind) for metric in metrics]).items():
        if one := intervals.get(method):
            of_classes = score_over_classes(runs, kind, metric)
            widths = (
                [f"± {scaling.gap(of_classes[0])} over {counted(of_classes[1], 'test class')}"] if of_classes else []
            )
            widths += [] if one.half_width is None else [f"± {scaling.gap(one.half_width)} over {unit}"]
            spread = f" ({', '.join(widths)})" if widths else ""
            scores.append(f"{HEADLINE_METRICS.get(metric, metric)} {scaling.score(one.mean)}{scaling.unit}{spread}")
    yield (
        f"Expect of it on new classes like those of the test: {', '.join(scores)}. That is the mean of {unit} of this "
        f"method, {_MODELS[kind]} trained on a part of the classes and tested on others. Among more "
        "classes scores are lower."
    )
    if pretrained and all(one.trained for one in found.question.methods.values()):
        yield "No method without training was compared: add `untrained` to see whether training helps at all."
    untrained = [key for key, one in found.question.methods.items() if not one.trained and key != method]
    for key, pair in ((key, pair) for key in untrained if (pair := found.pair(method, key))):
        title, size = found.titles[key], found.difference_words(pair, size=True)
        if pair.worse == method:
            yield f"Warning: {title}, which trains nothing, is better by {size} ({found.question.score_name})."
        elif pair.ahead == key:
            yield f"Warning: {title}, which trains nothing, is {size} above it {pair.extent}."
        elif pair.better != method and pair.ahead != method:
            difference = scaling.gap(pair.difference, pair.half_width, signed=True)
            yield f"Warning: it is not shown to be better than {title}, which trains nothing ({difference})."


def kept_weights(store: Store, run: StoredRun, spec: FoldSpec) -> dict[str, Tensor]:
    """Load the state dict of a fold's best checkpoint."""
    path = weights_path(store.artifacts, spec)
    if not path.is_file():
        raise InputError(
            f"{run.called}, fold {spec.fold}: the weights file {path} is missing; give the folder that holds it with "
            "--artifacts"
        )
    try:
        weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: not a readable checkpoint; restore it from a copy, or remove it") from error
    return weights


def run_description(run: StoredRun) -> dict[str, Any]:
    """Return from which run something was exported, for its description; run and search are counted from 1."""
    record = run.record
    return {
        "experiment": run.start.name,
        "method": record.method,
        "run": record.run + 1,
        "search": record.search + 1,
        "run_fingerprint": record.fingerprint,
        "hyperparameters": record.hyperparameters,
    }


def _fold_description(run: StoredRun, result: FoldResult) -> dict[str, Any]:
    spec = result.spec
    return {
        "fold": spec.fold,
        "fingerprint": spec.fingerprint,
        "best_iteration": result.best_iteration,
        "validation_map_at_r": result.best_map_at_r,
        "test": run.record.fold_scores[run.record.fold_fingerprints.index(spec.fingerprint)].model_dump(),
        "spec": spec.model_dump(mode="json"),
        "provenance": result.provenance.model_dump(mode="json"),
    }


def models_normalization(store: Store, spec: FoldSpec) -> Normalization:
    """Return the normalization of an exported model's embeddings, which the class of its loss can decide.

    Raises:
        InputError: No model computes the embeddings.
    """
    if spec.method.embedder == "test_components":
        raise InputError(
            f"{spec.method.name}: its embeddings are principal components of all test images, so no model computes "
            "them; write them with `reproduce export embeddings`, or take the model of `untrained`, the trunk"
        )
    remember_kept_sources(store.artifacts, sources_of_training(spec))
    return normalization_of(spec)


def export_embeddings(store: Store, run: StoredRun, folds: list[int], data: OpenedData, folder: Path) -> None:
    """Write the normalised embeddings of the test images, as they are used for the scores.

    `features.npy` holds the embeddings, float32 of shape (n, d). Beside it `labels.csv` has the file name and the class
    of each row, and `split.csv` says which are queries, if the dataset does: the folder is a dataset of features. With
    several folds, the embeddings are those of their ensemble, and `fold_0.npy` and so on hold those of each fold's
    model.
    """
    specs = [run.training(fold).spec for fold in folds]
    weights = [kept_weights(store, run, spec) for spec in specs]
    for spec in specs:
        remember_kept_sources(store.artifacts, sources_of_training(spec))
    dataset = data.of_training(specs[0], run.start.plan.experiment, f"that {run.called} was tested on")
    split = dataset.split(specs[0].split)
    tested = test_data(dataset, split)
    models = [without_published_weights(spec) for spec in specs]
    embedded = embed_test(models, weights, tested, torch.device(data.device))
    files = {FEATURES_FILE: embedded.concatenated}
    if len(specs) > 1:
        files |= {f"fold_{spec.fold}.npy": rows for spec, rows in zip(specs, embedded.by_model, strict=True)}
    for name, embeddings in files.items():
        np.save(folder / name, embeddings.cpu().float().numpy())
    write_labels(dataset, np.flatnonzero(np.isin(dataset.labels, split.test)), folder)
    fingerprints = {f"fold_{spec.fold}": spec.fingerprint for spec in specs}
    origin = {**run_description(run), "normalization": embedded.kind, "models": fingerprints}
    write_json(folder / "origin.json", origin)


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
    *,
    onnx: bool = False,
    writing: Progress | None = None,
) -> tuple[str, float]:
    """Train the setting of some runs on all classes and write the model, as `export_model` writes that of a fold.

    Args:
        store: The store, which is only read.
        runs: All runs of the setting that a search found.
        data: The data that they were trained on.
        folder: Where to write.
        training: Called with the number of iterations that are done, and that of all.
        onnx: Whether to write it as ONNX as well.
        writing: Called with the number of written forms of the model, and that of all.

    Returns:
        What was trained, in words, and the largest difference of the exported embeddings to the suite's.
    """
    run = runs[0]
    like = run.trainings[min(run.trainings)].spec
    if onnx:
        check_onnx(like)
    normalization = models_normalization(store, like)
    dataset = data.of_training(like, run.start.plan.experiment, f"that {run.called} was tested on")
    trainings = [one for each in runs for one in each.trainings.values()]
    kept = checkpoint_epochs(trainings, dataset)
    epochs = max(int(like.method.loss is not None), round(fmean(kept)))
    if like.method.loss is not None:
        check_exportable(like, normalization)  # Before minutes or hours of training.
    trained = fit(like, epochs, dataset, data.device, training)
    spec, failure = trained.result.spec, trained.result.reason  # All classes can have more discriminants than a fold's.
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
        "provenance": trained.result.provenance.model_dump(mode="json"),
    }
    dataset.contents.to_csv(folder / SEEN, index=False, columns=["class", "sha256"])
    weights = [weights_with_trunk(spec, trained.weights)]
    difference = write_portable([spec], weights, description, folder, onnx=onnx, writing=writing)
    without = f"; left out: {'; '.join(dataset.left_out)}" if dataset.left_out else ""
    of_what = f"{every(classes, 'class')} ({samples:,} {samples_word(like.dataset)}{without})"
    if like.method.loss is None:
        return f"the setting of search {run.record.search + 1}, computed from {of_what}; nothing is trained", difference
    summary = (
        f"the setting of search {run.record.search + 1}, trained on {of_what} for {counted(epochs, 'epoch')}: the mean "
        f"of the epochs that its {counted(len(kept), 'training')} kept ({span(kept)})"
    )
    if worse := sum(not one.beats_untrained for one in trainings):
        of_its = f"{worse} of its {counted(len(trainings), 'training')}"
        summary += f"; {of_its} did not beat the untrained network (`--method untrained`)"
    return summary, difference
