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
