"""What scores and their differences are measured in, in one place: the unit of comparison, and how numbers are written.

A new kind of scale is one entry of `_SCALES`. No number leaves an answer in another way.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import NewType

from results.numbers import ENDLESS, MOST_DIGITS, Ends, NumberFormat
from results.records.scores_table import ScoreScale

Score = NewType("Score", float)
"""A score, or a mean of scores, as methods are compared in it: fractions of 1 where scores are percentages."""

Gap = NewType("Gap", float)
"""A difference of two scores, also the half width of an interval, a deviation and a margin."""


@dataclass(frozen=True)
class Scale:
    """How scores are compared and written.

    Numbers have `digits` after the point in sentences, and one more in tables (`more`).

    Attributes:
        digits: Digits after the point in sentences.
        unit: What stands behind a score.
        gap_unit: What stands behind a difference.
        numbers: What scores are, in a caption.
        gaps_in: What differences are in, in a caption.
        in_files: What scores are in files.
        factor: What scores are multiplied by where they are shown.
        ends: The lowest and the highest score.
        usual_margin: Methods that differ by less count as equal, unless another margin is asked for; as it is shown.
        least_digits: Digits that scores have at least, also where they vary by more.
        coarse: Rounding to a step of this size or more is named; None if it is where scores vary by less.
    """

    digits: int = 1
    unit: str = ""
    gap_unit: str = ""
    numbers: str = "Scores"
    gaps_in: str = "in its own unit"
    in_files: str = "unbounded"
    factor: int = 1
    ends: Ends = ENDLESS
    usual_margin: float | None = None
    least_digits: int = 0
    coarse: float | None = None

    def to_values(self, scores: Iterable[float]) -> list[float]:
        """Return what methods are compared in, from the scores of a frame."""
        return list(scores)

    def gap_of(self, shown: float) -> Gap:
        """Return a difference from how it is shown, such as one of 0.5 points."""
        return Gap(shown / self.factor)

    def in_file(self, gap: float) -> float:
        """Return a difference as it stands in files: in the unit of the scores there."""
        return gap

    @property
    def largest(self) -> float:
        """The largest difference that two scores can have: 100 points of percentages; other points have no end."""
        return self.ends[1] - self.ends[0]

    def of_two(self, a: str, b: str) -> str:
        """Write what a difference is of: `A − B`."""
        return f"{a} − {b}"

    def score_format(self, *, more: bool = False) -> NumberFormat:
        """Return the format of scores."""
        return self._format(self.ends, more=more)

    def gap_format(self, *, more: bool = False, signed: bool = False) -> NumberFormat:
        """Return the format of differences; `signed` shows a plus too."""
        return replace(self._format((-self.largest, self.largest), more=more), signed=signed)

    def _format(self, ends: Ends, *, more: bool) -> NumberFormat:
        digits = self.digits + more
        significant = digits > MOST_DIGITS
        return NumberFormat(3 if significant else digits, self.factor, significant=significant, ends=ends)

    def score(self, value: float, half_width: float | None = None, *, more: bool = False) -> str:
        """Write a score, with its interval if it has one: `32.0 ± 0.9`."""
        return self.score_format(more=more).text(value, half_width)

    def scores(self, values: Iterable[float], *, more: bool = False) -> str:
        """Write the range of scores, as `12.3 to 28.1`, or one number where both ends look alike."""
        return self.score_format(more=more).range(values)

    def gap(self, value: float, half_width: float | None = None, *, more: bool = False, signed: bool = False) -> str:
        """Write a difference without its unit, with its interval if it has one: `2.0 ± 0.9`, `+2.0`."""
        return self.gap_format(more=more, signed=signed).text(value, half_width)

    def gap_words(self, *values: float, more: bool = False) -> str:
        """Write a difference with its unit, `0.9 points`, or the range of several, `0.9 to 2.1 points`."""
        return f"{self.gap_format(more=more).range(values)}{self.gap_unit}"

    def short_gap(self, gap: float, *, unit: bool = True) -> str:
        """Write a difference that somebody gave, as it was given: `0.5 points`, or `1 point`."""
        number = f"{self.gap_format().shown(gap):g}"
        return number + (self.gap_unit.rstrip("s") if number == "1" else self.gap_unit) if unit else number

    def two_digits(self, gap: float, *, down: bool = False, unit: bool = True) -> str:
        """Write a deviation with two digits; `down` rounds them down, so that what holds below it holds for them."""
        form = self.gap_format()
        none, shown = form.shown(0.0), form.shown(gap)
        digits = 1 - math.floor(math.log10(shown - none))
        rounded = math.floor((shown - none) * 10.0**digits * (1 + 1e-12)) / 10.0**digits if down else shown - none
        return f"{none + round(rounded, digits):.12g}{self.gap_unit if unit else ''}"


_SHARES = Scale(
    unit=" %",
    gap_unit=" points",
    numbers="Percentages",
    gaps_in="in percentage points",
    in_files="as a fraction of 1",
    factor=100,
    ends=(0.0, 1.0),
    usual_margin=0.5,
    least_digits=1,
    coarse=0.001,
)

_SCALES: Mapping[ScoreScale, Scale] = MappingProxyType({"fractions": _SHARES, "percent": _SHARES, "points": Scale()})


@cache
def scale_of(kind: ScoreScale | None, digits: int = 1) -> Scale:
    """Return the scale of a kind of scores; those of experiments of this suite are fractions of 1.

    Args:
        kind: What the scores are.
        digits: Digits after the point in sentences.
    """
    return replace(_SCALES[kind or "fractions"], digits=digits)
