"""Sentences on the origin of an experiment's hyperparameters, for the captions and notes of tables."""

from results.experiment_summary import ExperimentSummary

CARRIED_CHOICE = "Hyperparameters printed by a paper whose code selects on test classes carry that choice."


def carries_choice(protocol: str, trials: int) -> bool:
    """Return whether the hyperparameters come from papers that may have selected on test classes.

    Papers with tables of the protocol `standard` mostly have no validation classes. MLRC and CCP have them.

    Args:
        protocol: Name of the protocol.
        trials: Number of search trials per method.
    """
    return protocol == "standard" and trials == 0


def origin_of_hyperparameters(protocol: str, trials: int) -> str:
    """Return one or two sentences on the origin of the hyperparameters; see `carries_choice` for the arguments."""
    if trials == 1:
        return "Hyperparameters: those of the only trial of each method."
    if trials:
        return f"Hyperparameters: best of {trials} trials per method by validation MAP@R."
    given = "Hyperparameters: from papers or from the experiment file, not searched."
    return f"{given} {CARRIED_CHOICE}" if carries_choice(protocol, trials) else given


def choice_notes(summary: ExperimentSummary) -> tuple[str, ...]:
    """Return a note on hyperparameters that carry a choice on test classes; none if nothing carries one."""
    return (CARRIED_CHOICE,) if carries_choice(summary.protocol, summary.trials) else ()
