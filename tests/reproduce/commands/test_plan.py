"""What `plan` says about differences that the planned runs can show."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_budget
from results.statistics.planning import measured_deviation
from results.store.store import Store
from tests.support.experiment_files import load_experiment
from tests.support.sample_records import some_run, some_summary


@pytest.fixture
def session():
    experiment = load_experiment("quickstart", {})
    return SimpleNamespace(cards=("a", "b", "c"), experiment=experiment, fingerprint="f")


def said(session, store=None):
    text = io.StringIO()
    show_budget(session, store, Console(file=text, width=400))
    return text.getvalue()


def test_without_runs_the_measured_experiments_say_how_much_runs_vary(session):
    assert "3 runs of each of 3 methods can show differences of " in said(session)
    assert "of the runs in results/measured" in said(session)


def test_runs_on_features_vary_as_other_runs_on_features_do(session):
    experiment = session.experiment
    frozen = experiment.trunk.model_copy(update={"frozen": True})
    session.experiment = experiment.model_copy(update={"trunk": frozen})
    assert f"{100 * measured_deviation(on_features=True):.2f} points" in said(session)


def test_runs_in_the_store_say_how_much_runs_vary(session, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.db", tmp_path)
    store.put_experiment("f", "some", some_summary(methods={"a": "A"}))
    for number, value in enumerate((0.50, 0.52)):
        run = some_run("a", number, value)
        store.put_run(run)
        store.enlist("f", "a", run)
    # The concatenated MAP@R is a quarter of the value: deviation 0.02 / sqrt(2) / 4.
    assert "of this experiment's runs, 0.35 points" in said(session, store)


def test_a_single_method_has_nothing_to_see(session):
    session.cards = ("a",)
    assert said(session) == ""


def test_repeated_searches_get_no_figure_before_they_have_run(session):
    session.experiment = load_experiment("quickstart", {"search.searches": 3})
    text = said(session)
    assert "How much searches vary is known only afterwards" in text
    assert "can show differences" not in text
