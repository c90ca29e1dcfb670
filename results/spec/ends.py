"""Ends of search ranges: which of them searches press, what a probe beyond one showed, and which stay open.

A search whose best value lies at an end of its range could have found a better one beyond. So an experiment can probe
the ends that most searches press (`SearchSettings.probe_ends`). Each search trains its best setting once more with this
value beyond the end, as long as its tested runs are trained. Where the probes are better than the tested runs, the
range is widened, and all searches of all methods get more trials. `docs/comparisons.md` has the rule in words.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import JsonValue

from results.spec.range import End, Range
from results.values import Record

ROUNDS = 2
"""How often ends are probed, and ranges widened, at most."""

FEWEST_SEARCHES = 3
"""Of fewer searches nothing is said: one that ends at an end by chance would be half of two."""


class ProbedEnd(Record):
    """An end of a range that most searches of a method pressed, and what lies beyond it.

    Attributes:
        method: Key of the row.
        target: The hyperparameter.
        end: The end of the range that it had, `low` to `high`.
        beyond: The value that the probes had.
        probes: Validation MAP@R of each probe, mean over folds, a fraction of 1; None where the method refused it.
        runs: The same of each search's tested runs, their mean.
    """

    method: str
    target: str
    end: End
    low: float
    high: float
    beyond: float
    probes: tuple[float | None, ...]
    runs: tuple[float, ...]

    @property
    def made(self) -> list[tuple[float, float]]:
        """Each probe beside the tested runs of its search, without probes that the method refused.

        Another setting may have been possible there: a limit can depend on other hyperparameters.
        """
        pairs = zip(self.probes, self.runs, strict=True)
        return [(probe, run) for probe, run in pairs if probe is not None]

    @property
    def gain(self) -> float | None:
        """How much better the probes are than the tested runs, on the mean; None if the method refused all of them.

        Tested runs and not the trials that won: a winner is the best of many, and its score too high.
        """
        return fmean(probe - run for probe, run in self.made) if self.made else None

    @property
    def opens(self) -> bool:
        """Whether values beyond the end are better."""
        return self.gain is not None and self.gain > 0

    def is_of(self, target: str, end: End, searched: Range) -> bool:
        """Whether this is an end of a range as it is now."""
        return (self.target, self.end, self.low, self.high) == (target, end, *searched.ends)


def pressed_ends(
    ranges: Mapping[str, Range], settings: Sequence[Mapping[str, JsonValue]], fewest: int = FEWEST_SEARCHES
) -> list[tuple[str, End]]:
    """Return the open ends that the best values of more than half of a method's searches press.

    Args:
        ranges: What was searched, by target.
        settings: The setting that each search found.
        fewest: Fewer searches press nothing.
    """
    if len(settings) < fewest:
        return []
    pressed: list[tuple[str, End]] = []
    for target, searched in ranges.items():
        if searched.choices:
            continue
        values = [setting.get(target) for setting in settings]
        ends = [searched.presses(value) for value in values if isinstance(value, int | float)]
        both: tuple[End, End] = ("low", "high")
        pressed += [(target, end) for end in both if 2 * ends.count(end) > len(settings) and searched.is_open(end)]
    return pressed


def open_ends(
    ranges: Mapping[str, Range], settings: Sequence[Mapping[str, JsonValue]], probed: Sequence[ProbedEnd]
) -> list[tuple[str, End]]:
    """Return the pressed ends of a method beyond which better values can lie: not probed, or better there.

    Args:
        ranges: What was searched in the end, by target.
        settings: The setting that each search found.
        probed: The method's ends that were probed, the latest last.
    """
    still = []
    for target, end in pressed_ends(ranges, settings):
        known = [one for one in probed if one.is_of(target, end, ranges[target])]
        if not known or known[-1].opens:
            still.append((target, end))
    return still
