"""Counts the trainings of finished trials, which a search that goes on does not ask for again."""

from collections.abc import Mapping

from protocols.jobs import TrainJob, Work
from protocols.protocol_registry import Protocol
from protocols.search.study import Study
from reproduce.monitoring.observer import Observer
from reproduce.monitoring.time_left import Forecast
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec
from results.store.store import Store


def count_told_trials(
    studies: Mapping[str, Study], store: Store, forecast: Forecast, progress: Observer
) -> set[tuple[str, str]]:
    """Show the trainings of finished trials as done.

    Args:
        studies: The studies by the methods' keys.
        store: The store with the results of the trainings.
        forecast: Where trainings are counted that the store has lost.
        progress: Counts and shows the others.

    Returns:
        Method and fingerprint of the counted trainings.
    """
    counted = set()
    for key, study in studies.items():
        for spec in _told(study):
            result = store.fold_result(spec.fingerprint)
            if result is None:
                forecast.finished(key, 0.0, now=False)
            else:
                progress.job_done(key, TrainJob(spec), result, from_store=True)
            counted.add((key, spec.fingerprint))
    return counted


def works(
    protocol: Protocol, studies: Mapping[str, Study], store: Store, observer: Observer
) -> dict[str, Work[list[RunRecord]]]:
    """Return the protocol's run of every method, by the method's key.

    Args:
        protocol: The protocol.
        studies: The studies by the methods' keys.
        store: The store with the results of the trainings.
        observer: Told of the trainings of finished trials when a method starts. If the method waited for another run,
            that run has finished more trials in the meantime.
    """
    return {key: _work(protocol, key, study, store, observer, _spared(study)) for key, study in studies.items()}


def _work(
    protocol: Protocol, key: str, study: Study, store: Store, observer: Observer, spared_before: set[str]
) -> Work[list[RunRecord]]:
    if spared := sorted(_spared(study) - spared_before):
        observer.spared(key, spared)
    for spec, result in store.fold_results([spec.fingerprint for spec in _told(study)]).values():
        observer.job_done(key, TrainJob(spec), result, from_store=True)
    return (yield from protocol.run(study))


def _spared(study: Study) -> set[str]:
    """Fingerprints of the trainings that the trials of a raced search did not get so far."""
    return {spec.fingerprint for spec in study.spared_specs()}


def _told(study: Study) -> list[FoldSpec]:
    """The trainings of a method's finished trials."""
    asked = [trained for search in study.searches() for trained in search.asked_specs()]
    return [spec for spec, trial_finished in asked if trial_finished]
