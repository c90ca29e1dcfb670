"""The times that `plan` prints, the machine that they are for, and that it only reads the store."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_plan
from reproduce.forecast.plan_trainings import Length, MethodPlan, length_of_test
from reproduce.forecast.rates import Rates
from reproduce.forecast.typical_lengths import TypicalLength
from reproduce.storage import open_store, storage_paths, with_writable_cache
from tests.support.command_line import TINY, ask
from tests.support.experiment_files import load_experiment
from tests.support.small_problem import small_problem

# Ten images a second: at least 10 s, at most 100 s.
RATES = Rates(10.0, "as measured", here=True)


def method(seconds_each=None, in_store=0, share=0.3):
    return MethodPlan(
        "triplet",
        "Triplet",
        5,
        in_store,
        seconds_each,
        Length(10, 100, 0),
        Length(100, 1000, 0),
        TypicalLength(share, "S"),
    )


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


def test_stored_trainings_of_the_method_are_the_typical_time_on_this_machine_only():
    assert method(seconds_each=40.0).seconds_to_do(RATES) == pytest.approx((50, 200, 500))
    elsewhere = Rates(10.0, "as given with --rate")
    assert method(seconds_each=40.0).seconds_to_do(elsewhere) == pytest.approx((50, 150, 500))


def test_the_bounds_contain_what_was_measured():
    assert method(seconds_each=2.0).seconds_to_do(RATES) == pytest.approx((10, 10, 500))


def test_a_method_with_stored_trainings_has_their_rate_on_this_machine_only():
    slow = replace(method(seconds_each=400.0), own_rates=Rates(1.0, "from 3 trainings", here=True))
    assert slow.seconds_to_do(RATES) == pytest.approx((500, 2000, 5000))
    assert slow.seconds_to_do(Rates(10.0, "as given with --rate")) == pytest.approx((50, 150, 500))
    tested = replace(slow, runs=5, test=Length(0, 0, 60))
    assert tested.seconds_to_do(RATES) == pytest.approx([seconds + 5 * 60 / 30 for seconds in (500, 2000, 5000)])
    said = "A method with trainings in the store has their rate."
    assert said in shown([slow, method()])
    assert said not in shown([replace(slow, in_store=5), method()])


def test_without_rates_the_stored_trainings_are_all_that_is_known():
    assert method(seconds_each=2.0).seconds_to_do(None) == (10.0, 10.0, 10.0)
    assert "mean of each method's trainings in the store" in shown([method(seconds_each=2.0)], "no rates")
    text = shown([method(seconds_each=2.0), method()], "no rates")
    assert "10 trainings, 0 in the store; times are unknown (no rates); give --gpu" in text


def test_the_retrieval_of_validations_is_counted_where_its_speed_is_known():
    length = Length(10, 100, 50, compared=2500)
    assert length.seconds(RATES) == pytest.approx(100 / 10 + 50 / 30)
    measured = Rates(10.0, "as measured", evaluated=5.0, comparisons=100.0)
    assert length.seconds(measured) == pytest.approx(100 / 10 + 50 / 5 + 2500 / 100)


def test_the_tests_of_the_runs_to_do_are_counted():
    half_done = replace(method(in_store=0), trainings=10, in_store=5, runs=4, test=Length(0, 0, 60, compared=900))
    without = replace(half_done, test=None).seconds_to_do(RATES)
    # Two of four tests, at 30 images a second.
    assert half_done.seconds_to_do(RATES) == pytest.approx([seconds + 2 * 60 / 30 for seconds in without])
    measured = replace(RATES, comparisons=90.0)
    assert half_done.seconds_to_do(measured) == pytest.approx([seconds + 2 * (60 / 30 + 10) for seconds in without])


def test_a_test_embeds_with_every_fold_and_compares_the_concatenation_too(tmp_path):
    problem = small_problem(tmp_path)
    images = len(problem.dataset.images.of_classes(problem.split.test))
    assert problem.folds == 2
    assert length_of_test(problem) == Length(0, 0, 2 * images, compared=4 * images**2)


def test_nothing_to_do_needs_no_rates():
    assert method(in_store=5).seconds_to_do(None) == (0.0, 0.0, 0.0)


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
