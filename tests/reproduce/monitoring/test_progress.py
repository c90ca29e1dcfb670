"""The live progress of a run."""

import io

from rich.console import Console

from protocols.jobs import EvaluateJob, TrainJob
from reproduce.monitoring.observer import Tick
from reproduce.monitoring.progress import RunProgress
from reproduce.monitoring.time_left import Forecast
from tests.support.sample_records import some_result, some_run
from tests.support.small_problem import TRIPLET, small_problem


def shown(progress):
    console = Console(file=io.StringIO(), width=120)
    console.print(progress._render())
    return console.file.getvalue()


def test_running_trainings_are_shown_until_they_finish(tmp_path):
    specs = small_problem(tmp_path).fold_specs(TRIPLET, "search", 0)
    progress = RunProgress(Console(file=io.StringIO()), Forecast({"triplet": 4}, 2), {"triplet": "Triplet"}, len(specs))
    assert "time left not known yet" in shown(progress)
    progress.ticks([Tick(specs[0].fingerprint, 200)])
    assert "running: 200 iterations" in shown(progress)
    progress.job_done("triplet", TrainJob(specs[0]), some_result(specs[0], 0.25), from_store=False)
    assert "under way" not in shown(progress)
    assert "1 of 4 trainings" in shown(progress)
    assert "about" in shown(progress)
    # The last report may arrive late.
    progress.ticks([Tick(specs[0].fingerprint, 300)])
    assert "under way" not in shown(progress)


def test_a_log_has_a_line_per_choice_of_an_epoch_and_per_whole_run(tmp_path):
    problem = small_problem(tmp_path)
    folds, final = problem.fold_specs(TRIPLET, "reproduction", 0), problem.final_spec(TRIPLET, 0, 2)
    console = Console(file=io.StringIO(), width=200)
    progress = RunProgress(console, Forecast({"triplet": 3}, 1), {"triplet": "Triplet"}, len(folds))
    for spec in folds:
        progress.job_done("triplet", TrainJob(spec, chooses_epoch=True), some_result(spec), from_store=False)
    progress.job_done("triplet", TrainJob(final, "a run"), some_result(final), from_store=False)
    choice, whole_run = console.file.getvalue().splitlines()
    assert "triplet: choosing the epoch, 2 of 3 trainings" in choice
    assert "triplet: reproductions, 3 of 3 trainings" in whole_run


def test_the_time_left_contains_the_tests(tmp_path):
    specs = small_problem(tmp_path).fold_specs(TRIPLET, "reproduction", 0)
    console = Console(file=io.StringIO(), width=200)
    forecast = Forecast({"triplet": 1}, 1, tests={"triplet": 2}, expected_test=600.0)
    progress = RunProgress(console, forecast, {"triplet": "Triplet"}, 1)
    progress.job_done("triplet", TrainJob(specs[0]), some_result(specs[0]), from_store=False)
    job = EvaluateJob(tuple(specs), "mlrc", {}, 0, 0, training_time=30.0)
    tested = some_run(wall_time=150.0)
    progress.job_done("triplet", job, tested, from_store=False)
    before, after = console.file.getvalue().splitlines()
    assert "about 20 min left" in before
    assert "about 2 min left" in after


def test_trainings_that_a_trial_does_not_need_leave_the_count_and_the_display():
    forecast = Forecast({"triplet": 8}, workers=2)
    progress = RunProgress(Console(file=io.StringIO()), forecast, {"triplet": "Triplet"}, 4)
    progress.ticks([Tick("ahead", 10)])
    progress.spared("triplet", ["ahead", "never started"])
    assert forecast.total == 6
    # Its last reports arrive after it was dropped.
    progress.ticks([Tick("ahead", 20)])
    assert progress.running == {}
