"""What a method was held up by: trainings that were cut off, and ends of ranges beyond which better settings can lie.

A method that was held up may be better than it looks. So where it is the worse one of two, the answer is about these
steps or these ranges, and is no verdict about methods (`Pair.limited`). The better one may have been held up too.
"""

from results.spec.conditions import TrainingSettings
from results.spec.ends import FEWEST_SEARCHES, open_ends, pressed_ends
from results.spec.range import End
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted

CUT_OFF_SHARE = 1 / 5
"""A method is compared at the steps that it had if more than this part of its tested trainings was cut off."""


def cut_off_words(measured: MeasuredExperiment, method: str) -> str | None:
    """Say after how long a method's trainings were cut off, as `after 400 steps`.

    Returns:
        Nothing if most ended themselves, and None if that is not known: nothing was validated, or it was not recorded.
    """
    if method not in measured.cut_offs:
        return None
    cut, trained = measured.cut_offs[method]
    if cut <= CUT_OFF_SHARE * trained:
        return ""
    return f"after {length_in_words(measured.runs[method][0].specs[0].conditions.training)}"


def length_in_words(training: TrainingSettings) -> str:
    """Write the largest length of a training: `400 steps`, or `20 epochs`."""
    if training.iterations_per_epoch is None:
        return counted(training.max_epochs, "epoch")
    return counted(training.max_epochs * training.iterations_per_epoch, "step")


def open_ends_of(measured: MeasuredExperiment, method: str) -> list[tuple[str, End]]:
    """Return the ends of a method's ranges that its searches press and no probe shut."""
    probed = [one for one in measured.plan.probed if one.method == method]
    return open_ends(measured.plan.rows[method].ranges, measured.settings_found.get(method, []), probed)


def pressed_words(measured: MeasuredExperiment, method: str) -> str:
    """Write the ends of ranges that a method's searches press, as `loss.alpha 1 (low)`; of few searches, of any one."""
    ranges, settings = measured.plan.rows[method].ranges, measured.settings_found.get(method, [])
    ends = open_ends_of(measured, method)
    if 0 < len(settings) < FEWEST_SEARCHES:
        ends = pressed_ends(ranges, settings, fewest=1)
    return ", ".join(f"{target} {ranges[target].ends[end == 'high']:g} ({end})" for target, end in ends)
