"""What the page shows first: the ranking of the methods with intervals in its rows, and the matrix of all pairs."""

from dataclasses import dataclass
from typing import Literal

PairKind = Literal["worse", "equal", "open", "untested"]
"""Verdict on a method and one with a higher mean."""


@dataclass(frozen=True)
class DrawnInterval:
    """An interval on the common axis of a ranking. Places are percentages of the axis from its left end.

    Attributes:
        low: Place of the lower end; equal to `high` without an interval.
        high: Place of the upper end.
        cut_low: Whether the interval goes on beyond the left end of the axis.
    """

    mean: float
    low: float
    high: float
    points: tuple[float, ...] = ()
    cut_low: bool = False
    cut_high: bool = False


@dataclass(frozen=True)
class RankedRow:
    """A method in the ranking.

    Attributes:
        mean: Mean of the primary score in percent, as text; empty for a method that was not run.
        drawn: The interval on the axis; None for a method that was not run.
        letters: For each group of the ranking its letter, or an empty text if the method is not in it.
        sign: Sign that refers to a note.
        leads: Whether no other method is shown to be better.
    """

    title: str
    mean: str = ""
    spread: str = ""
    runs: int = 0
    drawn: DrawnInterval | None = None
    letters: tuple[str, ...] = ()
    sign: str = ""
    leads: bool = False
    detail: str = ""

    @property
    def spans(self) -> str:
        """The letters in short, with neighbours as a span, such as `a–c, f`."""
        spans: list[list[int]] = []
        for index, letter in enumerate(self.letters):
            if letter and spans and spans[-1][-1] == index - 1:
                spans[-1].append(index)
            elif letter:
                spans.append([index])
        ends = [dict.fromkeys((self.letters[span[0]], self.letters[span[-1]])) for span in spans]
        return ", ".join("–".join(pair) for pair in ends)


@dataclass(frozen=True)
class Ranking:
    """The methods by the primary score, best first.

    Attributes:
        ends: Left and right end of the axis in percent, as text.
    """

    score: str
    rows: tuple[RankedRow, ...]
    ends: tuple[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairCell:
    """Verdict on the method of the row and the method of the column, which has the higher mean."""

    kind: PairKind
    text: str
    detail: str


@dataclass(frozen=True)
class PairMatrix:
    """Verdicts on all pairs as a triangle.

    Attributes:
        titles: Titles of the methods, best first.
        rows: For every method but the first, the verdicts against all methods above it. Empty for too many methods.
        caption: How to read the matrix, or why there is none.
    """

    titles: tuple[str, ...]
    rows: tuple[tuple[PairCell, ...], ...]
    caption: str
