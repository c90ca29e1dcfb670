"""What `plan` prints: times and their machine, differences that the runs can show. It only reads the store."""

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_budget, show_plan
from reproduce.forecast.plan_trainings import Length, MethodPlan
from reproduce.forecast.rates import Rates
from reproduce.storage import open_store, storage_paths, with_writable_cache
from results.records.experiment_summary import ExperimentSummary
from results.store.store import Store
from tests.support.command_line import TINY, ask
from tests.support.experiment_files import load_experiment
from tests.support.sample_records import some_run

# Ten images a second: at least 10 s, at most 100 s.
RATES = Rates(10.0, "as measured", here=True)


def method(in_store=0, share=0.3, tests=0.0, own=None):
    return MethodPlan("Triplet", 5, in_store, Length(10, 100), Length(100, 1000), share, "S", tests, own)


def shown(plans, rates=RATES, workers=1, racing=False):
    experiment = load_experiment("quickstart", {"search.racing": racing})
    text = io.StringIO()
    show_plan(
        plans,
        rates,
        workers,
        SimpleNamespace(name="n", experiment=experiment, problem=experiment),
        Console(file=text, width=300),
    )
    return text.getvalue()


def test_the_typical_time_lies_between_the_least_and_the_most():
    assert method().seconds_to_do(RATES) == pytest.approx((50, 150, 500))
    text = shown([method()])
    assert "5 trainings, 0 in the store; about 2 min left (50 s to 8 min), 1 at a time" in text
    assert "Typical length: S." in text


def test_a_typical_training_is_not_shorter_than_the_shortest():
    assert method(share=0.01).seconds_to_do(RATES) == pytest.approx((50, 50, 500))


def test_a_method_with_stored_trainings_has_their_rate_on_this_machine_only():
    slow = method(share=0.4, own=Rates(1.0, "from 3 trainings", here=True))
    assert slow.seconds_to_do(RATES) == pytest.approx((500, 2000, 5000))
    assert slow.seconds_to_do(Rates(10.0, "as given with --rate")) == pytest.approx((50, 200, 500))
    assert replace(slow, tests=100).seconds_to_do(RATES) == pytest.approx((510, 2010, 5010))
    said = "A method with trainings in the store has their rate."
    assert said in shown([slow, method()])
    assert said not in shown([replace(slow, in_store=5), method()])


def test_without_rates_the_times_are_unknown():
    text = shown([method(in_store=5), method()], "no rates")
    assert "10 trainings, 5 in the store; times are unknown (no rates); give --gpu" in text
    assert "5 trainings, 5 in the store; nothing is left to do" in shown([method(in_store=5)], "no rates")


def test_the_tests_of_the_runs_to_do_are_counted():
    half_done = replace(method(tests=100.0), trainings=10, in_store=5)
    assert half_done.seconds_to_do(RATES) == pytest.approx([seconds + 5 for seconds in method().seconds_to_do(RATES)])


def test_workers_divide_the_time_and_racing_says_at_most():
    assert "about 30 s left (10 s to 2 min), 5 at a time" in shown([method()], workers=5)
    assert "at most 5 trainings, 0 in the store" in shown([method()], racing=True)


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return lambda *arguments: " ".join(ask("plan", *arguments, capsys=capsys, monkeypatch=monkeypatch).out.split())


