"""What `plan` prints: trainings, the time if it is known, and the differences that the runs can show."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_plan
from reproduce.run.forecast import MethodPlan, plan
from reproduce.run.session import open_session
from reproduce.storage import open_store, storage_paths
from results.wording import in_words
from tests.support.command_line import TINY, ask, refused
from tests.support.experiment_files import load_experiment
from tests.support.sample_records import changed_spec, some_result


def method(in_store=0, seconds_each=None, trainings=5):
    return MethodPlan("Triplet", trainings, in_store, steps=100, images=1000, seconds_each=seconds_each)


def shown(plans, rate=None, workers=1, racing=False):
    experiment = load_experiment("quickstart", {"search.racing": racing})
    text = io.StringIO()
    session = SimpleNamespace(name="n", experiment=experiment)
    show_plan(plans, rate, workers, session, Console(file=text, width=300))
    return text.getvalue()


def test_the_time_comes_from_the_store_or_from_the_rate_or_is_not_known():
    assert method().seconds() is None
    assert method(seconds_each=30.0).seconds() == pytest.approx(150)
    assert method(seconds_each=20.0).seconds(rate=10.0) == pytest.approx(500)
    assert method(in_store=5).seconds() == 0.0
    assert "5 trainings, 0 in the store; how long they take is not known; `plan --rate" in shown([method()])
    assert "about 2 min left, 1 at a time, by the trainings in the store" in shown([method(seconds_each=30.0)])
    assert "at most 8 min of training at 10 a second, 1 at a time" in shown([method()], rate=10.0)
    assert "5 trainings, 5 in the store; nothing is left to do" in shown([method(in_store=5)])
    assert "is not known" in shown([method(), method(seconds_each=20.0)])
    assert "about 2 min left" in shown([method(in_store=5), method(seconds_each=20.0)])
    assert "about 20 s left, 5 at a time" in shown([method(seconds_each=20.0)], workers=5)
    assert "at most 5 trainings, 0 in the store" in shown([method()], racing=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "not known yet"),
        (59, "59 s"),
        (60, "1 min"),
        (3600, "1 h"),
        (12000, "3 h 20 min"),
        (187200, "2 days 4 h"),
    ],
)
def test_durations_are_written_for_people(seconds, words):
    assert in_words(seconds) == words


@pytest.fixture
def planned(tmp_path):
    """A function that plans two methods on glyphs, with what a store has."""
    overrides = {"methods": ["contrastive", "triplet"], "dataset.root": None}
    experiment = load_experiment("quickstart", overrides)
    session = open_session("q", experiment, storage_paths(str(tmp_path / "s.sqlite")), None)
    store = open_store(session.paths)
    specs = {
        key: session.setup.fold_specs(study.method.method, "reproduction", 0)[0]
        for key, study in session.planned.items()
    }

    def seconds(*timings):
        for timing in timings:
            store.put_fold(timing(specs))
        return [one.seconds_each for one in plan(session, store, store.timings)]

    return seconds


def test_only_trainings_under_the_same_conditions_are_measurements_and_own_ones_come_first(planned):
    def timing(key, seconds, **changes):
        return lambda specs: some_result(changed_spec(specs[key], **changes), wall_time=seconds)

    assert planned(timing("triplet", 9.0, embedding_size=3), timing("triplet", 9.0, dataset="other")) == [None, None]
    assert planned(timing("triplet", 3.0, fold=2), timing("triplet", 5.0, seed=9)) == [4.0, 4.0]
    assert planned(timing("contrastive", 5.0)) == [5.0, 4.0]


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return lambda *arguments: " ".join(ask("plan", *arguments, capsys=capsys, monkeypatch=monkeypatch).out.split())


@pytest.mark.parametrize("made", ["not at all", "empty", "whole"])
def test_a_plan_makes_and_changes_no_store(say, tmp_path, made):
    file = tmp_path / "runs" / "store.sqlite"
    if made == "empty":
        file.parent.mkdir()
        file.touch()
    elif made == "whole":
        open_store(storage_paths("runs/store.sqlite"))
    before = file.read_bytes() if file.exists() else None
    assert "8 trainings, 0 in the store" in say("tiny.yaml")
    assert (file.read_bytes() if file.exists() else None) == before


def test_an_experiment_gets_the_name_that_is_asked_for_with_its_panels(say, tmp_path, capsys, monkeypatch):
    assert "first_try: A tiny experiment" in say("tiny.yaml", "--name", "first_try")
    (tmp_path / "two.yaml").write_text(TINY + "panels: {one: {}, other: {seed: 4}}\n")
    assert "first_try: A tiny experiment" in say("two.yaml/one", "--name", "first_try")
    both = say("two.yaml", "--name", "a_1", "--methods", "untrained")
    assert "a_1/one: A tiny" in both
    assert "a_1/other: A tiny" in both
    for name, said in (("quickstart", "is an experiment or a table of the suite"), ("a/b", "use letters, digits and")):
        refused(ask("plan", "tiny.yaml", "--name", name, capsys=capsys, monkeypatch=monkeypatch), said)


def test_a_plan_names_what_a_run_needs(say):
    text = say("mlrc_cub200", "--methods", "triplet", "--device", "cpu")
    assert "needs the images of cub200 from https://data.caltech.edu/records/65de6-vp158, with --data" in text
    assert "the weights of bn_inception, downloaded at the first run" in text
    # A network of 10.3 million numbers of four bytes, 10 reproductions of four folds.
    assert "1.6 GB of disk for 40 checkpoints" in text
    assert "needs" not in say("tiny.yaml")
