"""Rows that several processes insert at once are stored once."""

import threading

import pytest

from results.store.store import Store
from tests.support.postgresql import DATABASES
from tests.support.sample_records import some_result, some_run, some_spec, some_summary


@pytest.fixture(params=DATABASES)
def url(request, tmp_path):
    return request.getfixturevalue("postgresql_url") if request.param == "postgresql" else f"sqlite:///{tmp_path}/s.db"


def test_four_that_create_and_fill_a_store_at_once_store_everything_once(url, tmp_path):
    specs, barrier, errors = [some_spec(seed=seed) for seed in range(10)], threading.Barrier(4), []

    def fill():
        barrier.wait()
        try:
            store = Store(url, tmp_path)
            for number, spec in enumerate(specs):
                store.put_fold(spec, some_result(spec))
                store.put_experiment("x", "quickstart", some_summary())
                run = some_run("triplet", number)
                store.put_run(run)
                store.enlist("x", "triplet", run)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fill) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = Store(url, tmp_path)
    assert len(store.folds()) == len(store.experiment_runs("x")) == len(specs)
    assert len(store.experiments()) == 1
