"""Models and test embeddings of stored runs for other tools: state dicts and arrays."""

import json
import pickle
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.embedded import EMBEDDED
from protocols.evaluation.evaluate_run import embed_test, normalization_of
from protocols.evaluation.test_data import TestData, test_data
from protocols.images.packing import BrokenImageError
from protocols.progress import Progress
from protocols.splits import SplitError, named_split
from protocols.trunks.embedding_model import without_published_weights
from protocols.trunks.weights import TrunkError
from reproduce.errors import InputError
from reproduce.execution.carry_out import write_tensors
from reproduce.outputs import load_model
from reproduce.outputs.find_runs import StoredRun, training_of
from results.artifacts import weights_path
from results.experiment_summary import OTHER_VERSION
from results.store import Store
from results.training_spec import FoldSpec


def export_model(store: Store, run: StoredRun, fold: int, folder: Path) -> None:
    """Writes a fold's best model: `model.pt`, a plain state dict; `model.json`, what it is; `load_model.py`.

    Raises InputError for an unknown fold and for weights that are not kept.
    """
    spec, result = training_of(run, fold)
    weights = kept_weights(store, run, spec)
    about = {
        **_origin(run),
        "fold": fold,
        "fingerprint": spec.fingerprint,
        "best_iteration": result.best_iteration,
        "validation_map_at_r": result.best_map_at_r,
        "test": run.record.fold_scores[run.record.fold_fingerprints.index(spec.fingerprint)].model_dump(),
        "normalization": normalization_of(spec),
        "spec": spec.model_dump(mode="json"),
        "provenance": result.provenance.model_dump(mode="json"),
    }
    write_tensors(folder / "model.pt", weights)
    _write_json(folder / "model.json", about)
    shutil.copyfile(load_model.__file__, folder / "load_model.py")


@dataclass(frozen=True)
class Images:
    """Where the images of a run lie, and how they are embedded. root: None for embedded datasets."""

    root: Path | None
    cache: Path
    device: str
    batch: int
    progress: Progress | None = None


def export_embeddings(store: Store, run: StoredRun, folds: list[int], images: Images, folder: Path) -> None:
    """Writes the normalised embeddings of the test images, `fold_0.npy` and so on, float32 (n, d), as they are scored.

    All folds' models together are `concatenated.npy`. `labels.npy` (n,) holds the class ranks, `classes.json` their
    names, `is_query.npy` (n,) which images are queries where the dataset says so. Raises InputError for unknown folds,
    weights that are not kept, and images other than those that the run was tested on.
    """
    specs = [training_of(run, fold)[0] for fold in folds]
    weights = [kept_weights(store, run, spec) for spec in specs]
    try:
        dataset, data = _test_images(run, specs[0], images)
        models = [without_published_weights(spec) for spec in specs]
        embedded = embed_test(models, weights, data, torch.device(images.device), images.batch)
    except (DataError, BrokenImageError, SplitError, TrunkError) as error:
        raise InputError(str(error)) from error
    except torch.OutOfMemoryError as error:
        raise InputError(f"--batch {images.batch}: {images.device} has no memory for so many; use fewer") from error
    for spec, embeddings in zip(specs, embedded.by_model, strict=True):
        _write_array(folder / f"fold_{spec.fold}.npy", embeddings)
    if len(specs) > 1:
        _write_array(folder / "concatenated.npy", embedded.joint)
    np.save(folder / "labels.npy", data.images.labels)
    if data.is_query is not None:
        np.save(folder / "is_query.npy", data.is_query)
    ranks = np.unique(data.images.labels).tolist()
    _write_json(folder / "classes.json", {str(rank): dataset.class_names[rank] for rank in ranks})
    named = {f"fold_{spec.fold}": spec.fingerprint for spec in specs}
    _write_json(folder / "origin.json", {**_origin(run), "normalization": embedded.kind, "models": named})


def _test_images(run: StoredRun, spec: FoldSpec, images: Images) -> tuple[Dataset, TestData]:
    """The run's dataset and its test images, as the experiment asked for them."""
    if run.summary.experiment is None:
        raise InputError(f"{run.experiment}: kept with {OTHER_VERSION}; use that version to embed its images")
    choice = run.summary.experiment.dataset
    if choice.name not in EMBEDDED and images.root is None:
        raise InputError(f"{choice.name}: give the folder of its images with --data FOLDER")
    dataset = open_dataset(
        DataRequest(
            choice.name,
            spec.images,
            images.cache,
            images.root,
            choice.subset,
            choice.skip_broken_images,
            images.progress,
        )
    )
    if dataset.fingerprint != spec.data_fingerprint:
        raise InputError(
            f"{images.root or choice.name}: not the images that {run.called} was tested on (data "
            f"{dataset.fingerprint[:12]} instead of {spec.data_fingerprint[:12]}); name their folder with --data"
        )
    queries_given = dataset.is_query is not None
    split = named_split(spec.split, dataset.n_classes, dataset.trainval_classes, queries_given=queries_given)
    return dataset, test_data(dataset, split)


def _origin(run: StoredRun) -> dict[str, Any]:
    record = run.record
    return {
        "experiment": run.experiment,
        "method": record.method,
        "run": record.run,
        "run_fingerprint": record.fingerprint,
        "hyperparameters": record.hyperparameters,
    }


def _write_array(path: Path, values: Tensor) -> None:
    np.save(path, values.cpu().float().numpy())


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def kept_weights(store: Store, run: StoredRun, spec: FoldSpec) -> dict[str, Tensor]:
    """The state dict of a fold's best checkpoint; raises InputError if it is gone or cannot be read."""
    path = weights_path(store.artifacts, spec)
    if not path.is_file():
        raise InputError(
            f"{run.called}, fold {spec.fold}: its weights are not kept, {path} is missing; name the folder that has "
            "them with --artifacts"
        )
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise _unreadable(path) from error
    if not (isinstance(loaded, dict) and loaded and all(isinstance(value, Tensor) for value in loaded.values())):
        raise _unreadable(path)
    return loaded


def _unreadable(path: Path) -> InputError:
    return InputError(f"{path}: not a readable checkpoint; restore it from a copy, or remove it")
