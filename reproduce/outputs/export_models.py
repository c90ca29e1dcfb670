"""Exports models and test embeddings of stored runs as files for other programs."""

import csv
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from losses.plugin import Normalization
from protocols.datasets.dataset import DataError, Dataset
from protocols.datasets.feature_files import LABELS_TABLE
from protocols.evaluation.evaluate_run import embed_test, normalization_of
from protocols.evaluation.test_data import TestData, test_data
from protocols.features.feature_rows import FEATURES_FILE
from protocols.images.decoding import BrokenImageError
from protocols.progress import Progress
from protocols.splits import SplitError, named_split
from protocols.training.build_method import MethodError
from protocols.trunks.embedding_model import weights_with_trunk, without_published_weights
from protocols.trunks.weights import TrunkError
from protocols.users_code.kept import remember_kept_sources
from reproduce.errors import InputError
from reproduce.execution.tasks import write_tensors
from reproduce.outputs.find_runs import StoredRun, training_of
from reproduce.outputs.portable_model import normalized_ensemble, write_onnx, write_program
from reproduce.store_care.train_again import DataAgain
from results.records.artifacts import weights_path
from results.records.records import FoldResult
from results.spec.source_names import sources_of_training
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK
from results.store.store import Store


@dataclass(frozen=True)
class Portable:
    """A model to write: one, or several as an ensemble.

    Attributes:
        specs: Specification of each model's network.
        weights: State dict of each, with that of a frozen trunk.
        description: What `model.json` holds.
        note: What the model is, in words.
    """

    specs: tuple[FoldSpec, ...]
    weights: tuple[dict[str, Tensor], ...]
    normalization: Normalization
    description: dict[str, Any]
    note: str


def write_portable(portable: Portable, folder: Path, *, onnx: bool = False) -> float:
    """Write a model and return the largest difference to the suite's embeddings.

    The files are `model.pt2`, the model as torch's exported program, with normalization; `model.pt`, its state dict, or
    those of an ensemble by `fold_0` and so on; `model.json`, its description; and `NOTE.txt`, what it is and how it is
    used. `onnx` adds `model.onnx`, in float32.
    """
    specs = portable.specs
    try:
        model = normalized_ensemble(specs, portable.weights, portable.normalization)
    except TrunkError as error:
        raise InputError(str(error)) from error
    states = {f"fold_{spec.fold}": state for spec, state in zip(specs, portable.weights, strict=True)}
    write_tensors(folder / "model.pt", states if len(specs) > 1 else portable.weights[0])
    _write_json(folder / "model.json", {"note": portable.note, **portable.description})
    (folder / "NOTE.txt").write_text(f"{portable.note}\n\n{_use_of(specs[0])}", encoding="utf-8")
    difference = write_program(model, folder / "model.pt2")
    if onnx:
        # ONNX has no mixed precision like torch's.
        full = specs[0].conditions.training.model_copy(update={"precision": "float32"})
        in_full = [spec.with_conditions(training=full) for spec in specs]
        model = normalized_ensemble(in_full, portable.weights, portable.normalization)
        difference = max(difference, write_onnx(model, folder / "model.onnx"))
    return difference


def _use_of(spec: FoldSpec) -> str:
    """Return the lines that load and use a model, and what its inputs are."""
    images, inputs, meaning = (
        spec.conditions.images,
        "features",
        "`features` are float32 (n, c), the rows of the features file.",
    )
    if spec.conditions.trunk.name != NO_TRUNK:
        sides = [str(side) for side in (images.resize, images.evaluation_resize) if side is not None]
        resized = f"resized to a shorter side of {', then '.join(sides)} pixels (bilinear), and " if sides else ""
        inputs = "images"
        meaning = (
            f"`images` are uint8 RGB (n, 3, {images.crop}, {images.crop}): {resized}cropped in the centre. The model "
            "normalises the colours itself."
        )
    return (
        f'import torch\nmodel = torch.export.load("model.pt2").module()\nembeddings = model({inputs})\n\n'
        f"{meaning} Embeddings are normalised, float32 (n, d).\n"
    )


def export_model(store: Store, run: StoredRun, fold: int, folder: Path, *, onnx: bool = False) -> float:
    """Write the best model of a fold, counted from 0, as `write_portable` does."""
    spec, result = training_of(run, fold)
    normalization = models_normalization(store, spec)
    description = {**run_description(run), **_fold_description(run, spec, result), "normalization": normalization}
    note = (
        f"The model of fold {fold} of {run.called}. It was trained on a part of the classes; the table's separated "
        "scores are the mean of all folds' models, each alone."
    )
    weights = (_whole_weights(store, run, spec),)
    return write_portable(Portable((spec,), weights, normalization, description, note), folder, onnx=onnx)


