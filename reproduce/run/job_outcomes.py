"""Looks up the outcomes of jobs in the store, and stores new ones."""

import logging
from pathlib import Path

from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from reproduce.run.tasks import TaskResult, Trained
from results.atomic_files import is_sound
from results.records.artifacts import last_epoch_path, weights_path
from results.records.records import CIRCUMSTANCES, FoldResult
from results.spec.training_spec import FoldSpec
from results.store.store import Store

_LOG = logging.getLogger(__name__)


def has_checkpoint(artifacts: Path, spec: FoldSpec) -> bool:
    """Return whether the checkpoint of a training exists. If a file of it is damaged, all are removed."""
    weights = weights_path(artifacts, spec)
    files = (weights, last_epoch_path(weights))
    if damaged := next((file for file in files if file.exists() and not is_sound(file)), None):
        _LOG.warning("the checkpoint %s is damaged; it is removed and made again", damaged)
        for file in files:
            file.unlink(missing_ok=True)
    return weights.exists()


def another_result(stored: FoldResult, repeated: FoldResult) -> str:
    """Say which other result a training has that was made again; nothing if its curve and its end are equal."""
    if stored.model_dump(exclude=CIRCUMSTANCES) == repeated.model_dump(exclude=CIRCUMSTANCES):
        return ""
    was, now = (f"{one.best_map_at_r} after {one.best_iteration}" for one in (stored, repeated))
    return f"another result (MAP@R {now} iterations, stored is {was})"


def stored_outcome(store: Store, job: Job) -> Outcome | None:
    """Return a job's outcome from the store; None if the job must be executed."""
    if isinstance(job, EvaluateJob):
        return store.run(job.fingerprint)
    result = store.fold_result(job.spec.fingerprint)
    if result is None or job.run is None:
        return result
    # A reproduction's training is done if the test scores exist, or the weights that are needed to compute them.
    return result if store.run(job.run) is not None or has_checkpoint(store.artifacts, job.spec) else None


def put_outcome(store: Store, called: str, job: Job, result: TaskResult) -> Outcome:
    """Store what an executor made of a job, which messages call `called`."""
    if not isinstance(result, Trained):
        store.put_run(result)
        return result
    assert isinstance(job, TrainJob)
    # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
    if result.test_curve is not None:
        store.put_test_curve(result.test_curve)
    stored = store.fold_result(job.spec.fingerprint)
    if stored is not None and (another := another_result(stored, result.result)):
        line = "%s: trained again for its checkpoint, with %s; the stored result stays, the test uses the new weights"
        _LOG.warning(line, called, another)
    store.put_fold(result.result)
    return result.result
