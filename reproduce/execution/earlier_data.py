"""Notices that the data of an experiment differ from those of its earlier runs in the store."""

from protocols.datasets.dataset import Dataset
from reproduce.execution.session import Session
from results.experiment_summary import ExperimentData
from results.feature_settings import samples_word
from results.store import IncompleteExperimentError, Store


def data_of(dataset: Dataset) -> ExperimentData:
    """Return what the store keeps about the data of an experiment."""
    return ExperimentData(fingerprint=dataset.fingerprint, samples=len(dataset.images), classes=dataset.n_classes)


def note_on_data(session: Session, store: Store) -> str | None:
    """Return one line if the store has this experiment with other data only, and None otherwise.

    Experiments of older versions are known by their runs, which count only the test images.

    Args:
        session: The opened experiment.
        store: The store with earlier experiments.
    """
    now, samples = data_of(session.problem.dataset), samples_word(session.experiment.dataset.name)
    stored = store.experiments()
    latest: str | None = None
    for fingerprint in stored.loc[stored["name"] == session.name, "fingerprint"].astype(str):
        try:
            summary = store.experiment(fingerprint)
        except IncompleteExperimentError:
            continue
        if summary.dataset != session.experiment.dataset.name:
            continue
        known = summary.data
        if known is not None:
            data_fingerprint, counts = known.fingerprint, f"{known.samples:,} {samples} of {known.classes:,} classes"
        elif runs := store.experiment_runs(fingerprint):
            data_fingerprint = runs[0].data_fingerprint
            counts = f"{runs[0].test_images:,} test {samples} of {runs[0].test_classes:,} test classes"
        else:
            continue
        if data_fingerprint == now.fingerprint:
            return None
        latest = latest or counts
    if latest is None:
        return None
    return (
        f"the data differ from those of this experiment's earlier runs in the store: then {latest}, now "
        f"{now.samples:,} {samples} of {now.classes:,} classes; so all trainings are made anew"
    )
