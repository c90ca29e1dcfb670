"""Finds out whether runs are added to an experiment whose results with fewer runs are known already."""

from reproduce.execution.session import Session
from results.store import IncompleteExperimentError, Store


def known_after(session: Session, store: Store) -> tuple[int, ...]:
    """Return the numbers of runs with which the experiment was complete before, in ascending order.

    Somebody who adds runs because of the results is peeking. The suite cannot tell why runs are added, so it notes all
    cases.

    Args:
        session: The opened experiment.
        store: The store with earlier experiments.
    """
    stored = store.experiments()
    counts = set()
    for fingerprint in stored.loc[stored["name"] == session.name, "fingerprint"].astype(str):
        try:
            summary = store.experiment(fingerprint)
        except IncompleteExperimentError:
            continue
        if summary.experiment is None or summary.reproductions >= session.experiment.reproductions:
            continue
        raised = summary.experiment.model_copy(
            update={
                "reproductions": session.experiment.reproductions,
                "first_reproductions": session.experiment.first_reproductions,
            }
        )
        same = raised.fingerprint(session.name, session.problem.dataset.fingerprint) == session.fingerprint
        if same and len(store.experiment_runs(fingerprint)) >= sum(summary.runs.values()) > 0:
            counts.add(summary.reproductions)
    return tuple(sorted(counts))
