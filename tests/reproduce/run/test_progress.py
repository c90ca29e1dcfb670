"""The live progress of a run, and of long reading before it."""

import io

import pytest
from rich.console import Console

from protocols.jobs import TrainJob
from reproduce.run.progress import Bars, RunProgress
from reproduce.run.time_left import TimeLeft
from reproduce.run.work import RowWork, Work
from results.answer.durations import Expected, Rate
from tests.support.sample_records import evaluation_of, some_result, some_run
from tests.support.small_setup import TRIPLET, UNTRAINED, small_setup


def shown(progress):
    console = Console(file=io.StringIO(), width=160)
    console.print(progress)
    return console.file.getvalue()


def progress_of(trainings, folds, file=None):
    console = Console(file=file or io.StringIO(), width=200)
    return RunProgress(lambda _: trainings, {"triplet": "Triplet"}, folds, console=console)


def test_the_best_fold_stands_beside_the_untrained_value(tmp_path):
    specs = small_setup(tmp_path).fold_specs(TRIPLET, "search", 0)
    progress = progress_of(4, len(specs))
    progress.job_done("triplet", TrainJob(specs[0]), some_result(specs[0], 0.25), from_store=False)
    text = shown(progress)
    assert "1 of 4 trainings, best fold of all searches so far: validation MAP@R 0.2500 (at its start 0.0000)" in text
    assert "1/4" in text


def test_the_time_left_is_the_plans_until_trainings_say_how_fast_they_are(tmp_path):
    """Neither what the store has, nor what racing takes away, counts; methods without a loss take almost no time."""
    setup, now = small_setup(tmp_path), [0.0]
    specs = [spec for trial in range(4) for spec in setup.fold_specs(TRIPLET, f"trial {trial}", trial)]
    assert len(specs) == 8
    console, left = Console(file=io.StringIO(), width=200, get_time=lambda: now[0]), [len(specs)]
    titles, counts = {"triplet": "Triplet", "pca": "PCA"}, {"pca": 40}
    rows = {"triplet": row_work(setup, TRIPLET, 8, 50.0), "pca": row_work(setup, UNTRAINED, 40, None)}
    time_left = TimeLeft(rows, workers=1, known_after=2)
    progress = RunProgress(lambda key: counts.get(key, left[0]), titles, setup.folds, time_left, console=console)
    said = []
    for number, spec in enumerate(specs[:6]):
        now[0] += 0 if number < 3 else 100
        left[0] = 8 if number < 5 else 7
        progress.job_done("triplet", TrainJob(spec), some_result(spec), from_store=number < 3)
        said.append(progress.tasks[0].fields["left"])
    for spec, stored in zip(specs[6:], (True, False), strict=True):
        progress.job_done("pca", TrainJob(spec), some_result(spec), from_store=stored)
    assert (progress.made.total(), progress.found.total()) == (4, 4)
    # The record's 50 s a training, until two trainings of this run have taken 100 s each.
    assert said[3:] == ["time left 3 min", "time left 5 min", "time left 2 min"]
    assert "4/43" in shown(progress)
    assert "6 of 7 trainings" in shown(progress)


def test_nothing_is_expected_without_a_speed_until_trainings_say_it(tmp_path):
    setup = small_setup(tmp_path)
    time_left = TimeLeft({"triplet": row_work(setup, TRIPLET, 8, None)}, workers=1, known_after=1)
    assert time_left.seconds({"triplet": 8}, {}, 0.0) is None
    time_left.made("triplet", "search", 10.0)
    assert time_left.seconds({"triplet": 8}, {("triplet", "search"): 1}, 10.0) == pytest.approx(70.0)


def test_trainings_without_steps_say_nothing_about_those_with_steps(tmp_path):
    """They take ten times what a record has for them, since processes start."""
    setup = small_setup(tmp_path)
    rows = {"pca": row_work(setup, UNTRAINED, 4, None), "triplet": row_work(setup, TRIPLET, 8, 50.0)}
    time_left, totals = TimeLeft(rows, workers=1, known_after=1), {"pca": 4, "triplet": 8}
    for number in range(4):
        time_left.made("pca", "search", 30.0 * (number + 1))
    done = {("pca", "search"): 4}
    assert time_left.seconds(totals, done, 120.0) == pytest.approx(8 * 50, abs=1), "tests take some of a second"
    time_left.made("triplet", "search", 180.0)
    assert time_left.seconds(totals, {**done, ("triplet", "search"): 1}, 180.0) == pytest.approx(7 * 60, abs=1)


