"""The time left during a run."""

import math
from collections.abc import Mapping

from reproduce.run.work import RowWork, at_a_time
from results.answer.durations import Stage


class TimeLeft:
    """The time left during a run: the plan's, until trainings of the run say how fast they are.

    Only trainings with steps say it. One without takes a second or less, of which a start of processes is many times.

    Args:
        rows: What is left at the start, by key.
        workers: Number of trainings at a time.
        known_after: Number of trainings with steps of this run that say how fast they are.
    """

    def __init__(self, rows: Mapping[str, RowWork], workers: int, known_after: int) -> None:
        self._known_after, self._at_a_time = known_after, at_a_time(rows, workers)
        self._stages = {(key, one.stage): one for key, row in rows.items() for one in (row.search, row.reproductions)}
        self._in_seconds = all(one.is_known for one in self._stages.values())
        # Expected work of a training: its seconds, or its steps if the speed of a row is not known. Once: a run asks
        # after each of its thousands of trainings.
        self._work = {
            place: float(one.each[0]) if self._in_seconds else one.steps.value for place, one in self._stages.items()
        }
        self._done, self._count = 0.0, 0
        self._latest, self._without_steps = 0.0, 0.0

    def made(self, key: str, stage: Stage, elapsed: float) -> None:
        """Count a training that ended so many seconds after the start of the run."""
        if self._stages[key, stage].epoch_steps:
            self._done += self._work[key, stage]
            self._count += 1
        else:
            self._without_steps += elapsed - self._latest
        self._latest = elapsed

    def seconds(self, totals: Mapping[str, int], done: Mapping[tuple[str, Stage], int], elapsed: float) -> float | None:
        """Return the seconds left; None if nothing says it yet.

        Args:
            totals: Number of trainings by row, at most, as far as its trials are known.
            done: How many of them are made or found, by row and stage.
            elapsed: Seconds since the start of the run.
        """
        left = {place: self._left(place, totals[place[0]], done.get(place, 0)) for place in self._stages}
        by_plan = {(key, stage): work / self._at_a_time[stage] for (key, stage), work in left.items()}
        if self._count < self._known_after or self._done == 0:
            return math.fsum(by_plan.values()) if self._in_seconds else None
        speed = (elapsed - self._without_steps) / self._done
        measured = {place: work * speed for place, work in left.items() if self._stages[place].epoch_steps}
        return math.fsum((by_plan | measured).values())

    def _left(self, place: tuple[str, Stage], total: int, done: int) -> float:
        """Expected work that is left of a stage, of a row with so many trainings."""
        key, stage = place
        runs = self._stages[key, "reproductions"].planned
        planned = runs if stage == "reproductions" else total - runs
        return max(0, planned - done) * self._stages[place].folds.value * self._work[place]
