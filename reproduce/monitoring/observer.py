"""The interface of progress displays and trackers, which observe a run."""

from dataclasses import dataclass
from typing import Protocol

from protocols.jobs import Job, Outcome


@dataclass(frozen=True)
class Tick:
    """The progress of a running training: its fingerprint, and the iterations that are done."""

    fingerprint: str
    iterations: int


class Observer(Protocol):
    """Gets the outcomes of jobs and the progress of trainings from the lab, one call at a time."""

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Handle the outcome of a job of a method; `from_store` if it was in the store before this run."""

    def ticks(self, ticks: list[Tick]) -> None:
        """Handle the progress of running trainings. The lab calls this at least every second."""


class Observers:
    """Passes everything on to several observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None:
        """Pass the outcome of a job on to all observers."""
        for observer in self.observers:
            observer.job_done(method, job, outcome, from_store=from_store)

    def ticks(self, ticks: list[Tick]) -> None:
        """Pass the progress of trainings on to all observers."""
        for observer in self.observers:
            observer.ticks(ticks)
