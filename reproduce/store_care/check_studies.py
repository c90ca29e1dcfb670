"""Checks the searches of a store: the rows are whole, and the trainings of the trials exist."""

from collections.abc import Iterator, Set

from optuna.storages import RDBStorage
from optuna.trial import TrialState

from protocols.search.optuna_search import IDENTITY, TRAININGS
from reproduce.store_care.damaged_studies import all_studies, damaged_studies, rows_without_owner
from results.record_check import Finding


def check_studies(storage: RDBStorage, trainings: Set[str]) -> Iterator[Finding]:
    """Look for damaged searches, and for the trainings of all finished trials.

    Args:
        storage: Optuna's storage of the studies.
        trainings: Fingerprints of the trainings in the store.

    Yields:
        What is damaged, missing or foreign.
    """
    damaged = damaged_studies(storage)
    for study in damaged:
        yield Finding("damaged", f"study {study.name}", study.reason)
    for table, count in rows_without_owner(storage).items():
        yield Finding("damaged", f"table {table}", f"{count} row(s) belong to no study or trial")
    unreadable = {study.number for study in damaged}
    for number, study_name in all_studies(storage):
        if number in unreadable:
            continue
        name = f"study {study_name}"
        if IDENTITY not in storage.get_study_user_attrs(number):
            yield Finding("foreign", name, "the suite did not make it")
            continue
        for trial in storage.get_all_trials(number, deepcopy=False, states=(TrialState.COMPLETE,)):
            for fingerprint in trial.user_attrs.get(TRAININGS, ()):
                if fingerprint not in trainings:
                    yield Finding(
                        "missing", f"training {fingerprint}", f"trial {trial.number} of {name} was scored by it"
                    )
