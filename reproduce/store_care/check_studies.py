"""Checks the searches of a store: each study has the name of its identity, and the trainings of its trials exist."""

from collections.abc import Iterator, Set

import optuna
from optuna.trial import TrialState

from results.record_check import Finding
from results.values import fingerprint_of

IDENTITY = "identity"
"""Name of the attribute of a study that holds everything that decides it."""

TRAININGS = "fold_fingerprints"
"""Name of the attribute of a trial that holds the fingerprints of its trainings."""


def check_studies(storage: optuna.storages.BaseStorage, trainings: Set[str]) -> Iterator[Finding]:
    """Compare the names of all studies with their identities, and look for the trainings of all finished trials.

    Args:
        storage: Optuna's storage of the studies.
        trainings: Fingerprints of the trainings in the store.

    Yields:
        What is damaged, missing or foreign.
    """
    for study in storage.get_all_studies():
        name = f"study {study.study_name}"
        identity = study.user_attrs.get(IDENTITY)
        if identity is None:
            yield Finding("foreign", name, "the suite did not make it")
            continue
        if fingerprint_of(identity) != study.study_name.rpartition(" ")[2]:
            yield Finding("damaged", name, "its attribute `identity` does not give the fingerprint in its name")
        for trial in storage.get_all_trials(study._study_id, deepcopy=False, states=(TrialState.COMPLETE,)):
            for fingerprint in trial.user_attrs.get(TRAININGS, ()):
                if fingerprint not in trainings:
                    yield Finding(
                        "missing", f"training {fingerprint}", f"trial {trial.number} of {name} was scored by it"
                    )
