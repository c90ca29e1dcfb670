"""Small stores with made-up scores that `reproduce store check` finds whole."""

import zipfile
from pathlib import Path
from typing import Any

from reproduce.storage import StoragePaths, open_store, storage_paths
from results.records.artifacts import weights_path
from results.records.records import RunRecord
from results.records.trials import Trial
from results.spec.training_spec import FoldSpec
from results.store.store import Store
from results.values import fingerprint_of
from tests.support.sample_records import scores, some_plan, some_result, some_run, some_spec

EXPERIMENT = "e" * 32
IDENTITY: dict[str, Any] = {"method": "triplet", "seed": 0}
STUDY = fingerprint_of(IDENTITY)


def small_run(number: int, score: float, spec: FoldSpec) -> RunRecord:
    """The test of a run's only training."""
    return some_run(run=number, specs=(spec,), fold_scores=(scores(score),), concatenated=scores(score))


def checkpoint(store: Store, spec: FoldSpec, content: str) -> Path:
    """Write a checkpoint of a training."""
    path = weights_path(store.artifacts, spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights", content)
    return path


def store_at(folder: Path, validated: dict[int, float], wall_time: float = 2.5) -> StoragePaths:
    """A store with a training, a checkpoint and a tested run for each number, with these validation scores."""
    where = storage_paths(str(folder / "store.sqlite"))
    store = open_store(where)
    store.put_experiment(EXPERIMENT, "some", some_plan(methods={"triplet": "Triplet"}))
    for number, score in validated.items():
        spec = some_spec(seed=number)
        store.put_fold(some_result(spec, score, wall_time=wall_time))
        checkpoint(store, spec, f"scores {score}")
        run = small_run(number, score, spec)
        store.put_run(run)
        store.enlist(EXPERIMENT, "triplet", run)
    return where


def study_at(where: StoragePaths, scores: list[float], *, pending: bool = False) -> None:
    """A search of the experiment with these scores; the folds of its trials are in the store."""
    store = open_store(where)
    store.searches.enlist(EXPERIMENT, {"triplet": [(STUDY, IDENTITY)]})
    for number, score in enumerate(scores):
        spec = some_spec(seed=100 + number)
        store.put_fold(some_result(spec, score))
        trial = {"number": number, "setting": {"loss.margin": number / 10}, "score": score, "fold_scores": (score,)}
        store.searches.put_trial(STUDY, Trial(**trial, state="complete", trainings=(spec.fingerprint,)))
    if pending:
        store.searches.put_trial(STUDY, Trial(number=len(scores), setting={"loss.margin": 0.9}))
