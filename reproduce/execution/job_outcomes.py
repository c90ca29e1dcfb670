"""Looks up the outcomes of jobs in the store, and stores new ones."""

from protocols.jobs import EvaluateJob, Job, Outcome, TrainJob
from reproduce.execution.checkpoints import has_checkpoint, report_difference
from reproduce.execution.tasks import Done, Trained
from results.store import Store


class JobOutcomes:
    """The outcomes of jobs in a store.

    Args:
        store: The store.
    """

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

    def put(self, method: str, job: Job, done: Done) -> Outcome:
        """Store what an executor made of a job.

        Args:
            method: Key of the method, for messages.
            job: The training or test.
            done: What the executor returned.

        Returns:
            The outcome.
        """
        if not isinstance(done, Trained):
            self._store.put_run(done)
            return done
        assert isinstance(job, TrainJob)
        # The curve first: once the result is stored, the training is never repeated, and a curve would be lost.
        if done.test_curve is not None:
            self._store.put_test_curve(done.test_curve)
        stored = self._store.fold_result(job.spec.fingerprint)
        if stored is not None:
            report_difference(f"{method}, fold {job.spec.fold}", stored, done.result)
        self._store.put_fold(job.spec, done.result)
        return done.result
