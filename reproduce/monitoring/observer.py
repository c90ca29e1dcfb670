"""What is told about the progress of a run: the interface of progress displays and trackers."""

from dataclasses import dataclass
from typing import Protocol

from protocols.jobs import Job, Outcome


@dataclass(frozen=True)
class Tick:
    """How far a running training is."""

    fingerprint: str
    iterations: int


class Observer(Protocol):
    """Is told how the work goes."""

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """A job has its outcome."""

    def ticks(self, ticks: list[Tick]) -> None:
        """Called at least every second, with the progress of running trainings."""


class Observers:
    """Several observers as one, told in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Tells all."""
        for observer in self.observers:
            observer.job_done(method, job, outcome, from_store=from_store)

    def ticks(self, ticks: list[Tick]) -> None:
        """Tells all."""
        for observer in self.observers:
            observer.ticks(ticks)
