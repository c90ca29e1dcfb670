"""From an experiment's name, a method, a run and a fold to what the store and the artifact folder keep of them."""

import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reproduce.errors import InputError
from reproduce.executors import weights_path
from reproduce.reading import short_name
from results.records import FoldResult, RunRecord
from results.specs import FoldSpec
from results.store import Store


@dataclass(frozen=True)
class StoredRun:
    """A tested run: its record and its trainings, by fold. experiment: name; settings: what the store knows of it."""

    experiment: str
    settings: dict[str, object]
    record: RunRecord
    trainings: dict[int, tuple[FoldSpec, FoldResult]]

    @property
    def called(self) -> str:
        """How messages name it."""
        return f"{self.experiment}, {self.record.method}, run {self.record.run}"


def find_run(store: Store, name: str, method: str, run: int) -> StoredRun:
    """A run of the latest experiment of that name; raises InputError, which lists what there is instead."""
    short, fingerprint = _experiment(store, name)
    records = store.experiment_runs(fingerprint)
    if not records:
        raise InputError(f"{short}: no tested run in {store.url} yet; go on with `reproduce run {name}`")
    of_method = {record.run: record for record in records if record.method == method}
    if not of_method:
        methods = ", ".join(dict.fromkeys(record.method for record in records))
        raise InputError(f"{short}: no tested run of method {method!r}; there are runs of {methods}")
    if run not in of_method:
        known = ", ".join(map(str, sorted(of_method)))
        raise InputError(f"{short}, {method}: no run {run}; tested are {known}, counted from 0")
    record = of_method[run]
    found = store.fold_results(record.fold_fingerprints)
    trainings = {spec.fold: (spec, result) for spec, result in found.values()}
    return StoredRun(short, store.experiment(fingerprint)["settings"], record, trainings)


def training_of(run: StoredRun, fold: int) -> tuple[FoldSpec, FoldResult]:
    """One fold's training; raises InputError."""
    if fold not in run.trainings:
        known = ", ".join(map(str, sorted(run.trainings)))
        raise InputError(f"{run.called}: no fold {fold}; trained are {known}, counted from 0")
    return run.trainings[fold]


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


def _experiment(store: Store, name: str) -> tuple[str, str]:
    """Name and fingerprint of the latest experiment of that name."""
    latest, short = store.latest_experiments(), short_name(name)
    if short not in latest:
        if panels := [each for each in sorted(latest) if each.startswith(f"{short}/")]:
            raise InputError(f"{name} has several panels; name one: {', '.join(panels)}")
        raise InputError(f"no experiment {name!r} in {store.url}; it holds: {', '.join(sorted(latest)) or 'none'}")
    return short, latest[short]
