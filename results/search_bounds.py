"""The scales of a search range, and the bounds that each can have."""

from typing import Literal

Scale = Literal["linear", "log", "int", "int_log", "choice"]


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
