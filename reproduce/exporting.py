"""What is in the store, handed to other tools: models as state dicts, test embeddings as arrays, results as tables."""

import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.registry import entry_of, open_dataset
from protocols.evaluation import concatenated, embed_test_images, normalization_of
from protocols.folds import TestData, test_data
from protocols.images.packing import BrokenImageError, Progress
from protocols.metrics.retrieval import normalized
from protocols.splits import SplitError, named_split
from protocols.trunks.build import RANDOM, TrunkError
from reproduce import load_model
from reproduce.experiment import DataChoice
from reproduce.reading import InputError
from reproduce.stored_runs import StoredRun, kept_weights, training_of
from results.specs import FoldSpec
from results.store import Store

FORMATS = ("parquet", "csv")


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """A folder to fill that becomes `to` if all goes well: nothing half-written ever lies there.

    Raises InputError if `to` holds something already or cannot be made.
    """
    target = to.absolute()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        if target.exists() and any(target.iterdir()):
            raise InputError(f"--to {to}: is not empty; name a new folder")
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"--to {to}: cannot be written ({error.strerror}); choose another place") from error
    try:
        yield partial
        partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
        "normalization": normalization_of(spec.method),
        "spec": spec.model_dump(mode="json"),
        "provenance": result.provenance.model_dump(mode="json"),
    }
    # Through memory, since torch reports a full disk as an internal error of its file writer.
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    (folder / "model.pt").write_bytes(buffer.getbuffer())
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
        raw = [
            embed_test_images(_without_download(spec), state, data, torch.device(images.device), images.batch)
            for spec, state in zip(specs, weights, strict=True)
        ]
    except (DataError, BrokenImageError, SplitError, TrunkError) as error:
        raise InputError(str(error)) from error
    kind = normalization_of(specs[0].method)
    for spec, embeddings in zip(specs, raw, strict=True):
        _write_array(folder / f"fold_{spec.fold}.npy", normalized(embeddings, kind))
    if len(raw) > 1 and set(folds) == set(run.trainings):
        _write_array(folder / "concatenated.npy", concatenated(raw, kind))
    np.save(folder / "labels.npy", data.images.labels)
    if data.is_query is not None:
        np.save(folder / "is_query.npy", data.is_query)
    ranks = np.unique(data.images.labels).tolist()
    _write_json(folder / "classes.json", {str(rank): dataset.class_names[rank] for rank in ranks})
    models = {f"fold_{spec.fold}": spec.fingerprint for spec in specs}
    _write_json(folder / "origin.json", {**_origin(run), "normalization": kind, "models": models})


def export_tables(store: Store, form: str, folder: Path) -> None:
    """Writes the store's runs, folds, curves, test points and class scores as `runs.parquet`, `runs.csv` and so on.

    Raises InputError for an unknown format and for a store without a training.
    """
    if form not in FORMATS:
        raise InputError(f"--format {form!r}: use {' or '.join(FORMATS)}")
    frames = {"folds": store.folds()}
    if frames["folds"].empty:
        raise InputError(f"{store.url}: no finished training yet; make some with `reproduce run`")
    frames |= {
        "runs": store.runs(),
        "curves": store.curves(),
        "test_points": store.test_points(),
        "class_scores": store.class_scores(),
    }
    for name, frame in frames.items():
        if form == "parquet":
            frame.to_parquet(folder / f"{name}.parquet", index=False)
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)


def _test_images(run: StoredRun, spec: FoldSpec, images: Images) -> tuple[Dataset, TestData]:
    """The run's dataset and its test images, as the experiment asked for them."""
    choice = DataChoice.model_validate(run.settings["dataset"])
    if entry_of(choice.name).needs_root and images.root is None:
        raise InputError(f"{choice.name}: say where its images lie with --data FOLDER")
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


def _without_download(spec: FoldSpec) -> FoldSpec:
    """The checkpoint holds all weights, so the trunk has to find none of its own."""
    return spec.model_copy(update={"trunk": spec.trunk.model_copy(update={"weights": RANDOM})})


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
