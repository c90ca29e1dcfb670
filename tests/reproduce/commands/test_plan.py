"""What `plan` prints: trainings, the time at a rate, and the differences that the runs can show."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from reproduce.commands.plan import MethodPlan, show_plan
from reproduce.storage import open_store, storage_paths
from results.wording import in_words
from tests.support.command_line import TINY, environment, refused
from tests.support.experiment_files import load_experiment


@pytest.fixture
def shown(capsys):
    def show(*in_store, rate=None, workers=1, racing=False):
        plans = [MethodPlan("Triplet", 5, number, steps=100, images=1000) for number in in_store]
        experiment = load_experiment("quickstart", {"search.racing": racing})
        show_plan(plans, rate, workers, SimpleNamespace(name="n", experiment=experiment))
        return capsys.readouterr().out

    return show


def test_the_time_comes_from_the_rate_and_else_from_the_run(shown):
    assert "\n5 trainings, 0 in the store, 5 to do" in shown(0)
    assert "at most 8 min of training at 10 a second, 1 at a time" in shown(0, rate=10.0)
    assert "at most 12 min of training at 5 a second, 2 at a time" in shown(0, 3, rate=5.0, workers=2)
    assert "5 trainings, 5 in the store; nothing is left to do" in shown(5, rate=10.0)
    assert "at most 10 trainings, 3 in the store, 7 to do" in shown(0, 3, racing=True)


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
def plan(say, tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    return lambda *arguments: " ".join(say("plan", *arguments).out.split())


@pytest.mark.parametrize("made", ["not at all", "empty", "whole"])
def test_a_plan_makes_and_changes_no_store(plan, tmp_path, made):
    file = tmp_path / "runs" / "store.sqlite"
    if made == "empty":
        file.parent.mkdir()
        file.touch()
    elif made == "whole":
        open_store(storage_paths("runs/store.sqlite"))
    before = file.read_bytes() if file.exists() else None
    assert "8 trainings, 0 in the store" in plan("tiny.yaml")
    assert (file.read_bytes() if file.exists() else None) == before


def test_an_experiment_gets_the_name_that_is_asked_for_with_its_panels(plan, say, tmp_path):
    assert "first_try: A tiny experiment" in plan("tiny.yaml", "--name", "first_try")
    (tmp_path / "two.yaml").write_text(TINY + "panels: {one: {}, other: {seed: 4}}\n")
    assert "first_try: A tiny experiment" in plan("two.yaml/one", "--name", "first_try")
    both = plan("two.yaml", "--name", "a_1", "--methods", "untrained")
    assert "a_1/one: A tiny" in both
    assert "a_1/other: A tiny" in both
    for name, said in (("quickstart", "is an experiment or a table of the suite"), ("a/b", "use letters, digits and")):
        refused(say("plan", "tiny.yaml", "--name", name), said)


def test_a_plan_does_not_import_torchs_compiler_which_takes_seconds(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    code = (
        "import sys, contextlib; from reproduce.commands.cli import main; sys.argv[1:] = ['plan', 'tiny.yaml']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done


def test_a_plan_names_what_a_run_needs(plan):
    text = plan("mlrc_cub200", "--methods", "triplet", "--device", "cpu")
    assert "needs the images of cub200 from https://data.caltech.edu/records/65de6-vp158, with --data" in text
    assert "the weights of bn_inception, downloaded at the first run" in text
    # A network of 10.3 million numbers of four bytes, 10 reproductions of four folds.
    assert "1.6 GB of disk for 40 checkpoints" in text
    assert "needs" not in plan("tiny.yaml")
