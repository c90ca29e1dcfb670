"""Studies on a server that cuts connections all the time, and in a locked file: the same trials, none twice."""

import optuna
import pytest
from optuna.trial import TrialState

from reproduce.patient_studies import PatientStudies

TRIALS = 30


def search(url):
    """Ask for queued settings and tell their scores, as a search does."""
    storage = PatientStudies(url)
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=3))
    yield
    for number in range(TRIALS):
        study.enqueue_trial({"x": number / TRIALS})
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        storage.set_trial_user_attr(trial._trial_id, "folds", [number])
        study.tell(trial, number)
    yield [(trial.state, trial.params, trial.value, trial.user_attrs) for trial in study.get_trials()]


@pytest.mark.cluster
def test_cut_connections_change_no_trial(postgresql_server, capfd):
    url = postgresql_server.new_database()
    searching = search(url)
    next(searching)
    capfd.readouterr()
    with postgresql_server.cutting(url):
        trials = next(searching)
    assert trials == [
        (TrialState.COMPLETE, {"x": number / TRIALS}, float(number), {"folds": [number]}) for number in range(TRIALS)
    ]
    assert "Caught an error" not in capfd.readouterr().err
