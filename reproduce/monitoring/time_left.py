"""How much is left: trainings of every method, and the time they will take as far as that is known."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Forecast:
    """Counts trainings and learns their durations.

    totals: trainings of each method in all. workers: trainings side by side. A training's length is not known before
    it ends (early stopping), so what is left is priced at the mean of the method's finished trainings, or of all
    methods' as long as it has none; None before the first has finished.
    """

    totals: dict[str, int]
    workers: int
    done: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    made_now: int = 0
    _durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def finished(self, method: str, seconds: float, *, now: bool) -> None:
        """Notes a training; `now` if it was made in this session rather than found in the store.

        Durations found in the store count as well: they were measured, if perhaps on another machine.
        """
        self.done[method] += 1
        if seconds > 0:
            self._durations[method].append(seconds)
        if now:
            self.made_now += 1

    @property
    def total(self) -> int:
        """Trainings of all methods."""
        return sum(self.totals.values())

    @property
    def n_done(self) -> int:
        """Finished ones."""
        return sum(self.done.values())

    def seconds_left(self) -> float | None:
        """Expected time until all trainings are done, or None while nothing was measured."""
        everything = [s for durations in self._durations.values() for s in durations]
        left = {method: max(0, total - self.done[method]) for method, total in self.totals.items()}
        if not any(left.values()):
            return 0.0
        if not everything:
            return None
        mean = sum(everything) / len(everything)
        seconds = 0.0
        for method, count in left.items():
            own = self._durations[method]
            seconds += count * (sum(own) / len(own) if own else mean)
        return seconds / self.workers


def in_words(seconds: float | None) -> str:
    """A duration for people: `40 s`, `7 min`, `3 h 20 min`, `2 days 4 h`."""
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