def export_ensemble(store: Store, run: StoredRun, folder: Path, *, onnx: bool = False) -> float:
    """Write the models of all folds as one, whose embeddings are those of the concatenated scores."""
    trainings = [training_of(run, fold) for fold in sorted(run.trainings)]
    if len(trainings) < 2:
        raise InputError(f"{run.called}: has one model, so there is no ensemble; leave out --ensemble")
    specs = tuple(spec for spec, _ in trainings)
    normalization = models_normalization(store, specs[0])
    parts = [spec.model_dump(mode="json") for spec in specs]
    description = {
        **run_description(run),
        "test": run.record.concatenated.model_dump(),
        "normalization": normalization,
        # What the specifications of the models have in common.
        "spec": {key: value for key, value in parts[0].items() if all(part.get(key) == value for part in parts)},
        "models": [_fold_description(run, spec, result) for spec, result in trainings],
    }
    note = (
        f"The ensemble of the {len(specs)} folds' models of {run.called}: it concatenates their normalized embeddings. "
        "The table's concatenated scores are those of this model."
    )
    weights = tuple(_whole_weights(store, run, spec) for spec in specs)
    return write_portable(Portable(specs, weights, normalization, description, note), folder, onnx=onnx)


def _whole_weights(store: Store, run: StoredRun, spec: FoldSpec) -> dict[str, Tensor]:
    try:
        return weights_with_trunk(spec, kept_weights(store, run, spec))
    except TrunkError as error:
        raise InputError(str(error)) from error


def _fold_description(run: StoredRun, spec: FoldSpec, result: FoldResult) -> dict[str, Any]:
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
    try:
        return normalization_of(spec)
    except MethodError as error:
        raise InputError(str(error)) from error


@dataclass(frozen=True)
class Images:
    """The images of a run and how they are embedded.

    Attributes:
        root: Folder with the dataset's images; None for embedded datasets.
        cache: Folder of decoded images.
        device: cpu, cuda or cuda:N.
        progress: Called with the number of decoded images.
    """

    root: Path | None
    cache: Path
    device: str
    progress: Progress | None = None


def export_embeddings(store: Store, run: StoredRun, folds: list[int], images: Images, folder: Path) -> None:
    """Write the normalised embeddings of the test images, as they are used for the scores.

    `features.npy` holds the embeddings, float32 of shape (n, d), and `labels.csv` the file name and the class of each
    row: the folder is a dataset of features. With several folds, the embeddings are those of their ensemble, and
    `fold_0.npy` and so on hold those of each fold's model. `labels.npy` (n,) holds the class ranks and `classes.json`
    their names. `is_query.npy` (n,) marks the queries, if the dataset defines them.
    """
    specs = [training_of(run, fold)[0] for fold in folds]
    weights = [kept_weights(store, run, spec) for spec in specs]
    for spec in specs:
        remember_kept_sources(store.artifacts, sources_of_training(spec))
    try:
        dataset, data = _test_images(run, specs[0], images)
        models = [without_published_weights(spec) for spec in specs]
        embedded = embed_test(models, weights, data, torch.device(images.device))
    except (DataError, BrokenImageError, SplitError, TrunkError, MethodError) as error:
        raise InputError(str(error)) from error
    _write_array(folder / FEATURES_FILE, embedded.joint)
    if len(specs) > 1:
        for spec, embeddings in zip(specs, embedded.by_model, strict=True):
            _write_array(folder / f"fold_{spec.fold}.npy", embeddings)
    _write_labels(folder / LABELS_TABLE, dataset, data)
    np.save(folder / "labels.npy", data.images.labels)
    if data.is_query is not None:
        np.save(folder / "is_query.npy", data.is_query)
    ranks = np.unique(data.images.labels).tolist()
    _write_json(folder / "classes.json", {str(rank): dataset.class_names[rank] for rank in ranks})
    fingerprints = {f"fold_{spec.fold}": spec.fingerprint for spec in specs}
    _write_json(
        folder / "origin.json", {**run_description(run), "normalization": embedded.kind, "models": fingerprints}
    )


def _test_images(run: StoredRun, spec: FoldSpec, images: Images) -> tuple[Dataset, TestData]:
    dataset = opened_dataset(run, spec, images)
    given = dataset.are_test_classes_given
    split = named_split(spec.split, dataset.n_classes, dataset.trainval_classes, test_given=given)
    return dataset, test_data(dataset, split)


def opened_dataset(run: StoredRun, spec: FoldSpec, images: Images) -> Dataset:
    """Open the data of a run, as `DataAgain.dataset` does."""
    data = DataAgain(lambda _: images.root, images.cache, images.device, images.progress)
    return data.dataset(spec, run.summary.experiment.dataset, f"that {run.called} was tested on")


def run_description(run: StoredRun) -> dict[str, Any]:
    """Return from which run something was exported, for its description."""
    record = run.record
    return {
        "experiment": run.experiment,
        "method": record.method,
        "run": record.run,
        "search": record.search,
        "run_fingerprint": record.fingerprint,
        "hyperparameters": record.hyperparameters,
    }


def _write_labels(path: Path, dataset: Dataset, data: TestData) -> None:
    tested = np.flatnonzero(np.isin(dataset.images.labels, np.unique(data.images.labels)))
    classes = [dataset.class_names[rank] for rank in data.images.labels]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if dataset.names:
            writer.writerows([("file", "label"), *zip((dataset.names[row] for row in tested), classes, strict=True)])
        else:
            writer.writerows([("label",), *((name,) for name in classes)])


def _write_array(path: Path, values: Tensor) -> None:
    np.save(path, values.cpu().float().numpy())


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


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
