"""What `plan` prints: trainings, the time at a rate, and the differences that the runs can show."""

import re
import subprocess
import sys

import pytest

from reproduce.storage import open_store, storage_paths
from results.answer.planning import units_for
from results.wording import in_words
from tests.support.command_line import TINY, environment, refused


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "not known yet"),
        (59, "59 s"),
        (60, "1 min"),
        (3600, "1 h"),
        (12000, "3 h 20 min"),
        (187200, "2 days 4 h"),
        (29401200, "340 days"),
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


def test_hours_come_from_records_from_the_user_or_from_this_machine(plan, say, tmp_path):
    """Expected and at most, by stage and in all, with the records that say it; steps and images a second together."""
    once = ("--device", "cpu", "--workers", "2")
    text = plan("quickstart", *once)
    assert "method ┃ search ┃ reproductions ┃ tests ┃ in all ┃ if nothing stops early" in text
    assert "at most 228 trainings, 0 in the store, 228 to do, 175 expected" in text
    assert "200 / 2,400" in text, "a trial and a tested run"
    assert "Expected time of all trainings, added up; each at the speed of 2 trainings at a time" in text
    longer = "if nothing stops early"
    assert f"expected 10 min, 15 min {longer}, with 2 trainings at a time; 0.33 CPU-hours, 0.51 {longer}" in text
    assert "early stopping leaves 53 to 68 % of the steps, as in results/measured/quickstart.json.xz" in text
    assert "racing leaves 67 to 78 % of the folds, as in results/measured/reality_check_glyphs.zip" in text
    assert "steps (1,669 to 1,719 images) a second of one training, from results/measured/quickstart.json.xz" in text
    given = plan("quickstart", "--rate", "320", *once)
    assert "speed: 10 steps (320 images) a second of one training, from --rate" in given
    # 192 trainings of 200 steps and 24 of 2,400, 10 a second, two at a time, and the tests of six runs.
    assert f", 1 h 21 min {longer}, with 2 trainings at a time; " in given
    assert "hours of training" in given
    refused(say("plan", "quickstart", "--measure", "--rate", "3"), "leave out --rate and --gpus")
    refused(say("plan", "quickstart", "--rate", "inf"), "less than or equal to")


def test_a_plan_for_gpus_needs_none(plan, say):
    text = plan("mlrc_cub200", "--gpus", "8", "--methods", "untrained,contrastive")
    assert "early, with 4 trainings at a time in the search and 32 afterwards on 8 GPUs; " in text
    at_most = "19 h 47 min if nothing stops early"
    assert f"expected 1 h 30 min (18 min to 3 h 55 min by all kept records), {at_most}, with 4 trainings" in text
    assert "GPU-hours of work (1.2 to 17), 84 if nothing stops early" in text
    refused(say("plan", "quickstart", "--gpus", "2", "--device", "cpu"), "leave out --device cpu")
    assert "speed: 29 to 75 steps (926 to 2,393 images) a second of one training, from " in text
    assert "from results/measured/bench_gpu.json (NVIDIA H100 80GB HBM3); and " in text
    assert "leaves 7.5 % of the steps, as in results/measured/reality_check_glyphs_ends_probed.json.xz (glyphs)" in text
    assert "More at a time change little: the trials of one search of Contrastive follow one another" in text


def test_a_number_that_is_not_of_the_method_is_marked(plan):
    """No record of networks that early stopping ended has a histogram loss."""
    text = plan("mlrc_cub200", "--gpus", "8", "--methods", "proxy_anchor,histogram")
    trained = "no record trained a network on such data to its end: the steps are scaled by patience, and all kept "
    assert f"{trained}records together say 1,430 to 19,765 steps" in text
    assert "~ (1 method): the mean of the record's 8 methods (9,604 to 11,875 steps), since it has none of" in text
    assert text.count("~") == 2, "one row and the line that explains it"
    glyphs = plan("quickstart", "--device", "cpu")
    assert "~" not in glyphs
    assert "to its end" not in glyphs


def test_what_no_record_knows_is_not_expected(plan):
    text = plan("tiny.yaml", "--device", "cpu")
    assert "no kept record has the speed on this kind of machine; `plan --measure` measures it" in text
    assert "expected 0 s" not in text


@pytest.mark.slow
def test_a_plan_measures_this_machine(plan, tmp_path):
    text = plan("tiny.yaml", "--measure", "--workers", "1", "--device", "cpu")
    assert "measuring 20 steps of each method, 1 training at a time on cpu" in text
    assert "a second of one training, from 20 steps on this machine" in text
    assert " CPU-hours" in text
    assert not (tmp_path / "runs" / "store.sqlite").exists()


def test_a_plan_says_what_showing_a_difference_takes(plan):
    said = plan("quickstart", "--difference", "5", "--assume-deviation", "2.4")
    needed = units_for(3, 5 / 2.4, "all")
    assert f"A difference of 5 points takes {needed} searches of each." in said
    assert f"a deviation of {2.4:.2f} points between searches, as given" in said
    assert f"That is {needed / 3:.3g} times the searches of this plan: about {needed * 76:,} trainings, " in said
    assert "--assume-deviation" not in said
    unknown = plan("quickstart")
    assert "`plan --difference 1 --assume-deviation 2` says what a point takes if they vary by two." in unknown
    given = ("--difference", "5", "--assume-deviation", "2.4")
    far = plan("mlrc_cub200", "--gpus", "8", "--methods", "contrastive,triplet", *given).split("That is ")[1]
    assert far.startswith(f"{units_for(2, 5 / 2.4, 'all')} times the searches of this plan")
    assert re.search(r" expected \(.+ to .+ by all kept records\), .+ if nothing stops early", far)
