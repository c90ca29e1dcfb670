"""What `plan` prints: trainings, the time if it is known, and the differences that the runs can show."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from reproduce.commands.plan import show_plan
from reproduce.commands.run import say_what_is_to_do
from reproduce.run.forecast import MethodPlan, plan
from reproduce.run.session import open_session
from reproduce.storage import open_store, storage_paths
from results.wording import in_words
from tests.support.command_line import TINY, ask, environment, refused
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
def session(tmp_path):
    """Two methods on glyphs."""
    experiment = load_experiment("quickstart", {"methods": ["contrastive", "triplet"]})
    return open_session("q", experiment, storage_paths(str(tmp_path / "s.sqlite")), None)


def test_only_trainings_under_the_same_conditions_are_measurements_and_own_ones_come_first(session):
    def measured(key, seconds, **changes):
        spec = session.setup.fold_specs(session.planned[key].method.method, "calibration", 0)[0]
        session.store.put_fold(some_result(changed_spec(spec, **changes), wall_time=seconds))

    def seconds():
        return [one.seconds_each for one in plan(session, session.store, session.store.timings)]

    def said():
        text = io.StringIO()
        say_what_is_to_do(session, 2, Console(file=text, width=300))
        return text.getvalue()

    measured("triplet", 9.0, embedding_size=3)
    measured("triplet", 9.0, dataset="other")
    assert seconds() == [None, None]
    assert said().startswith("at most 384 trainings, 0 in the store; how long they take is not known; `plan")
    measured("triplet", 3.0, fold=2)
    measured("triplet", 5.0, seed=9)
    assert seconds() == [4.0, 4.0]
    assert said().startswith("at most 384 trainings, 0 in the store; about 12 min left, 2 at a time, by")
    measured("contrastive", 5.0)
    assert seconds() == [5.0, 4.0]


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


def test_a_plan_does_not_import_torchs_compiler_which_takes_seconds(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    code = (
        "import sys, contextlib; from reproduce.commands.cli import main; sys.argv[1:] = ['plan', 'tiny.yaml']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done


def test_a_plan_names_what_a_run_needs(say):
    text = say("mlrc_cub200", "--methods", "triplet", "--device", "cpu")
    assert "needs the images of cub200 from https://data.caltech.edu/records/65de6-vp158, with --data" in text
    assert "the weights of bn_inception, downloaded at the first run" in text
    # A network of 10.3 million numbers of four bytes, 10 reproductions of four folds.
    assert "1.6 GB of disk for 40 checkpoints" in text
    assert "needs" not in say("tiny.yaml")
