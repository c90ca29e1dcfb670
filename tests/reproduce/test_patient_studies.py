"""Studies on a PostgreSQL server that cuts connections all the time: the same trials as without, none twice."""

import threading
import time

import optuna
import pytest
import sqlalchemy as sa

from reproduce.patient_studies import PatientStudies
from results.engine import open_engine

TRIALS = 40


@pytest.fixture
def cuts(postgresql_server):
    """A function that cuts all connections to a database every few milliseconds, until the test ends."""
    ended, threads = threading.Event(), []

    def start(name):
        engine = open_engine(postgresql_server.url("postgres"))
        others = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")

        def cut():
            while not ended.wait(0.03):
                with engine.begin() as connection:
                    connection.execute(others, {"name": name})
            engine.dispose()

        threads.append(threading.Thread(target=cut))
        threads[0].start()

    yield start
    ended.set()
    for thread in threads:
        thread.join()


def searched(url):
    storage = PatientStudies(url)
    study = optuna.create_study(storage=storage, study_name="s", sampler=optuna.samplers.RandomSampler(seed=3))
    return storage, study


@pytest.mark.cluster
def test_cut_connections_change_no_trial(postgresql_server, cuts, capsys):
    url = postgresql_server.new_database()
    storage, study = searched(url)
    cuts(url.rpartition("/")[2])
    for number in range(TRIALS):
        study.enqueue_trial({"x": number / TRIALS})
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        assert trial.params == {"x": number / TRIALS}
        storage.set_trial_user_attr(trial._trial_id, "folds", [number])
        study.tell(trial, number)
        time.sleep(0.005)
    trials = study.get_trials()
    assert [(t.state, t.value, t.user_attrs) for t in trials] == [
        (optuna.trial.TrialState.COMPLETE, float(number), {"folds": [number]}) for number in range(TRIALS)
    ]
