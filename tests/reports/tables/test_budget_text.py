"""Sentences about what a budget can see."""

from reports.tables.result_notes import budget_text
from results.spec.experiment_spec import PrimaryScore
from results.statistics.planning import RunBudget


def text(**changes):
    fields = {"methods": 5, "runs": 3, "deviation": 0.006, "smallest": 0.037, "wanted": 0.005, "runs_needed": 43}
    return " ".join(budget_text(RunBudget(**{**fields, "from_own_runs": True, **changes}), PrimaryScore()))


def test_the_smallest_difference_and_the_needed_runs_are_said():
    assert text() == (
        "3 runs of each of 5 methods can show differences of 3.7 points or more in concatenated MAP@R, with a "
        "probability of 80 %. "
        "A difference of 0.5 points would take 43 runs of each. From the run-to-run deviation of this experiment's "
        "runs, 0.60 points, taken as equal for all methods, and corrected for all pairs."
    )


def test_one_run_and_very_many_runs_are_said():
    assert "One run of each of 5 methods can show no difference" in text(runs=1, smallest=None)
    assert "would take more than 1000 runs of each" in text(runs_needed=None)
    assert "deviation of the runs in results/measured" in text(from_own_runs=False)
