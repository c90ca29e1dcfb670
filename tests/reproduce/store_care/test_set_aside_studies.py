"""Damaged searches move from any database into a file; those of other runs and programs stay."""

import json

import optuna
import pytest
import sqlalchemy as sa

from protocols.search.optuna_search import Search
from protocols.search.space import SearchParameter
from reproduce.execution.shared_work import study_lease
from reproduce.storage import StoragePaths, open_store, open_studies
from reproduce.store_care.damaged_studies import damaged_studies
from reproduce.store_care.set_aside_studies import set_aside_damaged_studies
from results.spec.search_settings import SamplerSettings
from tests.support.postgresql import DATABASES
from tests.support.sample_records import some_result, some_spec

MARGIN = SearchParameter(target="loss.margin", scale="linear", low=0.0, high=1.0)


@pytest.fixture(params=DATABASES)
def where(request, tmp_path):
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql_server").new_database()
    else:
        url = f"sqlite:///{tmp_path}/store.sqlite"
    paths = StoragePaths(url, *(tmp_path / name for name in ("artifacts", "cache", "tables", "reports")))
    open_store(paths)
    return paths


def searched(where, label, trials=3):
    """A search with finished trials, and their settings."""
    search = Search(open_studies(where), label, {"label": label}, (MARGIN,), SamplerSettings(), 0)
    while search.trials_told() < trials:
        search.tell(search.ask(), [some_result(some_spec(), 0.5)])
    return search, [trial.hyperparameters for trial in search.asked()]


def spoil(where, name):
    storage = open_studies(where)
    with storage.engine.begin() as connection:
        study = storage.get_study_id_from_name(name)
        trials = sa.text(f"SELECT trial_id FROM trials WHERE study_id = {study} AND number = 1")
        trial = connection.execute(trials).scalar_one()
        connection.execute(sa.text(f"UPDATE trial_params SET distribution_json = '{{' WHERE trial_id = {trial}"))


def test_only_the_damaged_search_moves_and_it_is_made_again_with_equal_settings(where):
    whole, kept = searched(where, "toys/cosface")
    damaged, settings = searched(where, "toys/triplet")
    spoil(where, damaged.name)
    lines = []
    set_aside_damaged_studies(where, lines.append)
    (file,) = (where.artifacts / "searches").iterdir()
    assert len(lines) == 1
    assert all(word in lines[0] for word in (damaged.name, "trial 1 cannot be read", str(file)))
    rows = json.loads(file.read_text())
    assert [len(rows[table]) for table in ("trials", "trial_params", "studies")] == [3, 3, 1]
    assert [study.study_name for study in open_studies(where).get_all_studies()] == [whole.name]
    assert searched(where, "toys/triplet")[1] == settings
    assert searched(where, "toys/cosface")[1] == kept
    set_aside_damaged_studies(where, lines.append)
    assert len(lines) == 1


def test_a_damaged_search_of_another_run_stays(where):
    search, _ = searched(where, "toys/triplet")
    spoil(where, search.name)
    with open_store(where).leases() as leases:
        leases.take(study_lease(search.name))
        set_aside_damaged_studies(where, pytest.fail)
    assert [study.name for study in damaged_studies(open_studies(where))] == [search.name]


def test_a_damaged_study_of_another_program_stays(where):
    study = optuna.create_study(storage=open_studies(where), study_name="mine")
    study.enqueue_trial({"x": 0.5})
    for _ in range(2):
        study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    spoil(where, "mine")
    set_aside_damaged_studies(where, pytest.fail)
    (damaged,) = damaged_studies(open_studies(where))
    assert (damaged.name, damaged.is_of_the_suite) == ("mine", False)


def test_a_search_that_is_under_way_is_whole(where):
    search, _ = searched(where, "toys/triplet")
    search.ask()
    search.study.enqueue_trial({"loss.margin": 0.5})
    assert damaged_studies(open_studies(where)) == []
