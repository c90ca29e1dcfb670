"""How a number is written: in a cell, in a sentence, in a file."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

Ends = tuple[float, float]
"""The lowest and the highest number that a score, or a difference of scores, can be."""

ENDLESS: Ends = (-math.inf, math.inf)

MOST_DIGITS = 5
"""Small numbers that need more digits after the point have an exponent, and differences three digits that count."""


@dataclass(frozen=True)
class NumberFormat:
    """Format of a number.

    Attributes:
        digits: Number of digits after the decimal point, or of significant digits if `significant`.
        scale: The number is multiplied by this before it is shown; 100 shows fractions of 1 in percent.
        exponential: The number is a logarithm, and what it is the logarithm of is shown; `scale` is not used.
        thousands: Whether groups of three digits are parted by commas.
        signed: Whether positive numbers have a plus sign. Half widths never have a sign, and zeros never a minus.
        smallest: Numbers below this are shown as "< smallest"; 0 turns this off.
        ends: The lowest and the highest number that can be. An interval is shown up to them.
    """

    digits: int = 0
    scale: float = 1.0
    thousands: bool = False
    signed: bool = False
    significant: bool = False
    smallest: float = 0.0
    ends: Ends = ENDLESS
    exponential: bool = False

    def shown(self, value: float) -> float:
        """Return the number that is shown; a whole number stays one."""
        return math.exp(value) if self.exponential else value if self.scale == 1 else self.scale * value

    def text(self, value: float, half_width: float | None = None) -> str:
        """Write a number, with its interval if it has one: `2.0 ± 0.9`."""
        if self.smallest and value < self.smallest:
            return f"< {self.smallest:.{self.digits}f}"
        number = self._number(value, "+" if self.signed else "")
        return number if half_width is None else f"{number} {self.interval(value, half_width)}".rstrip()

    def interval(self, value: float, half_width: float) -> str:
        """Write the interval around a number: `± 0.9`, or its ends, `[0.0, 1.4]`, if it passes an end of the scale.

        That of a ratio has ends. Nothing is written of an interval that holds the whole scale.
        """
        low, high = value - half_width, value + half_width
        if low <= self.ends[0] and high >= self.ends[1]:
            return ""
        if not self.exponential and not self.is_cut(value, half_width):
            return f"± {self._number(half_width)}"
        sign = "+" if self.signed else ""
        return f"[{self._number(max(low, self.ends[0]), sign)}, {self._number(min(high, self.ends[1]), sign)}]"

    def is_cut(self, value: float, half_width: float) -> bool:
        """Tell whether an interval passes an end of the scale, and does not hold all of it."""
        (lowest, highest), low, high = self.ends, value - half_width, value + half_width
        return (low < lowest or high > highest) and not (low <= lowest and high >= highest)

    def range(self, values: Iterable[float]) -> str:
        """Write the range of numbers, as `12.3 to 28.1`, or one number where both ends look alike."""
        known = list(values)
        return " to ".join(dict.fromkeys(self._number(end) for end in (min(known), max(known))))

    def _number(self, value: float, sign: str = "") -> str:
        comma, shown = "," if self.thousands else "", self.shown(value)
        if isinstance(shown, int) and self.digits == 0:
            return f"{shown:{sign}{comma}d}"
        if not self.significant:
            if self.digits > MOST_DIGITS and 0 < abs(shown) < 1e-4:
                counting = max(3, self.digits + math.floor(math.log10(abs(shown))) + 1)
                return f"{shown:{sign}.{counting}g}"
            return f"{shown:{sign}z{comma}.{self.digits}f}"
        exponent = int(f"{shown:.{self.digits - 1}e}".partition("e")[2]) if math.isfinite(shown) else 0
        if self.exponential and -_LARGE < exponent < _LARGE:
            return f"{shown:{sign}.{max(0, self.digits - 1 - exponent)}f}"  # With zeros at its end, as in 1.50.
        if self.digits <= exponent < _LARGE:
            return f"{shown:{sign}.0f}"
        return f"{shown:{sign}z{comma}.{self.digits}g}"


_LARGE = 7
"""Numbers with a smaller power of ten have no exponent."""

AS_IT_IS = NumberFormat()
"""Shows numbers without digits after the point."""
ONE_DIGIT = NumberFormat(digits=1, scale=100)
"""Shows fractions of 1 as percentages in sentences."""
PERCENT = NumberFormat(digits=2, scale=100, ends=(0.0, 1.0))
"""Shows fractions of 1 as percentages with two digits after the point."""
POINTS = NumberFormat(digits=2, scale=100, signed=True, ends=(-1.0, 1.0))
"""Shows differences of fractions of 1 in percentage points, with a sign and two digits after the point."""
