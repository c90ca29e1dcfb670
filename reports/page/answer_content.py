"""The content of the answer as plain values: the ranking of the methods, and the verdicts on pairs of them."""

from dataclasses import dataclass
from typing import Literal

PairKind = Literal["better", "worse", "equal", "open", "untested"]
"""Verdict on the first method of a pair: in a matrix that of the column, in a list the one that others are beside."""


@dataclass(frozen=True)
class DrawnInterval:
    """An interval on the common axis of a ranking, whose ends can lie beyond the axis (`cut_low`, `cut_high`).

    Places are percentages of the axis from its left end. `low` equals `high` without an interval.
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
        count: Number of searches or runs, as text.
        letters: For each group of the ranking its letter, or an empty text if the method is not in it.
        sign: Sign that refers to a note.
        leads: Whether no other method is shown to be better.
    """

    title: str
    mean: str = ""
    spread: str = ""
    count: str = "0"
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
        unit: What the intervals are over and the counts count: `searches` or `runs`.
        ends: Ends of the axis in percent, as text.
    """

    score: str
    unit: str
    rows: tuple[RankedRow, ...]
    ends: tuple[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairCell:
    """Verdict on a pair of methods.

    Attributes:
        text: Direction and size.
        shares: How sure it is that the first method is better by more than the margin, within it, worse by more, in
            percent; empty without a test.
        sure: The shares in words.
    """

    kind: PairKind
    text: str
    detail: str
    shares: tuple[float, ...] = ()
    sure: str = ""


@dataclass(frozen=True)
class ListedPair:
    """A method beside the one that all others are compared with. The texts are about that one."""

    title: str
    cell: PairCell
    direction: str
    size: str
    difference: str
    half_width: str = ""


@dataclass(frozen=True)
class PairMatrix:
    """Verdicts on pairs of methods, best first: all as a triangle, or those with one method as a list.

    Attributes:
        margin: Margin of equality in percentage points, as text.
        titles: The methods of the triangle.
        rows: For every method but the first, the verdicts against all methods above it. Empty for too many methods.
        first: Title of the method that those of the list are compared with.
        others: The list.
    """

    heading: str
    margin: str
    caption: str
    titles: tuple[str, ...] = ()
    rows: tuple[tuple[PairCell, ...], ...] = ()
    first: str = ""
    others: tuple[ListedPair, ...] = ()

    @property
    def cells(self) -> tuple[PairCell, ...]:
        """All verdicts."""
        return (*(cell for row in self.rows for cell in row), *(other.cell for other in self.others))
