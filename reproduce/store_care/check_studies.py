"""Checks the searches of a store: the rows are whole, and the trials have the scores of their trainings."""

from collections.abc import Iterator, Mapping

from optuna.storages import RDBStorage
from optuna.trial import TrialState

from protocols.search.optuna_search import FOLD_VALUES, IDENTITY, TRAININGS
from reproduce.store_care.damaged_studies import all_studies, damaged_studies, rows_without_owner
from results.store.check_records import Finding


def check_studies(storage: RDBStorage, objectives: Mapping[str, float | None]) -> Iterator[Finding]:
    """Look for damaged searches, and compare all finished trials with their trainings.

    Args:
        storage: Optuna's storage of the studies.
        objectives: What a search is told of each training in the store, by the training's fingerprint.

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
            scored = zip(*(trial.user_attrs.get(key, ()) for key in (TRAININGS, FOLD_VALUES)), strict=False)
            for fingerprint, value in scored:
                if fingerprint not in objectives:
                    reason = f"trial {trial.number} of {name} was scored by it"
                    yield Finding("missing", f"training {fingerprint}", reason)
                elif value != objectives[fingerprint]:
                    reason = f"trial {trial.number} has the score {value} of training {fingerprint}"
                    yield Finding("damaged", name, f"{reason}, whose record has {objectives[fingerprint]}")
