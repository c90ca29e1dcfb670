"""Searches and runs that are added to known results are disclosed."""

from types import SimpleNamespace

import pytest

from reproduce.run.run_experiment import after_searches, compared_first, interim_looks
from reproduce.terminal import show_interim
from results.findings.experiment import answer_of
from results.spec.plan import Plan
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.sample_records import put_experiment, some_plan, some_run

DATA = "d" * 32


def planned(searches=1, runs=2, **settings) -> Plan:
    search = {"trials": 3, "searches": searches}
    settings = {"search": search, "reproductions": runs, **settings}
    return some_plan(methods={"a": "A"}, runs={"a": searches * runs}, settings=settings)


@pytest.fixture
def seen(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)

    def key_of(plan, name):
        return plan.experiment.fingerprint(name, DATA)

    def after(asked, *before, missing=0, name="mine"):
        """What is seen by a start of an experiment after others were run."""
        for number, plan in enumerate(before):
            key = key_of(plan, name)
            runs = [some_run("a", run, fingerprint=f"{number}-{run}") for run in range(plan.rows["a"].runs - missing)]
            put_experiment(store, key, name, plan, runs)
        setup = SimpleNamespace(dataset=SimpleNamespace(fingerprint=DATA))
        session = SimpleNamespace(
            store=store, name="mine", experiment=asked.experiment, setup=setup, fingerprint=key_of(asked, "mine")
        )
        return interim_looks(session)

    return after


def test_added_runs_and_added_searches_are_seen_after_what_was_complete(seen):
    assert seen(planned()) == ()
    assert seen(planned(runs=5), planned(runs=1), planned(runs=2)) == ("1 run", "2 runs")
    assert seen(planned(3, runs=5)) == ("1 search",)


def test_what_is_shown_after_a_round_has_as_many_searches_of_each_method(capsys):
    methods = {"a": "A", "b": "B"}
    settings = {"search": {"trials": 3, "searches": 3}, "reproductions": 1}
    runs = [some_run(key, 0, 0.5, search=number) for key, done in (("a", 3), ("b", 2)) for number in range(done)]
    measured = MeasuredExperiment(some_plan(methods=methods, settings=settings), tuple(runs))
    show_interim(answer_of(after_searches(measured, 2)), 2)
    said = capsys.readouterr().out
    assert said.startswith("After 2 of 3 searches of each method:")
    assert said.count("2 × 1") == 2


def test_a_table_of_many_methods_says_that_it_has_the_best_ones(capsys):
    methods = {key: key.upper() for key in "abcdefghi"}
    settings = {"search": {"trials": 3, "searches": 3}, "reproductions": 1}
    runs = [some_run(key, 0, 0.3 + place / 20, search=0) for place, key in enumerate(methods)]
    show_interim(answer_of(MeasuredExperiment(some_plan(methods=methods, settings=settings), tuple(runs))), 1)
    said = capsys.readouterr().out
    assert said.startswith("After 1 of 3 searches of each method, the best 7 of 9:")
    assert said.count("1 × 1") == 7
    assert "\nA " not in said


def test_several_numbers_of_searches_are_named_in_order(seen):
    assert seen(planned(5, 1), planned(2, 3), planned(1, 3), planned(3, 1)) == ("1 search", "2 searches", "3 searches")


def test_runs_added_to_each_of_the_same_searches_are_runs(seen):
    assert seen(planned(3, 4), planned(3, 2)) == ("2 runs",)


def test_planned_looks_are_none_and_a_fixed_number_before_the_plan_is_one(seen):
    def until_decided(searches):
        return planned(searches, search={"trials": 3, "searches": searches, "until_decided": True})

    assert until_decided(3).experiment.fingerprint("mine", DATA) == until_decided(5).experiment.fingerprint(
        "mine", DATA
    )
    assert seen(until_decided(3), planned(3)) == ("3 searches",)
    assert seen(planned(8), until_decided(3)) == ("3 searches",)
    assert seen(until_decided(4), until_decided(3)) == ()


def test_fewer_searches_or_runs_are_no_news(seen):
    before = planned(3, 2)
    assert seen(planned(3, 2), before) == seen(planned(3, 1)) == seen(planned(2, 9)) == ()


def test_another_comparison_of_the_same_methods_is_seen_too_and_so_is_another_name(seen):
    assert seen(planned(3, primary={"compare": "best"}), planned(1)) == ("1 search",)
    assert seen(planned(3), planned(1), name="other") == ("1 search",)


@pytest.mark.parametrize(("missing", "settings"), [(1, {}), (0, {"seed": 9})])
def test_other_experiments_and_unfinished_ones_are_not_seen(seen, missing, settings):
    assert seen(planned(3), planned(1, **settings), missing=missing) == ()


def test_the_method_that_others_are_compared_with_is_trained_first():
    studies = {"a": 1, "b": 2, "c": 3}
    assert compared_first(studies, "c") == [("c", 3), ("a", 1), ("b", 2)]
    assert compared_first(studies, "all") == list(studies.items())
