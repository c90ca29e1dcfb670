"""Estimates the time left of a run from the number of its trainings and tests, and their durations."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean


@dataclass
class Forecast:
    """Counts trainings and tests, and estimates the time left from their mean durations.

    The length of a training is unknown until it ends, because of early stopping. A remaining training is assumed to
    take the mean time of the method's finished trainings, or of all methods' if this method has none. A remaining test
    takes the mean time of all tests, as most of it does not depend on the method.

    Attributes:
        totals: Number of trainings of each method.
        workers: How many trainings run at the same time.
        done: Number of finished trainings of each method.
        made_now: Number of trainings made in this run.
        tests: Number of tests of each method.
        expected_test: Seconds that a test is expected to take before the first one has ended; None if unknown.
        tested: Number of finished tests of each method.
        durations: Seconds of the finished trainings of each method, as far as they are known.
    """

    totals: dict[str, int]
    workers: int
    done: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    made_now: int = 0
    tests: dict[str, int] = field(default_factory=dict)
    expected_test: float | None = None
    tested: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _tests_seconds: float = 0.0

    def finished(self, method: str, seconds: float, *, now: bool) -> None:
        """Count a finished training of so many seconds, made now or found in the store; 0 if its time is unknown.

        Durations from the store count too, although they may come from another machine.
        """
        self.done[method] += 1
        if seconds > 0:
            self.durations[method].append(seconds)
        self.made_now += now

    def test_finished(self, method: str, seconds: float) -> None:
        """Count a finished test, made in this run or found in the store."""
        self.tested[method] += 1
        self._tests_seconds += seconds

    @property
    def total(self) -> int:
        """Number of trainings of all methods."""
        return sum(self.totals.values())

    @property
    def n_done(self) -> int:
        """Number of finished trainings of all methods."""
        return sum(self.done.values())

    def seconds_left(self) -> float | None:
        """Return the expected time in seconds until trainings and tests are done; None if no training's is known.

        Tests count 0 as long as nothing is known of their duration.
        """
        tests_left = sum(max(0, total - self.tested[method]) for method, total in self.tests.items())
        n_tested = sum(self.tested.values())
        seconds = tests_left * ((self._tests_seconds / n_tested if n_tested else self.expected_test) or 0.0)
        known = [each for durations in self.durations.values() for each in durations]
        for method, total in self.totals.items():
            if total <= self.done[method]:
                continue
            if not known:
                return None
            seconds += (total - self.done[method]) * fmean(self.durations[method] or known)
        return seconds / self.workers


def in_words(seconds: float | None) -> str:
    """Format a duration in seconds for people: `40 s`, `7 min`, `3 h 20 min`, `2 days 4 h`."""
    if seconds is None:
        return "not known yet"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h"
