"""What `plan` prints: times and their machine, differences that the runs can show. It only reads the store."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_budget, show_plan
from reproduce.forecast.plan_trainings import Length, MethodPlan
from reproduce.forecast.rates import Rates
from reproduce.storage import open_store, storage_paths, with_writable_cache
from results.statistics.planning import measured_deviation
from results.store.store import Store
from tests.support.command_line import TINY, ask
from tests.support.experiment_files import load_experiment
from tests.support.sample_records import some_run, some_summary

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


@pytest.fixture
def session():
    experiment = load_experiment("quickstart", {})
    return SimpleNamespace(titles=dict.fromkeys("abc", ""), experiment=experiment, fingerprint="f")


def said_of_budget(session, store=None):
    text = io.StringIO()
    show_budget(session, store, Console(file=text, width=400))
    return text.getvalue()


def test_without_runs_the_measured_experiments_say_how_much_runs_vary(session):
    assert "3 runs of each of 3 methods can show differences of " in said_of_budget(session)
    assert "of the runs in results/measured" in said_of_budget(session)


def test_runs_on_features_vary_as_other_runs_on_features_do(session):
    experiment = session.experiment
    frozen = experiment.trunk.model_copy(update={"frozen": True})
    session.experiment = experiment.model_copy(update={"trunk": frozen})
    assert f"{100 * measured_deviation(on_features=True):.2f} points" in said_of_budget(session)


def test_runs_in_the_store_say_how_much_runs_vary(session, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.db", tmp_path)
    store.put_experiment("f", "some", some_summary(methods={"a": "A"}))
    for number, value in enumerate((0.50, 0.52)):
        run = some_run("a", number, value)
        store.put_run(run)
        store.enlist("f", "a", run)
    # The concatenated MAP@R is a quarter of the value: deviation 0.02 / sqrt(2) / 4.
    assert "of this experiment's runs, 0.35 points" in said_of_budget(session, store)


def test_a_single_method_has_nothing_to_see(session):
    session.titles = {"a": "A"}
    assert said_of_budget(session) == ""


def test_repeated_searches_get_no_figure_before_they_have_run(session):
    session.experiment = load_experiment("quickstart", {"search.searches": 3})
    text = said_of_budget(session)
    assert "How much searches vary is known only afterwards" in text
    assert "can show differences" not in text