def row_work(setup, method, trainings, seconds):
    """A row whose search has so many trainings, each of so many seconds; None for a speed that is not known."""
    epochs = 0 if method.loss is None else setup.conditions.training.max_epochs

    def work(stage, planned):
        return Work(
            key=method.name,
            title=method.name,
            stage=stage,
            searches=1,
            planned=planned,
            in_store=0,
            most_abreast=setup.folds,
            samples=0,
            conditions=setup.conditions,
            epoch_steps=min(epochs, 1),
            steps=Expected(epochs),
            folds=Expected(1.0),
            rate=None if seconds is None else Rate(seconds / epochs, "a test"),
        )

    return RowWork(work("search", trainings), work("reproductions", 0), work("tests", 0))


def test_probes_are_called_so_and_take_as_long_as_those_before(tmp_path):
    setup, now, file = small_setup(tmp_path), [0.0], io.StringIO()
    specs = [spec for trial in range(2) for spec in setup.fold_specs(TRIPLET, f"trial {trial}", trial)]
    console = Console(file=file, width=200, get_time=lambda: now[0])
    progress = RunProgress(lambda _: 8, {"triplet": "Triplet"}, setup.folds, phase="probes", console=console)
    said = []
    for number, spec in enumerate(specs):
        now[0] += 0 if number == 0 else 120
        progress.job_done("triplet", TrainJob(spec), some_result(spec, 0.25), from_store=number == 0)
        said.append(progress.tasks[0].fields["left"])
    assert said == [f"time left {left}" for left in ("not known yet", "not known yet", "10 min", "8 min")]
    assert "triplet: probes, 4 of 8 trainings, best fold" in file.getvalue()
    assert "search," not in file.getvalue()


def test_a_log_has_a_line_per_choice_of_an_epoch_and_per_whole_run(tmp_path):
    setup = small_setup(tmp_path)
    folds, final = setup.fold_specs(TRIPLET, "reproduction", 0), setup.final_spec(TRIPLET, 0, 2)
    file = io.StringIO()
    progress = progress_of(3, len(folds), file)
    for spec in folds:
        job = TrainJob(spec, chooses_epoch=True)
        progress.job_done("triplet", job, some_result(spec, 0.25), from_store=False)
    progress.job_done("triplet", TrainJob(final, "run"), some_result(final, 0.5), from_store=False)
    progress.job_done("triplet", TrainJob(final, "run"), some_result(final, 0.5), from_store=True)
    test = evaluation_of(final)
    progress.job_done("triplet", test, some_run(), from_store=False)
    lines = file.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"[{len(folds)}/3, time left ")
    assert (
        "] triplet: choosing the epoch, 2 of 3 trainings, best fold of all searches so far: validation MAP@R 0.2500"
        in lines[0]
    )
    assert "reproductions" in lines[1]
    assert "run 1 tested, separated MAP@R" in lines[2]
    alone = progress_of(1, len(folds))
    alone.job_done("triplet", TrainJob(final, "run"), some_result(final), from_store=False)
    assert "reproductions, 1 of 1 training" in shown(alone)
    assert "validation" not in shown(alone)


def test_long_reading_shows_a_line_with_the_time_left_twice_a_minute_without_a_terminal():
    now = [0.0]
    console = Console(file=io.StringIO(), width=200, get_time=lambda: now[0])
    with Bars(console) as bars:
        moved = bars.of("computing features")
        for done in range(0, 130, 10):
            now[0] = done
            moved(done, 1200)
    left = {30: 20, 60: 19, 90: 18, 120: 18}
    lines = [f"computing features: {done} of 1,200, time left {minutes} min" for done, minutes in left.items()]
    assert console.file.getvalue().splitlines() == lines


def test_batches_without_pairs_are_told_the_first_time(tmp_path):
    specs = small_setup(tmp_path).fold_specs(TRIPLET, "search", 0)
    file = io.StringIO()
    progress = progress_of(4, len(specs), file)
    for count in (0, 3, 3):
        outcome = some_result(specs[0]).model_copy(update={"batches_without_pairs": count})
        progress.job_done("triplet", TrainJob(specs[0]), outcome, from_store=False)
    assert file.getvalue().count("no two images are of one class") == 1
    assert "triplet: in 3 of " in file.getvalue()
    assert "{samples_per_class: 2}" in file.getvalue()
