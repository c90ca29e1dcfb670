"""A line of the benchmark: seconds of the suite and of its peer, measured in turn, with the bar that the suite sets."""

import math
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Work = Callable[[], object]


@dataclass(frozen=True)
class BenchRow:
    """One comparison. The ratio of a round is taken between its two measurements, which were made next to each other.

    Attributes:
        name: What is measured, and against what: "ours / peer".
        ours_seconds: What the suite took in each round, in `unit`; empty if nothing was measured, and `equal` says why.
        peer_seconds: What the peer took in each round, in `unit`; empty if the bar needs no peer.
        bar: What the suite wants: "at most 2" (ours / peer), "at least 1.5" (peer / ours: how many times as fast), or
            "at most 4 s" (ours alone). Words may follow the number.
        equal: How it was checked that both do the same work.
        unit: `s`, or `MiB` for memory.
    """

    name: str
    ours_seconds: list[float]
    peer_seconds: list[float]
    bar: str
    equal: str
    unit: str = "s"

    @classmethod
    def of(cls, name: str, ours: list[float], peer: list[float], bar: str, equal: str, unit: str = "s") -> "BenchRow":
        """Make a row; a peer of NaN counts as none, since JSON has no NaN."""
        return cls(name, list(ours), [value for value in peer if not math.isnan(value)], bar, equal, unit)

    @property
    def kind(self) -> Literal["ours / peer", "peer / ours", "ours"]:
        """What the bar limits."""
        if self.bar.startswith("at least"):
            return "peer / ours"
        return "ours" if re.match(rf"at most [\d.,]+ {self.unit}\b", self.bar) else "ours / peer"

    @property
    def limit(self) -> float:
        """The number in the bar."""
        return float(re.findall(r"[\d.,]+", self.bar)[0].rstrip(".,").replace(",", ""))

    @property
    def ratios(self) -> list[float]:
        """The ratio of each round, in the direction of the bar; empty without a peer."""
        if not self.peer_seconds:
            return []
        pairs = zip(self.ours_seconds, self.peer_seconds, strict=True)
        return [peer / ours if self.kind == "peer / ours" else ours / peer for ours, peer in pairs]

    @property
    def met(self) -> bool | None:
        """Whether the median meets the bar; None if nothing was measured."""
        if not self.ours_seconds:
            return None
        if self.kind == "ours":
            return statistics.median(self.ours_seconds) <= self.limit
        ratio = statistics.median(self.ratios)
        return ratio >= self.limit if self.kind == "peer / ours" else ratio <= self.limit


def seconds_in_turn(ours: Work, peer: Work, rounds: int, repeats: int = 1) -> tuple[list[float], list[float]]:
    """Measure two works in turn, after one round to warm up; the first of a round is the other one in the next.

    Args:
        ours: The suite's work.
        peer: The same work of the peer.
        rounds: Number of rounds.
        repeats: Calls within a measurement.

    Returns:
        The seconds of a call in each round, of the suite and of the peer.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        works = [(ours, seconds[0]), (peer, seconds[1])]
        for work, kept in works if number % 2 else reversed(works):
            started = time.perf_counter()
            for _ in range(repeats):
                work()
            if number:
                kept.append((time.perf_counter() - started) / repeats)
    return seconds