def test_for_another_machine_this_ones_cores_do_not_count(say, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert "1 at a time" in say("tiny.yaml", "--gpu", "a100")
    assert "One training at a time is assumed" in say("tiny.yaml", "--rate", "100")
    given = say("tiny.yaml", "--rate", "100", "--workers", "3")
    assert "3 at a time" in given
    assert "assumed for another machine" not in given


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpu", "abacus"], "--gpu 'abacus': known are h100, a100, 4090, cpu"),
        (["--gpu", "a100", "--rate", "3"], "exclude each other"),
    ],
)
def test_unknown_machines_and_two_rates_are_refused(capsys, monkeypatch, options, message):
    answer = ask("plan", "quickstart", *options, capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 2
    assert message in answer.err


def test_a_plan_changes_no_byte_of_the_store(say, tmp_path):
    where = storage_paths("runs/store.sqlite", None, None, None)
    open_store(where)
    file = tmp_path / "runs" / "store.sqlite"
    without_studies = file.read_bytes()
    assert "8 trainings, 0 in the store" in say("tiny.yaml")
    assert file.read_bytes() == without_studies


@pytest.mark.parametrize("made", ["not at all", "empty"])
def test_a_plan_makes_and_upgrades_no_store(say, tmp_path, made):
    file = tmp_path / "runs" / "store.sqlite"
    if made == "empty":
        file.parent.mkdir()
        file.touch()
    before = file.read_bytes() if file.exists() else None
    assert "8 trainings, 0 in the store" in say("tiny.yaml")
    assert (file.read_bytes() if file.exists() else None) == before


def test_a_folder_that_cannot_be_written_gets_a_cache_elsewhere(tmp_path, monkeypatch):
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    with with_writable_cache(where) as paths:
        assert paths == where
    monkeypatch.setattr("os.access", lambda *_: False)
    with with_writable_cache(where) as paths:
        assert paths.cache.is_dir()
        assert tmp_path not in paths.cache.parents
    assert not paths.cache.exists()


def said_of_budget(store=None, name="quickstart", **overrides):
    experiment = load_experiment(name, {"methods": ["contrastive", "triplet", "cosface"], **overrides})
    text = io.StringIO()
    show_budget(SimpleNamespace(experiment=experiment, fingerprint="f"), store, Console(file=text, width=400))
    return text.getvalue()


REPEATED = {"search.trials": 15, "search.searches": 3}


def test_ways_to_spend_the_trials_show_their_cost_and_what_they_can_show():
    text = said_of_budget(**REPEATED, reproductions=1)
    assert re.search(r"1 x 45 .* 184 .* \d+\.\d points", text)
    assert re.search(r"3 x 15 \(planned\) .* 192 .* \d+\.\d points", text)
    assert "80 %: from searches in results/measured." in text


def test_three_searches_show_smaller_differences_than_one():
    shown = said_of_budget(**{"search.trials": 50, "search.searches": 1})
    ways = {way: float(points) for way, points in re.findall(r"(\d x \d+)[^\n]* (\d+\.\d) points", shown)}
    assert list(ways) == ["1 x 50", "3 x 17", "3 x 50"]
    assert ways["3 x 50"] <= ways["3 x 17"] < ways["1 x 50"]


def test_searches_that_are_too_short_are_not_proposed_and_what_is_not_known_is_said():
    assert "ways to spend" not in said_of_budget(**{"search.trials": 6, "search.searches": 1})
    text = said_of_budget(**{"search.trials": 6, "search.searches": 3})
    assert re.search(r"3 x 6 \(planned\) .* not known", text)
    assert "1 x 18" in text


def test_given_settings_have_no_search_to_spend():
    text = said_of_budget(**{"search.trials": 0})
    assert text
    assert "ways to spend" not in text


def test_searches_in_the_store_say_how_far_searches_differ(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.db", tmp_path)
    before = said_of_budget(store, **REPEATED, reproductions=1)
    experiment = load_experiment("quickstart", {"methods": ["contrastive", "triplet"], **REPEATED, "reproductions": 1})
    summary = ExperimentSummary(
        methods={"contrastive": "C", "triplet": "T"}, runs={"contrastive": 3, "triplet": 3}, experiment=experiment
    )
    store.put_experiment("f", "some", summary)
    for search, value in enumerate((0.50, 0.52, 0.54)):
        run = some_run("contrastive", 0, value, fingerprint=f"run-{search}", search=search, study=f"study-{search}")
        store.put_run(run)
        store.enlist("f", "contrastive", run)
    assert said_of_budget(store, **REPEATED, reproductions=1) != before


def test_a_single_method_has_nothing_to_see():
    assert said_of_budget(methods=["contrastive"]) == ""
