"""Looks up the outcomes of jobs in the store, and stores new ones."""

import logging
import pickle
import zipfile
from pathlib import Path

import torch

from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from reproduce.run.tasks import TaskResult, Trained
from results.atomic_files import is_sound, set_aside
from results.records.artifacts import last_epoch_path, recording_path, vectors_path, weights_path
from results.records.records import FoldResult
from results.spec.training_spec import FoldSpec
from results.store.store import Store

_LOG = logging.getLogger(__name__)
_NOT_READABLE = (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError, zipfile.BadZipFile)


def has_checkpoint(artifacts: Path, spec: FoldSpec) -> bool:
    """Return whether the checkpoint of a training exists and can be read.

    Damaged files are set aside together with the weights, so that the training is made again with all its files.
    """
    weights = weights_path(artifacts, spec)
    files = (weights, vectors_path(weights), last_epoch_path(weights), recording_path(weights))
    damaged = [file for file in files if file.exists() and not _can_be_read(file)]
    for file in damaged:
        _LOG.warning("the checkpoint %s is damaged; it is kept as %s and made again", file, set_aside(file).name)
    if damaged and weights.exists():
        set_aside(weights)
    return weights.exists()


def report_difference(called: str, stored: FoldResult, repeated: FoldResult) -> None:
    """Say in one line if a training that was made again for its checkpoint has another result than the stored one."""
    if _outcome(stored) != _outcome(repeated):
        _LOG.warning(
            "%s: trained again for its checkpoint, with another result (MAP@R %s after %d iterations, stored is %s "
            "after %d); the stored result stays, and the test uses the new weights",
            called,
            repeated.best_map_at_r,
            repeated.best_iteration,
            stored.best_map_at_r,
            stored.best_iteration,
        )


def _outcome(result: FoldResult) -> dict[str, object]:
    return result.model_dump(exclude={"wall_time", "provenance"})


def _can_be_read(path: Path) -> bool:
    if not is_sound(path):
        return False
    if path.suffix != ".pt":
        return True
    try:
        torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except _NOT_READABLE:
        return False
    return True


class JobOutcomes:
    """The outcomes of jobs in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def stored(self, job: Job) -> Outcome | None:
        """Return a job's outcome from the store; None if the job must be executed."""
        if isinstance(job, EvaluateJob):
            return self._store.run(job.fingerprint)
        result = self._store.fold_result(job.spec.fingerprint)
        if result is None or job.run is None:
            return result
        # A reproduction's training is done if the test scores exist, or the weights that are needed to compute them.
        tested = self._store.run(job.run) is not None
        return result if tested or has_checkpoint(self._store.artifacts, job.spec) else None

    def put(self, called: str, job: Job, result: TaskResult) -> Outcome:
        """Store what an executor made of a job, which messages call `called`."""
        if not isinstance(result, Trained):
            self._store.put_run(result)
            return result
        assert isinstance(job, TrainJob)
        # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
        if result.test_curve is not None:
            self._store.put_test_curve(result.test_curve)
        stored = self._store.fold_result(job.spec.fingerprint)
        if stored is not None:
            report_difference(called, stored, result.result)
        self._store.put_fold(job.spec, result.result)
        return result.result
