"""What a budget can see, in sentences."""

from typing import Literal

from results.experiment_spec import PrimaryScore
from results.headline_metrics import HEADLINE_METRICS
from results.statistics.planning import MOST_RUNS, RunBudget


def budget_text(budget: RunBudget, score: PrimaryScore, unit: Literal["run", "search"] = "run") -> tuple[str, str]:
    """Write what a budget can see, and what that follows from.

    Args:
        budget: The budget, with differences as fractions of 1.
        score: The primary score.
        unit: What varies: runs, or searches if they are repeated.

    Returns:
        A sentence or two with the smallest detectable difference and the runs that a difference takes, and a sentence
        with the deviation behind them.
    """
    name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    wanted = f"{100 * budget.wanted:g} points"
    needed = f"more than {MOST_RUNS}" if budget.runs_needed is None else f"{budget.runs_needed}"
    units = "runs" if unit == "run" else "searches"
    if budget.smallest is None:
        sees = f"One {unit} of each of {budget.methods} methods can show no difference in {name}."
    else:
        sees = (
            f"{budget.runs} {units} of each of {budget.methods} methods can show differences of "
            f"{100 * budget.smallest:.1f} points or more in {name}, with a probability of 80 %."
        )
    source = "of this experiment's runs" if budget.from_own_runs else "of the runs in results/measured"
    deviation = f"{100 * budget.deviation:.2f} points"
    basis = f"From the {unit}-to-{unit} deviation {source}, {deviation}, taken as equal for all methods, "
    basis += "and corrected for all pairs."
    return f"{sees} A difference of {wanted} would take {needed} {units} of each.", basis
