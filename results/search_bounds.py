"""The scales of a search range, the bounds that each can have, and the ranges that an experiment searched."""

import math
from typing import Literal

from results.values import Record

Scale = Literal["linear", "log", "int", "int_log", "choice"]

_AT_AN_END = 0.01
"""Part of a range that counts as its end, on its scale. Samplers propose the ends themselves up to rounding."""


class SearchedRange(Record):
    """The range in which an experiment searched one hyperparameter.

    Attributes:
        scale: The scale, not `choice`.
        low: Lower end, included.
        high: Upper end, included.
    """

    scale: Scale
    low: float
    high: float

    def end_at(self, value: float) -> Literal["lowest", "highest"] | None:
        """Tell at which end of the range a value lies; None if it lies between them."""
        if self.scale in ("int", "int_log"):
            return "lowest" if value <= self.low else "highest" if value >= self.high else None
        low, high, place = (math.log(v) if self.scale == "log" else v for v in (self.low, self.high, value))
        margin = _AT_AN_END * (high - low)
        return "lowest" if place <= low + margin else "highest" if place >= high - margin else None


def check_bounds(scale: Scale, low: float, high: float) -> None:
    """Refuse bounds that a scale cannot have.

    Args:
        scale: The scale; not `choice`, which has no bounds.
        low: Lower end of the range.
        high: Upper end of the range.

    Raises:
        ValueError: The bounds do not fit the scale.
    """
    if "log" in scale and low <= 0:
        raise ValueError("a log scale needs low > 0")
    if scale in ("int", "int_log") and not (float(low).is_integer() and float(high).is_integer()):
        raise ValueError(f"scale {scale} needs whole numbers as low and high")
