"""What scores and their differences are measured in, in one place: the unit of comparison, and how numbers are written.

A new kind of scale whose differences are differences or ratios is one entry of `_SCALES`; another transformation is a
field beside `ratio`, here and in `NumberFormat`. No number leaves an answer in another way.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import numpy as np
import pandas as pd

from results.numbers import ENDLESS, MOST_DIGITS, Ends, NumberFormat
from results.reading.scores_table import ScoreScale


@dataclass(frozen=True)
class Scaling:
    """How scores are compared and written.

    Methods are compared in values. These are the scores of a frame, or for ratios their logarithms, whose differences
    are shown as what they are the logarithm of. Numbers have `digits` in sentences, and one more in tables (`more`).

    Attributes:
        digits: Digits after the point in sentences. Scores that are compared by ratios have as many significant ones,
            and one more.
        read_as: How the reading of a table says it.
        unit: What stands behind a score.
        gap_unit: What stands behind a difference, `one_gap` behind a single unit, and `gap_of` before the score's name.
        numbers: What scores are, in a caption.
        mean: What a mean is, in a caption, with its interval (`spread`), also where it passes an end (`cut`).
        gap_name: What differences are called above a column, and `gaps_in` what they are in, in a caption.
        description: What scores are in records, and `spread_in_files` what stands beside a mean.
        note: How differences are tested, if not as differences of scores.
        factor: What values are multiplied by where they are shown.
        ratio: Whether scores are compared by their ratios.
        ends: The lowest and the highest value.
        usual_margin: Methods that differ by less count as equal, unless another margin is asked for; as it is shown.
        least_digits: Digits that scores have at least, also where they vary by more.
        coarse: Rounding to a step of this size or more is named; None if it is where scores vary by less.
    """

    digits: int = 1
    read_as: str = "taken as points"
    unit: str = ""
    gap_unit: str = ""
    one_gap: str = ""
    gap_of: str = "in"
    numbers: str = "Scores"
    mean: str = "mean"
    spread: str = " ± half width of the 95 % interval"
    cut: str = ", or [its ends] where scores end,"
    gap_name: str = "difference"
    gaps_in: str = "in its own unit"
    description: str = "unbounded"
    spread_in_files: str = "ci95_half_width"
    note: str = ""
    factor: int = 1
    ratio: bool = False
    ends: Ends = ENDLESS
    usual_margin: float | None = None
    least_digits: int = 0
    coarse: float | None = None

    def to_values(self, scores: pd.Series) -> pd.Series:
        """Return the values of scores of a frame; raises ValueError if a score has no ratio."""
        if not self.ratio:
            return scores
        if (scores <= 0).any():
            raise ValueError(
                f"a score of {scores.min():g} has no ratio to others; compare differences (--scale points)"
            )
        values: pd.Series = np.log(scores)
        return values

    def to_step(self, step: float, scores: Sequence[float]) -> float:
        """Return the step of values from that of scores; of ratios where the typical score is."""
        return step / float(np.median(scores)) if self.ratio else step

    def to_gap(self, shown: float) -> float:
        """Return a difference, a deviation or a margin of values from how it is shown, such as one of 0.5 points."""
        if self.ratio and shown < 1:
            raise ValueError(
                f"{shown:g} is no ratio of a better and a worse score; give one of at least 1, such as 1.05"
            )
        return math.log(shown) if self.ratio else shown / self.factor

    def in_file(self, value: float | None) -> float | None:
        """Return a value, or a difference, as it stands in files: percentages as fractions of 1, ratios as they are."""
        return value if value is None or not self.ratio else math.exp(value)

    @property
    def in_percent(self) -> bool:
        """Whether scores are percentages, whose values are fractions of 1."""
        return self.factor == 100

    @property
    def largest(self) -> float:
        """The largest difference that two values can have: 100 points of percentages; others have no end."""
        return self.ends[1] - self.ends[0]

    def is_beyond(self, gap: float) -> bool:
        """Return whether no two values lie so far apart, so that no difference would have shown."""
        return gap >= self.largest

    def of_two(self, a: str, b: str) -> str:
        """Write what a difference is of: `A − B`, or `A / B`."""
        return f"{a} {'/' if self.ratio else '−'} {b}"

    def score_format(self, *, more: bool = False) -> NumberFormat:
        """Return the format of values as scores."""
        digits = self.digits + more + self.ratio
        return NumberFormat(digits, self.factor, significant=self.ratio, ends=self.ends, exponential=self.ratio)

    def gap_format(self, *, more: bool = False, signed: bool = False) -> NumberFormat:
        """Return the format of differences; `signed` shows a plus too, which a ratio never has."""
        digits, ends = self.digits + more, (-self.largest, self.largest)
        if self.ratio:
            return NumberFormat(digits, ends=ends, exponential=True)
        small = digits > MOST_DIGITS
        return NumberFormat(3 if small else digits, self.factor, significant=small, signed=signed, ends=ends)

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
        return number + (self.one_gap if number == "1" else self.gap_unit) if unit else number

    def two_digits(self, gap: float, *, down: bool = False, unit: bool = True) -> str:
        """Write a deviation with two digits; `down` rounds them down, so that what holds below it holds for them.

        Of a ratio they are those of its distance from 1.
        """
        form = self.gap_format()
        none, shown = form.shown(0.0), form.shown(gap)
        digits = 1 - math.floor(math.log10(shown - none))
        rounded = math.floor((shown - none) * 10.0**digits * (1 + 1e-12)) / 10.0**digits if down else shown - none
        return f"{none + round(rounded, digits):.12g}{self.gap_unit if unit else ''}"


_SHARES = Scaling(
    unit=" %",
    gap_unit=" points",
    one_gap=" point",
    gap_of="of",
    numbers="Percentages",
    gaps_in="in percentage points",
    description="as a fraction of 1",
    factor=100,
    ends=(0.0, 1.0),
    usual_margin=0.5,
    least_digits=1,
    coarse=0.001,
)

_RATIOS = Scaling(
    read_as="compared by ratios",
    gap_unit=" times",
    one_gap=" times",
    mean="geometric mean",
    spread=" [95 % interval]",
    gap_name="ratio",
    gaps_in="as ratios",
    spread_in_files="ci95_factor",
    note="differences are ratios of geometric means, tested as differences of logarithms",
    ratio=True,
    least_digits=2,
)

_SCALES: Mapping[ScoreScale, Scaling] = MappingProxyType(
    {
        "fractions": replace(_SHARES, read_as="taken as fractions (within 0 and 1)"),
        "percent": replace(_SHARES, read_as="taken as percent (within 0 and 100)"),
        "points": Scaling(),
        "times": _RATIOS,
    }
)


@cache
def scaling_of(kind: ScoreScale | None, digits: int = 1) -> Scaling:
    """Return the scale of a kind of scores; those of experiments of this suite are fractions of 1.

    Args:
        kind: What the scores are.
        digits: Digits after the point in sentences.
    """
    return replace(_SCALES[kind or "fractions"], digits=digits)
